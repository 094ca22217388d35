"""What one score asks its judge, how the replies are read, and what that took."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from germane.scorers.base.json_reply import Unreadable, json_object
from germane.scorers.base.protocols import Judge, Message, Reply
from germane.scorers.prompting.template import Prompt

Value = TypeVar("Value")

TOKENS = 800
"""What a judge may write in one reply, more than is asked for: one that thinks first does so within them."""
TRIAL = Message("user", "Reply with: ok")
"""Asks for next to nothing: what counts is whether it is answered, by whom, and in what form."""
AGAIN = Message(
    "user", "That was not the JSON asked for. Reply with that JSON object only, nothing before or after it."
)


class Inquiry:
    """The requests of one score, one after another."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.replies: list[Reply] = []
        """In the order in which they came."""

    async def ask(self, messages: Sequence[Message], **options: Any) -> Reply:
        """Ask the judge, and keep the reply; options are those of :meth:`Judge.ask`.

        Raises:
            ScoringError: the judge gave no reply.
        """
        reply = await self.judge.ask(messages, **options)
        self.replies.append(reply)
        return reply

    async def ask_json(
        self,
        prompt: Prompt,
        values: Mapping[str, str],
        schema: Mapping[str, Any],
        read: Callable[[Mapping[str, Any]], Value],
        *,
        max_tokens: int = TOKENS,
        temperature: float = 0.0,
        top_tokens: int = 0,
    ) -> Value:
        """Return what ``read`` makes of the JSON object in the reply. One that it cannot read is asked for once more.

        The reply that was read is the last of ``replies``; ``top_tokens`` is that of :meth:`Judge.ask`.

        Raises:
            ScoringError: the judge gave no reply, or none that can be read: ``unparsable`` or ``out_of_range``.
        """
        messages = prompt.fill(**values)
        options: dict[str, Any] = {"schema": schema, "max_tokens": max_tokens, "temperature": temperature}
        options |= {"top_tokens": top_tokens} if top_tokens else {}
        reply = await self.ask(messages, **options)
        try:
            return read(json_object(reply.texts[0]))
        except Unreadable:
            said = Message("assistant", reply.texts[0][:2_000])
            reply = await self.ask([*messages, said, AGAIN], **options)
            return read(json_object(reply.texts[0]))

    @property
    def model(self) -> str:
        """The judge's model as its server named it last, else as it is configured."""
        return next((reply.model for reply in reversed(self.replies) if reply.model), self.judge.model)

    @property
    def cost(self) -> float | None:
        """US dollars; None where no reply's price is known."""
        costs = [reply.cost for reply in self.replies if reply.cost is not None]
        return sum(costs) if costs else None

    def tokens(self, kind: Literal["input_tokens", "output_tokens"]) -> int | None:
        """Return the tokens of all replies that told them; None where none did."""
        counts = [count for reply in self.replies if (count := getattr(reply, kind)) is not None]
        return sum(counts) if counts else None
