"""Does the answer give what the asker wanted? A judge says what that is, then how well the answer gives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from germane.score import Score
from germane.scorers.base.json_reply import as_number, as_text
from germane.scorers.base.text import shorten
from germane.scorers.prompting.inputs import Material
from germane.scorers.prompting.judge_scorer import OneRequest
from germane.scorers.prompting.judge_session import Inquiry

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


class IntentMatch(OneRequest[Found]):
    """How well the answer fulfils the intent behind the question: (rating - 1) / 4, from 0 to 1.

    In one request the judge says in a sentence what the asker wants, in another what the answer gives, then rates from
    1 to 5 how well the one fits the other. Without the second sentence small judges rate an answer to something else
    like one to the question. Five ratings make ties. It does not see whether what is said is true.

    Source: the form is ours.
    """

    name = "intent_match"
    version = "1"

    schema = SCHEMA
    max_tokens = 400

    def read(self, reply: Mapping[str, Any]) -> Found:
        """Return intent and rating."""
        return _read(reply)

    def scored_of(self, found: Found, inquiry: Inquiry, material: Material) -> Score:
        """Return the rating from 0 to 1; ``details`` holds ``intent``, ``given`` and ``rating``."""
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
