"""What servers tell of the likeliest tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from germane.testing.judge_request import Request

Likely = Mapping[str, float]
"""Token -> how likely it is, 0 to 1."""
FirstToken = Likely | Callable[[Request], Likely | None] | None


def likeliest(tokens: Likely) -> str:
    """Return the token that a judge at temperature 0 writes."""
    return max(tokens, key=lambda token: tokens[token])


def tell(tokens: Likely, most: int) -> dict[str, Any]:
    """Return the ``logprobs`` of a choice of one token, with the ``most`` likeliest in its place."""
    order = sorted(tokens, key=lambda token: -tokens[token])
    entries = [{"token": token, "logprob": _logarithm(tokens[token]), "bytes": None} for token in order]
    return {"content": [{**entries[0], "top_logprobs": entries[:most]}], "refusal": None}


def _logarithm(probability: float) -> float:
    return math.log(probability) if probability > 0 else -9999.0
