"""How well the answer fulfills the question's intent. A judge states the intent, and then rates the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from germane.score import Score
from germane.scorers.base.reply_parser import is_placeholder, parse_number, parse_text
from germane.scorers.base.text import shorten
from germane.scorers.prompting.judge_scorer import JudgeSession, SingleRequestScorer
from germane.scorers.prompting.prompt import PromptInputs
from germane.scorers.prompting.rating import require_scale

MIN_RATING, MAX_RATING = 1, 5
MAX_TEXT_CHARACTERS = 300
"""Maximum length of the intent and the summary of the answer; longer ones are truncated."""
VERDICTS = ("does not fulfill", "barely fulfills", "partly fulfills", "mostly fulfills", "fully fulfills")
"""The meanings of the ratings 1 to 5."""
SCHEMA = {
    "type": "object",
    "properties": {
        "intent": {"type": "string"},
        "given": {"type": "string"},
        "rating": {"type": "integer", "minimum": MIN_RATING, "maximum": MAX_RATING},
    },
    "required": ["intent", "given", "rating"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class IntentRating:
    """The judge's parsed reply."""

    intent: str
    given: str | None
    """What the answer provides, in the judge's words; None if the judge omitted it."""
    rating: float


class IntentMatch(SingleRequestScorer[IntentRating]):
    """How well the answer fulfills the intent behind the question: (rating - 1) / 4, from 0 to 1.

    In one request, the judge writes one sentence about what the user wants and one about what the answer gives, and
    then rates from 1 to 5 how well they match. Without the second sentence, small judges rate answers to other
    questions as high as answers to this one. Many scores are equal, because there are only five ratings. The score does
    not show whether the answer is true.

    Source: defined by germane.
    """

    name = "intent_match"
    version = "1"
    schema = SCHEMA
    max_tokens = 400

    def parse_reply(self, reply: Mapping[str, Any]) -> IntentRating:
        """Parse intent and rating. ``given`` only helps the judge to rate, so it may be missing."""
        require_scale(reply)
        given = reply.get("given")
        return IntentRating(
            intent=shorten(parse_text(reply.get("intent")), MAX_TEXT_CHARACTERS),
            given=None
            if not isinstance(given, str) or is_placeholder(given)
            else shorten(parse_text(given), MAX_TEXT_CHARACTERS),
            rating=parse_number(reply.get("rating"), MIN_RATING, MAX_RATING),
        )

    def score_reply(self, parsed: IntentRating, session: JudgeSession, inputs: PromptInputs) -> Score:
        """Return a score with the scaled rating. ``details`` contains ``intent``, ``given`` and ``rating``."""
        verdict = VERDICTS[int(parsed.rating + 0.5) - MIN_RATING]
        explanation = f'The answer {verdict} the intent: "{parsed.intent}"'
        return self.build_score(
            (parsed.rating - MIN_RATING) / (MAX_RATING - MIN_RATING),
            session,
            details={"intent": parsed.intent, "given": parsed.given, "rating": parsed.rating, **inputs.details()},
            explanation=f'{explanation}; the answer gives: "{parsed.given}"' if parsed.given else explanation,
        )
