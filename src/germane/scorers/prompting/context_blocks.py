"""Formatting of contexts in prompts, and aggregation of their ratings."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Literal, get_args

from germane.exchange import Exchange
from germane.scorers.base.text import is_blank

DECAY = 0.9
"""The default weight of each position relative to the previous one."""
MAX_CONTEXTS = 20
"""Maximum number of contexts to score per exchange. Later contexts are ignored."""

ContextAggregate = Literal["position_weighted", "mean"]
Truncations = Mapping[str, Mapping[str, int]]
"""Truncated texts and lists by name, each with the ``shown`` size and the total size (``of``)."""


def position_weighted_mean(values: Sequence[float], *, decay: float = DECAY) -> float:
    """Return sum(value * decay ** position) / sum(decay ** position). Positions start at 0.

    ``values`` must not be empty. With a decay of 0.9, the mean of 0.9, 0.8, 0.3 and 0.2 is 0.584.
    """
    weights = [decay**position for position in range(len(values))]
    return math.fsum(value * weight for value, weight in zip(values, weights, strict=True)) / math.fsum(weights)


def mean(values: Sequence[float]) -> float:
    """Return the unweighted mean of one or more values."""
    return math.fsum(values) / len(values)


def aggregate_both(values: Sequence[float], *, decay: float = DECAY) -> dict[str, float]:
    """Return both means as a dict by name."""
    return {"position_weighted": position_weighted_mean(values, decay=decay), "mean": mean(values)}


def validate_decay(decay: object) -> float:
    """Return the weight of each position relative to the previous one. Raise an error if it is not in (0, 1]."""
    if not isinstance(decay, Real) or isinstance(decay, bool):
        raise TypeError(f"decay must be a number, not {decay!r:.80}")
    number = float(decay)
    if not 0 < number <= 1:
        raise ValueError(f"decay must be greater than 0 and at most 1, not {number}")
    return number


def validate_aggregate(aggregate: ContextAggregate) -> ContextAggregate:
    """Return the name of an aggregate. Raise ValueError if it is unknown."""
    if aggregate not in get_args(ContextAggregate):
        raise ValueError(f"aggregate must be one of {', '.join(get_args(ContextAggregate))}, not {aggregate!r}")
    return aggregate


def limit_contexts(exchange: Exchange) -> tuple[Exchange, Truncations]:
    """Return the exchange with its first 20 non-blank contexts, and the truncation entry. The entry may be empty."""
    contexts = tuple(context for context in exchange.contexts if not is_blank(context.text))
    first = contexts[:MAX_CONTEXTS]
    return dataclasses.replace(exchange, contexts=first), truncation("contexts", len(first), len(contexts))


def truncation(name: str, shown: int, of: int) -> Truncations:
    """Return the entry for a truncated text or list, or an empty dict if it is shown in full."""
    return {name: {"shown": shown, "of": of}} if shown < of else {}


def delimited_blocks(texts: Sequence[str], name: str, delimiter: str, *, title: str = "") -> str:
    """Return the texts in tags with ``name`` and ``delimiter``. ``title`` adds headings such as "Passage 1:"."""
    return "\n\n".join(
        (f"{title} {number}:\n" if title else "") + f"<{name}-{delimiter}>\n{text}\n</{name}-{delimiter}>"
        for number, text in enumerate(texts, 1)
    )


def numbered_list(texts: Sequence[str]) -> str:
    """Return the texts as a numbered list, with one text per line."""
    return "\n".join(f"{number}. {' '.join(text.split())}" for number, text in enumerate(texts, 1))
