"""Our scorers by name, and how each is made. What a maker is given beside the options is shared with the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from germane.scorers.base.protocols import Scorer
from germane.scorers.metrics.answer_quality import AnswerQuality, checked_relevancy
from germane.scorers.metrics.answer_relevancy import AnswerRelevancy
from germane.scorers.metrics.combined_relevancy import CombinedRelevancy, checked_weights
from germane.scorers.metrics.context_coverage import ContextCoverage
from germane.scorers.metrics.context_relevance import ContextRelevance
from germane.scorers.metrics.context_similarity import ContextSimilarity
from germane.scorers.metrics.direct_relevancy import DirectRelevancy
from germane.scorers.metrics.faithfulness import Faithfulness
from germane.scorers.metrics.guarded_relevancy import GuardedRelevancy
from germane.scorers.metrics.intent_match import IntentMatch
from germane.scorers.metrics.noncommittal import Noncommittal
from germane.scorers.metrics.question_answer_similarity import QuestionAnswerSimilarity
from germane.scorers.metrics.question_coverage import QuestionCoverage
from germane.settings import LOCAL

if TYPE_CHECKING:
    from germane.scorers.factory.factory import Maker


def _answer_relevancy(maker: Maker, options: Mapping[str, Any]) -> Scorer:
    settings = maker.settings
    given = {
        "questions": settings.questions,
        "form": "few_shot" if settings.judge == LOCAL else "instructions",
        "noncommittal_votes": settings.noncommittal_votes,
        **options,
    }
    needs_embedder = given.get("similarity", "embedding") == "embedding"
    return AnswerRelevancy(maker.judge, maker.embedder if needs_embedder else None, **given)


def _direct_relevancy(maker: Maker, options: Mapping[str, Any]) -> Scorer:
    return DirectRelevancy(maker.judge, **options)


def _guarded_relevancy(maker: Maker, options: Mapping[str, Any]) -> Scorer:
    return GuardedRelevancy(maker.judge, maker.embedder, **options)


def _noncommittal(maker: Maker, options: Mapping[str, Any]) -> Scorer:
    given = dict(options)
    wanted = given.pop("judge", False)
    if not isinstance(wanted, bool):
        raise TypeError(f"judge must be true or false, not {wanted!r}")
    return Noncommittal(maker.judge if wanted else None, **given)


def _question_answer_similarity(maker: Maker, options: Mapping[str, Any]) -> Scorer:
    return QuestionAnswerSimilarity(maker.embedder, **options)


def _question_coverage(maker: Maker, options: Mapping[str, Any]) -> Scorer:
    return QuestionCoverage(maker.judge, **options)


def _intent_match(maker: Maker, options: Mapping[str, Any]) -> Scorer:
    return IntentMatch(maker.judge, **options)


def _combined_relevancy(maker: Maker, options: Mapping[str, Any]) -> Scorer:
    parts = {name: maker.scorer(name) for name in checked_weights(options.get("weights"))}
    return CombinedRelevancy(parts, **options)


def _context_coverage(_: Maker, options: Mapping[str, Any]) -> Scorer:
    return ContextCoverage(**options)


def _context_similarity(maker: Maker, options: Mapping[str, Any]) -> Scorer:
    return ContextSimilarity(maker.embedder, **options)


def _context_relevance(maker: Maker, options: Mapping[str, Any]) -> Scorer:
    given = dict(options)
    guarded = given.pop("guarded", False)
    if not isinstance(guarded, bool):
        raise TypeError(f"guarded must be true or false, not {guarded!r}")
    return ContextRelevance(maker.judge, maker.embedder if guarded else None, **given)


def _faithfulness(maker: Maker, options: Mapping[str, Any]) -> Scorer:
    return Faithfulness(maker.judge, **options)


def _answer_quality(maker: Maker, options: Mapping[str, Any]) -> Scorer:
    relevancy = checked_relevancy(options.get("relevancy", AnswerRelevancy.name))
    names = (ContextRelevance.name, Faithfulness.name, relevancy)
    return AnswerQuality({name: maker.scorer(name) for name in names}, **options)


CATALOGUE: Mapping[str, Callable[[Maker, Mapping[str, Any]], Scorer]] = {
    AnswerRelevancy.name: _answer_relevancy,
    DirectRelevancy.name: _direct_relevancy,
    GuardedRelevancy.name: _guarded_relevancy,
    Noncommittal.name: _noncommittal,
    QuestionAnswerSimilarity.name: _question_answer_similarity,
    QuestionCoverage.name: _question_coverage,
    IntentMatch.name: _intent_match,
    CombinedRelevancy.name: _combined_relevancy,
    ContextCoverage.name: _context_coverage,
    ContextSimilarity.name: _context_similarity,
    ContextRelevance.name: _context_relevance,
    Faithfulness.name: _faithfulness,
    AnswerQuality.name: _answer_quality,
}
