"""Requests and replies in the OpenAI API format, and detection of the options that a server supports."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from germane.errors import ScoringError
from germane.retry_after import parse_retry_after
from germane.score import UnscoredReason
from germane.scorers.base.protocols import MAX_TOTAL_PROBABILITY, JudgeOptions, Reply, Token
from germane.scorers.base.reply_parser import MAX_REPLY_CHARACTERS
from germane.scorers.base.text import shorten, strip_control_characters
from germane.scorers.judge.client import OTHER_CODES, ErrorReply, error_codes, reason_for_error, server_message

if TYPE_CHECKING:
    import openai

JUDGE_OPTIONS: Mapping[str, Collection[str]] = {
    "response_format": ("response_format", "json_schema"), "logprobs": ("logprobs", "top_logprobs"),
    "max_tokens": ("max_tokens",), "temperature": ("temperature",), "stop": ("stop",), "n": ("n",),
}  # fmt: skip
"""Options that some servers and models reject, in the order in which they are dropped, and the words that name them."""
_DROPPED_IF_NAMED = frozenset({"max_tokens", "temperature", "stop"})
"""Options that are only dropped if the error names them."""
_PUNCTUATION = "'\"`{}[]().,:;"
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

    def __init__(self, words: Mapping[str, Collection[str]]) -> None:
        """Watch these options. Errors name them with the given words."""
        self._words = words
        self._rejected: frozenset[str] = frozenset()
        self._proven: frozenset[str] = frozenset()

    async def send(self, options: Mapping[str, Any], post: Callable[[Mapping[str, Any]], Awaitable[Any]]) -> Any:
        """Call ``post`` with the options, repeat the call without options that the server rejects, and return the
        result.

        The HTTP status does not matter, because servers do not agree on one. An option is remembered as rejected only
        if omitting it helped, because a request can be invalid for other reasons. Unless the error was permanent and
        named the option, the option is then tried once more, because it can also have been an outage.
        """
        import openai

        known = omitted = self._rejected  # plus the options that this call tries to omit
        is_certain = True
        while True:
            try:
                reply = await post(_without(options, omitted))
            except (openai.APIStatusError, ErrorReply) as error:
                named, unnamed = self._suspects(error, options.keys() - omitted)
                if not named + unnamed:
                    raise
                omitted |= {(named + unnamed)[0]}
                is_certain &= bool(named) and not reason_for_error(error).is_transient
            else:
                break
        if not is_certain:
            with suppress(openai.APIStatusError, ErrorReply):
                reply, omitted = await post(_without(options, known)), known
        self._rejected |= omitted
        self._proven |= options.keys() - omitted
        return reply

    def _suspects(
        self, error: openai.APIStatusError | ErrorReply, sent: Collection[str]
    ) -> tuple[list[str], list[str]]:
        """Return the options that the error names, and others that the server has never accepted.

        Options are not to blame if the server states another cause, or when it will be available again.
        """
        response, reason = getattr(error, "response", None), reason_for_error(error)
        is_explained = reason is UnscoredReason.UNPARSABLE or not OTHER_CODES.isdisjoint(error_codes(error))
        if is_explained or (response is not None and parse_retry_after(response.headers)):
            return [], []
        words = {word.strip(_PUNCTUATION) for word in f"{getattr(error, 'param', '')} {server_message(error)}".split()}
        suspects = [name for name in self._words if name in sent]
        named = [name for name in suspects if not words.isdisjoint(self._words[name])]
        is_busy = reason in (UnscoredReason.JUDGE_RATE_LIMITED, UnscoredReason.JUDGE_TIMEOUT)
        return named, [name for name in suspects if name not in _DROPPED_IF_NAMED | self._proven and not is_busy]


def _without(options: Mapping[str, Any], omitted: Collection[str]) -> dict[str, Any]:
    sent = {name: value for name, value in options.items() if name not in omitted}
    if "logprobs" in omitted:
        sent.pop("top_logprobs", None)
    if "max_tokens" in omitted and "max_tokens" in options:
        sent["max_completion_tokens"] = options["max_tokens"]
    return sent


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
        raise _empty_reply_error(choices)
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


def _empty_reply_error(choices: Sequence[Any]) -> ScoringError:
    if any(_is_refusal(choice) for choice in choices):
        return ScoringError(UnscoredReason.JUDGE_REFUSED, "the judge or its content filter refused to answer")
    why = ""
    if any(_is_cut_off(choice) for choice in choices):
        why = ": the token limit was reached during reasoning"
    elif any(_has_reasoning(choice) for choice in choices):
        why = ": it consists of reasoning only"
    return ScoringError(UnscoredReason.UNPARSABLE, f"the judge's reply is empty{why}")


def served_model(completion: Any) -> str | None:
    """Return the model name that the server reports, if any."""
    return shorten(strip_control_characters(str(getattr(completion, "model", None) or "")), 200) or None


def _parse_text(choice: Any) -> str:
    content = getattr(getattr(choice, "message", None), "content", None)
    if isinstance(content, list):
        parts = [getattr(part, "text", None) for part in content if getattr(part, "type", None) == "text"]
        content = "".join(part for part in parts if isinstance(part, str))
    return content[:MAX_REPLY_CHARACTERS] if isinstance(content, str) and not _is_refusal(choice) else ""


def _has_reasoning(choice: Any) -> bool:
    """Return whether a choice without text contains reasoning, under any of the names that servers use."""
    message = getattr(choice, "message", None)
    return any(getattr(message, name, None) for name in ("reasoning_content", "reasoning", "thinking", "content"))


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
    """Return the probability of each alternative token; empty if a server sends other values than log probabilities."""
    probabilities: dict[str, float] = {}
    for alternative in top if isinstance(top, list) else []:
        token, logprob = getattr(alternative, "token", None), getattr(alternative, "logprob", None)
        if not isinstance(token, str) or not isinstance(logprob, (int, float)) or isinstance(logprob, bool):
            return {}
        if not logprob <= _MAX_LOGPROB:  # greater, or NaN
            return {}
        probabilities[token] = math.exp(max(min(logprob, 0.0), _MIN_LOGPROB))
    return probabilities if math.fsum(probabilities.values()) <= MAX_TOTAL_PROBABILITY else {}
