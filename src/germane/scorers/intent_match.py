"""Does the answer give what the asker wanted? A judge says what that is, then how well the answer gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
TEXT_LIMIT = 300
"""Characters of the intent, and of what the answer gives, that are kept."""
VERDICTS = ("does not fulfil", "barely fulfils", "partly fulfils", "mostly fulfils", "fully fulfils")
"""What the ratings 1 to 5 mean."""
SCHEMA = {
    "type": "object",
    "properties": {
        "intent": {"type": "string"},
        "given": {"type": "string"},
        "rating": {"type": "integer", "minimum": LEAST, "maximum": GREATEST},
    },
    "required": ["intent", "given", "rating"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Found:
    """What the judge said."""

    intent: str
    given: str | None
    rating: float

    @property
    def explanation(self) -> str:
        """The intent and the verdict in words."""
        verdict = f'The answer {VERDICTS[int(self.rating + 0.5) - LEAST]} the intent: "{self.intent}"'
        return f'{verdict}; it gives: "{self.given}"' if self.given else verdict


class IntentMatch(Judged):
    """How well the answer fulfils the intent behind the question: (rating - 1) / 4, from 0 to 1.

    In one request the judge says in a sentence what the asker wants, in another what the answer gives, then rates from
    1 to 5 how well the one fits the other. Without the second sentence small judges rate an answer to something else
    like one to the question. Five ratings make ties. It does not see whether what is said is true.

    Source: the form is ours.
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
        """Return the score; ``details`` holds ``intent``, ``given`` and ``rating``.

        Raises:
            ScoringError: the judge failed, or its reply could not be read twice in a row.
        """
        material = material_of(exchange, remove_copies=self.remove_copies, contexts=False)
        if material.only_copies:
            explanation = "The answer only repeats the question."
            return await self.unasked(0.0, explanation=explanation, details=material.details())
        inquiry = Inquiry(self.judge)
        values = material.values()
        found = await inquiry.ask_json(read_prompt("intent_match"), values, SCHEMA, _read, max_tokens=400)
        return self._scored(found, inquiry, material)

    def _scored(self, found: Found, inquiry: Inquiry, material: Material) -> Score:
        value = (found.rating - LEAST) / (GREATEST - LEAST)
        details = {"intent": found.intent, "given": found.given, "rating": found.rating, **material.details()}
        return self.scored(value, inquiry, details=details, explanation=found.explanation)


def _read(reply: Mapping[str, Any]) -> Found:
    """Return intent and rating; what the answer gives only helps the judge to rate, and may be missing."""
    given = reply.get("given")
    return Found(
        intent=shorten(as_text(reply.get("intent")), TEXT_LIMIT),
        given=shorten(as_text(given), TEXT_LIMIT) if isinstance(given, str) and given.strip() else None,
        rating=as_number(reply.get("rating"), LEAST, GREATEST),
    )
