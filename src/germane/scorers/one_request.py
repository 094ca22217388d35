"""What scorers have in common that show a judge question and answer once, and read a value out of its reply."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from germane.exchange import Exchange
from germane.score import Score
from germane.scorers.inquiry import TOKENS, Inquiry
from germane.scorers.judged import Judged
from germane.scorers.material import ANSWER_LIMIT, Material, material_of
from germane.scorers.prompt import Prompt, read_prompt
from germane.scorers.protocols import Judge

Found = TypeVar("Found")


class OneRequest(Judged, Generic[Found]):
    """A scorer with one prompt, of its own name, and one schema."""

    schema: ClassVar[Mapping[str, Any]]
    max_tokens: ClassVar[int] = TOKENS

    def __init__(self, judge: Judge, *, remove_copies: bool = True) -> None:
        """With ``remove_copies`` the judge does not see copies of the question inside the answer."""
        super().__init__(judge)
        self.remove_copies = remove_copies

    @abstractmethod
    def read(self, reply: Mapping[str, Any]) -> Found:
        """Return what the judge said.

        Raises:
            Unreadable: it is not what was asked for.
        """

    @abstractmethod
    def scored_of(self, found: Found, inquiry: Inquiry, material: Material) -> Score:
        """Return the score of what the judge said."""

    def prompts(self) -> Sequence[Prompt]:
        """Return the one prompt."""
        return (read_prompt(self.name),)

    def parameters(self) -> Mapping[str, object]:
        """Return options, schema and limits."""
        return {"remove_copies": self.remove_copies, "schema": self.schema, "answer_limit": ANSWER_LIMIT}

    async def score(self, exchange: Exchange) -> Score:
        """Return the score, with what the judge said in ``details``.

        Raises:
            ScoringError: the judge failed, or its reply could not be read twice in a row.
        """
        material = material_of(exchange, remove_copies=self.remove_copies, contexts=False)
        if material.only_copies:
            explanation = "The answer only repeats the question."
            return await self.unasked(0.0, explanation=explanation, details=material.details())
        inquiry = Inquiry(self.judge)
        found = await inquiry.ask_json(
            read_prompt(self.name), material.values(), self.schema, self.read, max_tokens=self.max_tokens
        )
        return self.scored_of(found, inquiry, material)
