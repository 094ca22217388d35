"""Requests and replies in the OpenAI API format, and detection of the options that a server supports."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from germane.errors import ScoringError
from germane.score import UnscoredReason
from germane.scorers.base.protocols import MAX_TOTAL_PROBABILITY, JudgeOptions, Reply, Token
from germane.scorers.base.reply_parser import MAX_REPLY_CHARACTERS
from germane.scorers.base.text import shorten, strip_control_characters
from germane.scorers.judge.client import reason_for_error, server_message

if TYPE_CHECKING:
    import openai

_SUSPECTS = ("response_format", "logprobs", "max_tokens", "temperature", "stop", "n")
"""Options that some servers and models reject with HTTP 400, in the order in which they are dropped."""
_UNNAMED_SUSPECTS = frozenset({"response_format", "logprobs", "n"})
"""Options that are dropped even if the error does not name them."""
_COMPLETE = frozenset({"", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "tool_calls", "function_call"})
_CUT_OFF = frozenset({"length", "max_tokens", "model_length"})
_REFUSED = frozenset({"content_filter", "safety", "recitation", "refusal", "blocklist", "prohibited_content", "spii"})
"""Finish reasons used by various servers, in lowercase. All other finish reasons are server failures."""
_MAX_TOKEN_COUNT = 100_000_000
"""Maximum valid token count. Larger counts are ignored, because they would permanently exhaust a budget or a rate
limit.
"""
_MAX_LOGPROB = 0.01
"""Maximum valid log probability. It exceeds 0 to allow for rounding."""
_MIN_LOGPROB = -10_000.0
"""Lower limit for log probabilities. Servers may send -infinity or a large negative number for a probability of 0."""


def build_request_options(given: JudgeOptions) -> dict[str, Any]:
    """Return all options of :meth:`Judge.ask` as a dict of request options in the OpenAI API format."""
    options: dict[str, Any] = {"temperature": given["temperature"], "max_tokens": given["max_tokens"]}
    if given["n"] > 1:
        options["n"] = given["n"]
    if given["stop"]:
        options["stop"] = list(given["stop"])
    if given["schema"] is not None:
        json_schema = {"name": "reply", "strict": True, "schema": dict(given["schema"])}
        options["response_format"] = {"type": "json_schema", "json_schema": json_schema}
    if given["top_tokens"]:
        options |= {"logprobs": True, "top_logprobs": given["top_tokens"]}
    return options


class SupportedOptions:
    """The options that one server supports. An option that it rejects is omitted from later requests."""

    def __init__(self) -> None:
        self._rejected: frozenset[str] = frozenset()
        self._proven: frozenset[str] = frozenset()

    async def send(self, options: Mapping[str, Any], post: Callable[[Mapping[str, Any]], Awaitable[Any]]) -> Any:
        """Call ``post`` with the options, repeat the call without options that the server rejects, and return the
        result.

        An option is remembered as rejected only if omitting it helped, because a request can be invalid for other
        reasons.
        """
        import openai

        omitted = self._rejected  # plus the options that this call tries to omit
        while True:
            sent = {name: value for name, value in options.items() if name not in omitted}
            if "logprobs" in omitted:
                sent.pop("top_logprobs", None)
            if "max_tokens" in omitted and "max_tokens" in options:
                sent["max_completion_tokens"] = options["max_tokens"]
            try:
                reply = await post(sent)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                suspects = [name for name in _SUSPECTS if name in options and name not in omitted]
                suspect = self._find_rejected_option(error, suspects)
                if suspect is None:
                    raise
                omitted |= {suspect}
            else:
                self._rejected |= omitted
                self._proven |= options.keys() - omitted
                return reply

    def _find_rejected_option(self, error: openai.APIStatusError, sent: Sequence[str]) -> str | None:
        """Return the option that the error names, or else one that the server has never accepted, or None."""
        if reason_for_error(error) is not UnscoredReason.JUDGE_REJECTED or error.code == "model_not_found":
            return None
        message = f"{error.param} {server_message(error)}"
        named = [name for name in sent if name in message.split() or f"'{name}'" in message or f'"{name}"' in message]
        unproven = [name for name in sent if name in _UNNAMED_SUSPECTS - self._proven]
        return next(iter(named + unproven), None)


def parse_reply(completion: Any) -> Reply:
    """Convert a completion to a reply. Texts far longer than any reply that germane requests are truncated.

    Raises:
        ScoringError: the completion is empty (``unparsable``), a refusal (``judge_refused``), or incomplete because the
            server failed (``judge_unreachable``).
    """
    choices: Any = getattr(completion, "choices", None)
    if not isinstance(choices, list) or not choices:
        raise ScoringError(UnscoredReason.UNPARSABLE, "the reply contains no choices")
    for choice in choices:
        reason = _finish_reason(choice)
        if not (reason in _COMPLETE | _REFUSED or _is_cut_off(choice)):
            raise ScoringError(UnscoredReason.JUDGE_UNREACHABLE, f"the reply ended with finish_reason {reason!r:.80}")
    texts = tuple(_parse_text(choice) for choice in choices)
    if not any(text.strip() for text in texts):
        if any(_is_refusal(choice) for choice in choices):
            raise ScoringError(UnscoredReason.JUDGE_REFUSED, "the judge or its content filter refused to answer")
        if any(_is_cut_off(choice) for choice in choices):
            raise ScoringError(
                UnscoredReason.UNPARSABLE, "the judge's reply is empty: the token limit was reached during reasoning"
            )
        raise ScoringError(UnscoredReason.UNPARSABLE, "the judge's reply is empty")
    usage = getattr(completion, "usage", None)
    output_tokens = _parse_count(usage, "completion_tokens")
    if output_tokens is not None:
        # With n > 1, some servers count only one choice. A reply has at least as many tokens as words.
        output_tokens = max(output_tokens, sum(len(text.split()) for text in texts))
    tokens = []
    positions = getattr(getattr(choices[0], "logprobs", None), "content", None)
    for position in positions if isinstance(positions, list) else []:
        top = getattr(position, "top_logprobs", None)
        tokens.append(Token(str(getattr(position, "token", "")), _parse_alternatives(top)))
    return Reply(
        texts=texts,
        input_tokens=_parse_count(usage, "prompt_tokens"),
        output_tokens=output_tokens,
        model=served_model(completion),
        first_token=tokens[0].alternatives if tokens else {},
        tokens=tuple(tokens),
        cut_off=frozenset(index for index, choice in enumerate(choices) if _is_cut_off(choice)),
    )


def served_model(completion: Any) -> str | None:
    """Return the model name that the server reports, if any."""
    return shorten(strip_control_characters(str(getattr(completion, "model", None) or "")), 200) or None


def _parse_text(choice: Any) -> str:
    content = getattr(getattr(choice, "message", None), "content", None)
    if isinstance(content, list):
        parts = [getattr(part, "text", None) for part in content if getattr(part, "type", None) == "text"]
        content = "".join(part for part in parts if isinstance(part, str))
    return content[:MAX_REPLY_CHARACTERS] if isinstance(content, str) and not _is_refusal(choice) else ""


def _is_refusal(choice: Any) -> bool:
    refusal = getattr(getattr(choice, "message", None), "refusal", None)
    return bool(refusal) or _finish_reason(choice) in _REFUSED


def _is_cut_off(choice: Any) -> bool:
    reason = _finish_reason(choice)
    return reason in _CUT_OFF or ("max" in reason and "token" in reason)


def _finish_reason(choice: Any) -> str:
    reason = getattr(choice, "finish_reason", None)
    return "" if reason is None else str(reason).strip().lower()


def _parse_count(usage: Any, name: str) -> int | None:
    count = getattr(usage, name, None)
    is_valid = isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= _MAX_TOKEN_COUNT
    return count if is_valid else None


def _parse_alternatives(top: Any) -> dict[str, float]:
    """Return the probability of each alternative token. The result is empty if the values are not log probabilities.

    Some servers send probabilities, zeros or Booleans instead.
    """
    probabilities: dict[str, float] = {}
    for alternative in top if isinstance(top, list) else []:
        token, logprob = getattr(alternative, "token", None), getattr(alternative, "logprob", None)
        if not isinstance(token, str) or not isinstance(logprob, (int, float)) or isinstance(logprob, bool):
            return {}
        if not logprob <= _MAX_LOGPROB:  # greater, or NaN
            return {}
        probabilities[token] = math.exp(max(min(logprob, 0.0), _MIN_LOGPROB))
    return probabilities if math.fsum(probabilities.values()) <= MAX_TOTAL_PROBABILITY else {}
