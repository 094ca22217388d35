"""Parser for chat completions. The completion is unchecked JSON of any shape."""

from __future__ import annotations

import math
from typing import Any

from germane.errors import ScoringError
from germane.score import UnscoredReason
from germane.scorers.base.json_reply import MAX_REPLY_CHARACTERS
from germane.scorers.base.protocols import Reply, Token
from germane.scorers.base.text import shorten, strip_control_characters

_MAX_TOKEN_COUNT = 100_000_000
"""Larger counts are ignored as invalid; they would use up a budget or a limit for good."""
_MIN_LOGPROB = -10_000.0
"""Servers may send -infinity, or a large negative number, for a probability of 0."""


def parse_reply(completion: Any) -> Reply:
    """Convert a completion to a reply, truncating texts that are longer than any that is requested.

    Raises:
        ScoringError: the completion is empty (``unparsable``) or a refusal (``judge_refused``).
    """
    choices: Any = getattr(completion, "choices", None)
    if not isinstance(choices, list) or not choices:
        raise ScoringError(UnscoredReason.UNPARSABLE, "the reply holds no choice")
    texts = tuple(_parse_text(choice) for choice in choices)
    if not any(text.strip() for text in texts):
        if any(_is_refusal(choice) for choice in choices):
            raise ScoringError(UnscoredReason.JUDGE_REFUSED, "the judge or its content filter refused to answer")
        if any(getattr(choice, "finish_reason", None) == "length" for choice in choices):
            raise ScoringError(
                UnscoredReason.UNPARSABLE, "the judge's reply is empty: it used up its tokens on reasoning"
            )
        raise ScoringError(UnscoredReason.UNPARSABLE, "the judge's reply is empty")
    usage = getattr(completion, "usage", None)
    output_tokens = _parse_count(usage, "completion_tokens")
    if output_tokens is not None:
        # With n > 1, some servers count one choice only. A reply has at least as many tokens as words.
        output_tokens = max(output_tokens, sum(len(text.split()) for text in texts))
    tokens = _parse_tokens(choices[0])
    return Reply(
        texts=texts,
        input_tokens=_parse_count(usage, "prompt_tokens"),
        output_tokens=output_tokens,
        model=served_model(completion),
        first_token=tokens[0].alternatives if tokens else {},
        tokens=tokens,
    )


def served_model(completion: Any) -> str | None:
    """Return the model name that the server reports, if any."""
    return shorten(strip_control_characters(str(getattr(completion, "model", None) or "")), 200) or None


def _parse_text(choice: Any) -> str:
    content = getattr(getattr(choice, "message", None), "content", None)
    return content[:MAX_REPLY_CHARACTERS] if isinstance(content, str) and not _is_refusal(choice) else ""


def _is_refusal(choice: Any) -> bool:
    refusal = getattr(getattr(choice, "message", None), "refusal", None)
    return bool(refusal) or getattr(choice, "finish_reason", None) == "content_filter"


def _parse_count(usage: Any, name: str) -> int | None:
    count = getattr(usage, name, None)
    is_valid = isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= _MAX_TOKEN_COUNT
    return count if is_valid else None


def _parse_tokens(choice: Any) -> tuple[Token, ...]:
    """Return the tokens of a choice with their alternatives; none if the server sends no logprobs."""
    content = getattr(getattr(choice, "logprobs", None), "content", None)
    tokens = []
    for position in content if isinstance(content, list) else []:
        top = getattr(position, "top_logprobs", None)
        pairs = [
            (getattr(alternative, "token", None), getattr(alternative, "logprob", None))
            for alternative in (top if isinstance(top, list) else [])
        ]
        alternatives = {
            token: math.exp(max(min(logprob, 0.0), _MIN_LOGPROB))
            for token, logprob in pairs
            if isinstance(token, str) and isinstance(logprob, (int, float)) and not math.isnan(logprob)
        }
        tokens.append(Token(str(getattr(position, "token", "")), alternatives))
    return tuple(tokens)
