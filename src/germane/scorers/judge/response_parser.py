"""A completion as a server sent it, read as a reply. Nobody has checked it: any JSON may stand in its place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from germane.errors import ScoringError
from germane.score import Reason
from germane.scorers.base.json_reply import LONGEST
from germane.scorers.base.protocols import Reply, Token
from germane.scorers.base.text import clean, shorten

_MOST_TOKENS = 100_000_000
"""No request takes more: a larger count is none, and would use up a budget or a limit for good."""
_NEVER = -10_000.0
"""Logarithm of a probability of 0."""


def reply_in(completion: Any) -> Reply:
    """Return the reply; of a text that is longer than any that is asked for, the beginning.

    Raises:
        ScoringError: it says nothing: ``unparsable``, or ``judge_refused``.
    """
    choices: Any = getattr(completion, "choices", None)
    if not isinstance(choices, list) or not choices:
        raise ScoringError(Reason.UNPARSABLE, "the reply holds no choice")
    texts = tuple(_text(choice) for choice in choices)
    if not any(text.strip() for text in texts):
        raise _nothing_said(choices)
    usage = getattr(completion, "usage", None)
    tokens = _tokens(choices[0])
    return Reply(
        texts=texts,
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_written(_count(usage, "completion_tokens"), texts),
        model=served_by(completion),
        first_token=tokens[0].likeliest if tokens else {},
        tokens=tokens,
    )


def served_by(completion: Any) -> str | None:
    """Return the model that made it, as its server names it; None where it does not."""
    return shorten(clean(str(getattr(completion, "model", None) or "")), 200) or None


def _tokens(choice: Any) -> tuple[Token, ...]:
    """Return the tokens of a choice, and what stood to choose; none where the server does not tell."""
    told = getattr(getattr(choice, "logprobs", None), "content", None)
    if not isinstance(told, list):
        return ()
    return tuple(Token(str(getattr(each, "token", "")), _likeliest(each)) for each in told)


def _likeliest(told: Any) -> dict[str, float]:
    pairs = ((getattr(each, "token", None), getattr(each, "logprob", None)) for each in _top(told))
    return {
        token: math.exp(max(min(logprob, 0.0), _NEVER))
        for token, logprob in pairs
        if isinstance(token, str) and isinstance(logprob, (int, float)) and not math.isnan(logprob)
    }


def _top(told: Any) -> list[Any]:
    top = getattr(told, "top_logprobs", None)
    return top if isinstance(top, list) else []


def _text(choice: Any) -> str:
    message = getattr(choice, "message", None)
    content = getattr(message, "content", None)
    return content[:LONGEST] if isinstance(content, str) and not _refuses(choice) else ""


def _refuses(choice: Any) -> bool:
    refusal = getattr(getattr(choice, "message", None), "refusal", None)
    return bool(refusal) or getattr(choice, "finish_reason", None) == "content_filter"


def _nothing_said(choices: Sequence[Any]) -> ScoringError:
    if any(_refuses(choice) for choice in choices):
        return ScoringError(Reason.JUDGE_REFUSED, "the judge refused to answer, or its filter did")
    if any(getattr(choice, "finish_reason", None) == "length" for choice in choices):
        return ScoringError(Reason.UNPARSABLE, "the judge's reply is empty: it thought until its tokens were used up")
    return ScoringError(Reason.UNPARSABLE, "the judge's reply is empty")


def _count(usage: Any, name: str) -> int | None:
    count = getattr(usage, name, None)
    counted = isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= _MOST_TOKENS
    return count if counted else None


def _written(counted: int | None, texts: Sequence[str]) -> int | None:
    """Return the tokens written. With ``n`` over 1 some servers count one choice only: never fewer than words."""
    return None if counted is None else max(counted, sum(len(text.split()) for text in texts))
