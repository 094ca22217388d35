"""Our scorers by name, and how each is made. What a maker is given beside the options is shared with the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from germane.scorers.answer_relevancy import AnswerRelevancy
from germane.scorers.protocols import Scorer
from germane.scorers.question_answer_similarity import QuestionAnswerSimilarity
from germane.settings import LOCAL

if TYPE_CHECKING:
    from germane.scorers.maker import Maker


def _answer_relevancy(maker: Maker, options: Mapping[str, Any]) -> Scorer:
    settings = maker.settings
    given = {
        "questions": settings.questions,
        "form": "few_shot" if settings.judge == LOCAL else "instructions",
        "noncommittal_votes": settings.noncommittal_votes,
        **options,
    }
    return AnswerRelevancy(maker.judge, maker.embedder, **given)


def _question_answer_similarity(maker: Maker, options: Mapping[str, Any]) -> Scorer:
    return QuestionAnswerSimilarity(maker.embedder, **options)


CATALOGUE: Mapping[str, Callable[[Maker, Mapping[str, Any]], Scorer]] = {
    AnswerRelevancy.name: _answer_relevancy,
    QuestionAnswerSimilarity.name: _question_answer_similarity,
}
