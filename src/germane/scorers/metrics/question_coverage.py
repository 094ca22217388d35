"""Does the answer address all that was asked? A judge breaks the question into parts, and looks for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from germane.score import Score
from germane.scorers.base.json_reply import Unreadable, as_choice, as_list, as_text
from germane.scorers.base.text import shorten
from germane.scorers.prompting.inputs import Material
from germane.scorers.prompting.judge_scorer import OneRequest
from germane.scorers.prompting.judge_session import Inquiry

MOST = 8
"""Sub-questions that one question may have."""
TEXT_LIMIT = 300
"""Characters of a sub-question that are kept."""
VERDICTS = {"yes": True, "no": False}
SCHEMA = {
    "type": "object",
    "properties": {
        "asked": {"type": "array", "minItems": 1, "maxItems": MOST, "items": {"type": "string"}},
        "sub_questions": {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST,
            "items": {
                "type": "object",
                "properties": {
                    "question": {"type": "string"},
                    "quote": {"type": "string"},
                    "addressed": {"type": "string", "enum": list(VERDICTS)},
                },
                "required": ["question", "quote", "addressed"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["asked", "sub_questions"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class SubQuestion:
    """One thing that the question asks for."""

    text: str
    addressed: bool
    quote: str = ""
    """The words of the answer that the judge names for it."""

    def details(self) -> dict[str, object]:
        """Return what is kept of it."""
        return {"question": self.text, "addressed": self.addressed, "quote": self.quote}


class QuestionCoverage(OneRequest[list[SubQuestion]]):
    """Share of a question's parts that the answer addresses: covered / total, from 0 to 1.

    The judge first lists the 1 to 8 sub-questions of the question, then quotes for each what the answer says of it and
    gives its verdict, yes or no: one request for an exchange. (Without list and quote, small judges say yes to all, or
    leave out what they do not find.) Half an answer to a question of two parts has .5, however much it says of the one.
    It does not see whether what is said is true; of a question with one part it says 0 or 1 only.

    Source: sub-question coverage, Xie et al. 2024, arXiv 2410.15531; the quotes are ours.
    """

    name = "question_coverage"
    version = "1"

    schema = SCHEMA

    def read(self, reply: Mapping[str, Any]) -> list[SubQuestion]:
        """Return the sub-questions with their verdicts."""
        return _read(reply)

    def scored_of(self, found: list[SubQuestion], inquiry: Inquiry, material: Material) -> Score:
        """Return the share that is covered; ``details`` holds ``covered``, ``total`` and each sub-question."""
        covered = sum(each.addressed for each in found)
        details = {
            "covered": covered,
            "total": len(found),
            "sub_questions": [each.details() for each in found],
            **material.details(),
        }
        return self.scored(covered / len(found), inquiry, details=details, explanation=_explain(found))


def _read(reply: Mapping[str, Any]) -> list[SubQuestion]:
    """Return the sub-questions, each once: a judge that runs on says the same again."""
    found: dict[str, SubQuestion] = {}
    for item in as_list(reply.get("sub_questions")):
        each = _read_one(item)
        if found.setdefault(each.text.casefold(), each).addressed != each.addressed:
            raise Unreadable(f"two verdicts on {each.text!r:.80}")
    if not 1 <= len(found) <= MOST:
        raise Unreadable(f"{len(found)} sub-questions, not 1 to {MOST}")
    if len(found) < (asked := _count(reply.get("asked"))):
        raise Unreadable(f"verdicts on {len(found)} of {asked} sub-questions")
    return list(found.values())


def _read_one(item: Any) -> SubQuestion:
    if not isinstance(item, Mapping):
        raise Unreadable(f"{item!r:.80} is not a sub-question with its verdict")
    quote = item.get("quote")
    return SubQuestion(
        text=shorten(as_text(item.get("question")), TEXT_LIMIT),
        addressed=as_choice(item.get("addressed"), VERDICTS),
        quote=shorten(as_text(quote), TEXT_LIMIT) if isinstance(quote, str) and quote.strip() else "",
    )


def _count(asked: Any) -> int:
    """Return how many different sub-questions were listed first; a judge may leave that out."""
    return len({" ".join(str(text).split()).casefold() for text in asked}) if isinstance(asked, list) else 0


def _explain(found: Sequence[SubQuestion]) -> str:
    missed = [f'"{each.text}"' for each in found if not each.addressed]
    covered, total = len(found) - len(missed), len(found)
    head = f"The answer addresses {covered} of {total} part{'s' if total > 1 else ''} of the question"
    return f"{head}; it misses {', '.join(missed)}." if missed else f"{head}."
