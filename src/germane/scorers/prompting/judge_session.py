"""Judge requests of one score, with parsing, one retry, and usage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from germane.exchange import Message
from germane.scorers.base.json_reply import UnreadableReply, parse_json_object
from germane.scorers.base.protocols import MAX_REPLY_TOKENS, Judge, Reply
from germane.scorers.prompting.template import Prompt

RETRY_MESSAGE = Message(
    "user", "That was not the JSON asked for. Reply with that JSON object only, nothing before or after it."
)
_MAX_QUOTED_CHARACTERS = 2_000
"""Length to which an unreadable reply is truncated when it is sent back."""

Value = TypeVar("Value")


class JudgeSession:
    """The sequence of judge requests for one score."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.replies: list[Reply] = []
        """All replies in order."""

    async def ask(self, messages: Sequence[Message], **options: Any) -> Reply:
        """Send a request and record the reply. Options are those of :meth:`Judge.ask`.

        Raises:
            ScoringError: the judge did not reply.
        """
        reply = await self.judge.ask(messages, **options)
        self.replies.append(reply)
        return reply

    async def ask_again(self, messages: Sequence[Message], reply: Reply, request: Message, **options: Any) -> Reply:
        """Send an unreadable reply back with a request to correct it.

        Raises:
            ScoringError: the judge did not reply.
        """
        quoted = Message("assistant", reply.texts[0][:_MAX_QUOTED_CHARACTERS])
        return await self.ask([*messages, quoted, request], **options)

    async def ask_json(
        self,
        prompt: Prompt,
        values: Mapping[str, str],
        schema: Mapping[str, Any],
        parse: Callable[[Mapping[str, Any]], Value],
        *,
        max_tokens: int = MAX_REPLY_TOKENS,
        temperature: float = 0.0,
        top_tokens: int = 0,
    ) -> Value:
        """Return what ``parse`` makes of the JSON object in the reply, retrying once if the reply is unreadable.

        The last of ``replies`` is the one that was parsed. ``top_tokens`` is that of :meth:`Judge.ask`.

        Raises:
            ScoringError: the judge did not reply, or its second reply is unreadable, too (``unparsable`` or
                ``out_of_range``).
        """
        messages = prompt.fill(**values)
        options: dict[str, Any] = {"schema": schema, "max_tokens": max_tokens, "temperature": temperature}
        options |= {"top_tokens": top_tokens} if top_tokens else {}
        reply = await self.ask(messages, **options)
        try:
            return parse(parse_json_object(reply.texts[0]))
        except UnreadableReply:
            reply = await self.ask_again(messages, reply, RETRY_MESSAGE, **options)
            return parse(parse_json_object(reply.texts[0]))

    @property
    def model(self) -> str:
        """The model name that the server reported last, otherwise the configured one."""
        return next((reply.model for reply in reversed(self.replies) if reply.model), self.judge.model)

    @property
    def cost(self) -> float | None:
        """US dollars; None if no reply has a known cost."""
        costs = [reply.cost for reply in self.replies if reply.cost is not None]
        return sum(costs) if costs else None

    def tokens(self, kind: Literal["input_tokens", "output_tokens"]) -> int | None:
        """Return the tokens of all replies that report them; None if none does."""
        counts = [count for reply in self.replies if (count := getattr(reply, kind)) is not None]
        return sum(counts) if counts else None
