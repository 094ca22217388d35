"""Does the answer give what the asker wanted? A judge says what that is, then how well the answer gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from germane.exchange import Exchange
from germane.score import Score
from germane.scorers.inquiry import Inquiry
from germane.scorers.judged import Judged
from germane.scorers.material import ANSWER_LIMIT, Material, material_of
from germane.scorers.parsing import as_number, as_text
from germane.scorers.prompt import Prompt, read_prompt
from germane.scorers.protocols import Judge
from germane.scorers.text import shorten

LEAST, GREATEST = 1, 5
INTENT_LIMIT = 300
"""Characters of the intent that are kept."""
VERDICTS = ("does not fulfil", "barely fulfils", "partly fulfils", "mostly fulfils", "fully fulfils")
"""What the ratings 1 to 5 mean."""
SCHEMA = {
    "type": "object",
    "properties": {
        "intent": {"type": "string"},
        "rating": {"type": "integer", "minimum": LEAST, "maximum": GREATEST},
    },
    "required": ["intent", "rating"],
    "additionalProperties": False,
}


class IntentMatch(Judged):
    """How well the answer fulfils the intent behind the question: (rating - 1) / 4, from 0 to 1.

    In one request the judge says in a sentence what the asker wants, then rates from 1 to 5 how well the answer gives
    it. Small judges use few of the five ratings, so many answers tie. It does not see whether what is said is true.
    """

    name = "intent_match"
    version = "1"

    def __init__(self, judge: Judge, *, remove_copies: bool = True) -> None:
        """With ``remove_copies`` the judge does not see copies of the question inside the answer."""
        super().__init__(judge)
        self.remove_copies = remove_copies

    def prompts(self) -> Sequence[Prompt]:
        """Return the one prompt."""
        return (read_prompt("intent_match"),)

    def parameters(self) -> Mapping[str, object]:
        """Return options, schema and limits."""
        return {"remove_copies": self.remove_copies, "schema": SCHEMA, "answer_limit": ANSWER_LIMIT}

    async def score(self, exchange: Exchange) -> Score:
        """Return the score; ``details`` holds the ``intent`` and the ``rating``.

        Raises:
            ScoringError: the judge failed, or its reply could not be read twice in a row.
        """
        material = material_of(exchange, remove_copies=self.remove_copies)
        if material.only_copies:
            explanation = "The answer only repeats the question."
            return await self.unasked(0.0, explanation=explanation, details=material.details())
        inquiry = Inquiry(self.judge)
        intent, rating = await inquiry.ask_json(
            read_prompt("intent_match"), material.values(), SCHEMA, _read, max_tokens=300
        )
        return self._scored(intent, rating, inquiry, material)

    def _scored(self, intent: str, rating: float, inquiry: Inquiry, material: Material) -> Score:
        details = {"intent": shorten(intent, INTENT_LIMIT), "rating": rating, **material.details()}
        value = (rating - LEAST) / (GREATEST - LEAST)
        return self.scored(value, inquiry, details=details, explanation=_explain(details["intent"], rating))


def _read(reply: Mapping[str, Any]) -> tuple[str, float]:
    return as_text(reply.get("intent")), as_number(reply.get("rating"), LEAST, GREATEST)


def _explain(intent: object, rating: float) -> str:
    return f'The answer {VERDICTS[int(rating + 0.5) - LEAST]} the intent: "{intent}"'
