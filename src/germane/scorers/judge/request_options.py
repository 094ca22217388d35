"""Options of a judge request, and which of them the server supports."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from germane.score import UnscoredReason
from germane.scorers.judge.client import reason_for_error, server_message

if TYPE_CHECKING:
    import openai

_SUSPECTS = ("response_format", "logprobs", "max_tokens", "temperature", "stop", "n")
"""Options that some servers and models reject with HTTP 400, in the order in which they are dropped."""
_UNNAMED_SUSPECTS = frozenset({"response_format", "logprobs", "n"})
"""Options that are dropped even if the error does not name them."""


def build_request_options(
    *,
    n: int,
    temperature: float,
    max_tokens: int,
    stop: Sequence[str],
    schema: Mapping[str, Any] | None,
    top_tokens: int,
) -> dict[str, Any]:
    """Convert the arguments of :meth:`Judge.ask` to options of the OpenAI protocol."""
    options: dict[str, Any] = {"temperature": temperature, "max_tokens": max_tokens}
    if n > 1:
        options["n"] = n
    if stop:
        options["stop"] = list(stop)
    if schema is not None:
        json_schema = {"name": "reply", "strict": True, "schema": dict(schema)}
        options["response_format"] = {"type": "json_schema", "json_schema": json_schema}
    if top_tokens:
        options |= {"logprobs": True, "top_logprobs": top_tokens}
    return options


class SupportedOptions:
    """The options that one server supports. An option that it rejects is left out of later requests."""

    def __init__(self) -> None:
        self._rejected: frozenset[str] = frozenset()
        self._proven: frozenset[str] = frozenset()

    async def send(self, options: Mapping[str, Any], post: Callable[[Mapping[str, Any]], Awaitable[Any]]) -> Any:
        """Call ``post`` with the options, repeating it without any option that the server rejects.

        An option is only remembered as rejected if leaving it out helped, because a request can be invalid for other
        reasons.
        """
        import openai

        rejected = self._rejected
        while True:
            try:
                reply = await post(_without(options, rejected))
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                sent = [name for name in _SUSPECTS if name in options and name not in rejected]
                suspect = self._find_rejected_option(error, sent)
                if suspect is None:
                    raise
                rejected |= {suspect}
            else:
                self._rejected |= rejected
                self._proven |= options.keys() - rejected
                return reply

    def _find_rejected_option(self, error: openai.APIStatusError, sent: Sequence[str]) -> str | None:
        """Return the option that the error names, otherwise one that the server never accepted so far."""
        if reason_for_error(error) is not UnscoredReason.JUDGE_REJECTED or error.code == "model_not_found":
            return None
        message = f"{error.param} {server_message(error)}"
        named = [name for name in sent if name in message.split() or f"'{name}'" in message or f'"{name}"' in message]
        unproven = [name for name in sent if name in _UNNAMED_SUSPECTS - self._proven]
        return next(iter(named + unproven), None)


def _without(options: Mapping[str, Any], rejected: frozenset[str]) -> dict[str, Any]:
    rejected |= {"top_logprobs"} if "logprobs" in rejected else set()
    sent = {name: value for name, value in options.items() if name not in rejected}
    if "max_tokens" in rejected and "max_tokens" in options:
        sent["max_completion_tokens"] = options["max_tokens"]
    return sent
