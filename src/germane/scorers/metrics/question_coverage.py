"""The share of the question's parts that the answer addresses. A judge splits the question and checks each part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from germane.score import Score
from germane.scorers.base.reply_parser import UnreadableReply, is_placeholder, parse_choice, parse_list, parse_text
from germane.scorers.base.text import shorten
from germane.scorers.prompting.judge_scorer import JudgeSession, SingleRequestScorer
from germane.scorers.prompting.prompt import PromptInputs

MAX_SUB_QUESTIONS = 8
MAX_TEXT_CHARACTERS = 300
"""Maximum length of sub-questions and quotations; longer ones are truncated."""
VERDICTS = {"yes": True, "no": False}
SCHEMA = {
    "type": "object",
    "properties": {
        "asked": {"type": "array", "minItems": 1, "maxItems": MAX_SUB_QUESTIONS, "items": {"type": "string"}},
        "sub_questions": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_SUB_QUESTIONS,
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
    """One part of the question, and the judge's verdict."""

    text: str
    addressed: bool
    quote: str = ""
    """The part of the answer that the judge quoted."""

    def details(self) -> dict[str, object]:
        """Return the sub-question as a dict that can be stored in the score's details."""
        return {"question": self.text, "addressed": self.addressed, "quote": self.quote}


class QuestionCoverage(SingleRequestScorer[list[SubQuestion]]):
    """Share of a question's parts that the answer addresses: covered / total, from 0 to 1.

    In one request, the judge lists 1 to 8 sub-questions. For each one, it quotes the matching part of the answer and
    gives a verdict, yes or no. Without the list and the quotations, small judges say yes to everything, or omit parts
    that they do not find. An answer to one of two parts gets a score of 0.5, however long it is. The score does not
    show whether the answer is true. If a question has only one part, the score is 0 or 1.

    Source: sub-question coverage, Xie et al. 2024, arXiv 2410.15531. germane adds the quotations.
    """

    name = "question_coverage"
    version = "1"
    schema = SCHEMA

    def parse_reply(self, reply: Mapping[str, Any]) -> list[SubQuestion]:
        """Parse the sub-questions. Duplicates are removed, because a judge that fails to stop repeats itself."""
        sub_questions: dict[str, SubQuestion] = {}
        for item in parse_list(reply.get("sub_questions")):
            if not isinstance(item, Mapping):
                raise UnreadableReply(f"{item!r:.80} is not a sub-question with its verdict")
            quote = item.get("quote")
            parsed = SubQuestion(
                text=shorten(parse_text(item.get("question")), MAX_TEXT_CHARACTERS),
                addressed=parse_choice(item.get("addressed"), VERDICTS),
                quote=""
                if not isinstance(quote, str) or is_placeholder(quote)
                else shorten(parse_text(quote), MAX_TEXT_CHARACTERS),
            )
            if sub_questions.setdefault(parsed.text.casefold(), parsed).addressed != parsed.addressed:
                raise UnreadableReply(f"two verdicts on {parsed.text!r:.80}")
        if not 1 <= len(sub_questions) <= MAX_SUB_QUESTIONS:
            raise UnreadableReply(f"{len(sub_questions)} sub-questions, not 1 to {MAX_SUB_QUESTIONS}")
        listed = reply.get("asked")  # the judge may omit the list
        if isinstance(listed, list):
            count = len({" ".join(str(text).split()).casefold() for text in listed})
            if len(sub_questions) < count:
                raise UnreadableReply(f"verdicts on {len(sub_questions)} of {count} sub-questions")
        return list(sub_questions.values())

    def score_reply(self, parsed: list[SubQuestion], session: JudgeSession, inputs: PromptInputs) -> Score:
        """Return a score with the covered share. ``details`` contains ``covered``, ``total`` and each sub-question."""
        missed = [f'"{sub_question.text}"' for sub_question in parsed if not sub_question.addressed]
        covered, total = len(parsed) - len(missed), len(parsed)
        explanation = f"The answer addresses {covered} of {total} part{'s' if total > 1 else ''} of the question"
        return self.build_score(
            covered / total,
            session,
            details={
                "covered": covered,
                "total": total,
                "sub_questions": [sub_question.details() for sub_question in parsed],
                **inputs.details(),
            },
            explanation=f"{explanation}; it misses {', '.join(missed)}." if missed else f"{explanation}.",
        )
