"""What a request asks of a server besides its messages, and which of it the server takes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from germane.score import Reason
from germane.scorers.judge.client import reason_of, said_by

if TYPE_CHECKING:
    import openai

_SUSPECTS = ("response_format", "logprobs", "max_tokens", "temperature", "stop", "n")
"""What some servers and models refuse with HTTP 400, in the order in which they are suspected."""
_UNNAMED_SUSPECTS = frozenset({"response_format", "logprobs", "n"})
"""Those that are suspected although the server does not name them."""


def options_for(
    *,
    n: int,
    temperature: float,
    max_tokens: int,
    stop: Sequence[str],
    schema: Mapping[str, Any] | None,
    top_tokens: int,
) -> dict[str, Any]:
    """Return the options of a request as the protocol has them; arguments are those of :meth:`Judge.ask`."""
    wanted: dict[str, Any] = {"temperature": temperature, "max_tokens": max_tokens}
    if n > 1:
        wanted["n"] = n
    if stop:
        wanted["stop"] = list(stop)
    if schema is not None:
        form = {"name": "reply", "strict": True, "schema": dict(schema)}
        wanted["response_format"] = {"type": "json_schema", "json_schema": form}
    if top_tokens:
        wanted |= {"logprobs": True, "top_logprobs": top_tokens}
    return wanted


class Taken:
    """What one server takes: an option that it refused is left out from then on."""

    def __init__(self) -> None:
        self._refused: frozenset[str] = frozenset()
        self._proven: frozenset[str] = frozenset()

    async def send(self, wanted: Mapping[str, Any], post: Callable[[Mapping[str, Any]], Awaitable[Any]]) -> Any:
        """Return what ``post`` does; where the server refuses an option, again without it.

        Only what helped is remembered: a request may be bad for another reason.
        """
        import openai

        refused = self._refused
        while True:
            try:
                reply = await post(_without(wanted, refused))
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                suspect = self._suspect(error, [name for name in _SUSPECTS if name in wanted and name not in refused])
                if suspect is None:
                    raise
                refused |= {suspect}
            else:
                self._refused |= refused
                self._proven |= wanted.keys() - refused
                return reply

    def _suspect(self, error: openai.APIStatusError, sent: Sequence[str]) -> str | None:
        """Return the option that the server may have refused: the one it names, else one it never took yet."""
        if reason_of(error) is not Reason.JUDGE_REJECTED or error.code == "model_not_found":
            return None
        said = f"{error.param} {said_by(error)}"
        named = [name for name in sent if name in said.split() or f"'{name}'" in said or f'"{name}"' in said]
        unproven = [name for name in sent if name in _UNNAMED_SUSPECTS - self._proven]
        return next(iter(named + unproven), None)


def _without(wanted: Mapping[str, Any], refused: frozenset[str]) -> dict[str, Any]:
    refused |= {"top_logprobs"} if "logprobs" in refused else set()
    sent = {name: value for name, value in wanted.items() if name not in refused}
    if "max_tokens" in refused and "max_tokens" in wanted:
        sent["max_completion_tokens"] = wanted["max_tokens"]
    return sent
