"""Calibration of cosine scorers: the similarity of unrelated texts, and labels on the calibrated scale.

Cosines from different embedders have different scales. An embedder's baseline similarity is measured between texts from
different exchanges, which are unrelated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from germane.calibration import Calibration
from germane.exchange import Exchange
from germane.score import BANDS, Score, band_of
from germane.scorers.base.fingerprint import fingerprint
from germane.scorers.base.protocols import Embedder, Scorer, Vectors
from germane.scorers.base.text import is_blank, normalize_for_comparison, strip_control_characters, truncate_utf8

VERSION = "1"
MIN_CALIBRATION_EXCHANGES = 50
"""Minimum number of exchanges with different questions."""
HIGH_PERCENTILE = 95
"""Percentile of unrelated pairs that is reported as ``high``."""
MAX_EMBEDDED_BYTES = 8_000
"""Limit for one embedded text, the same as for scoring."""
_TEXTS_PER_REQUEST = 100
COSINE_SCORERS = ("answer_relevancy", "question_answer_similarity", "context_similarity")
"""Scorers whose values are cosines, or means of cosines."""
_BAND_LABELS = frozenset(label for _, label in BANDS)
Calibrations = Mapping[tuple[str, str], Calibration]
"""Calibrations by embedder and scorer. Looked up for each score, so they can be added later."""


@dataclass(frozen=True)
class UnrelatedPairs:
    """Cosines of unrelated pairs, from which one scorer is calibrated."""

    scorer: str
    pairs: str
    """The compared texts, such as ``question and answer``."""
    embedder: str
    cosines: Vectors
    """Shape (exchanges, exchanges). The diagonal, which holds pairs within an exchange, is ignored."""

    @property
    def n(self) -> int:
        """Number of exchanges."""
        return len(self.cosines)

    def mean(self, *, weights: Vectors) -> Vectors:
        """Return the mean cosine of pairs from different exchanges, per resample.

        ``weights`` has shape (resamples, n). An exchange that is drawn twice forms no pair with itself.
        """
        off_diagonal = 1.0 - np.eye(self.n)
        total = ((weights @ (self.cosines * off_diagonal)) * weights).sum(axis=1)
        pairs = ((weights @ off_diagonal) * weights).sum(axis=1)
        means: Vectors = np.divide(total, pairs, out=np.full(len(weights), np.nan), where=pairs > 0)
        return means

    def to_calibration(self, now: datetime) -> Calibration:
        """Return the calibration to store, with the mean as its floor.

        Raises:
            ValueError: the embedder gives all texts the same vector.
        """
        return Calibration(
            embedder=self.embedder,
            scorer=self.scorer,
            fingerprint=fingerprint(
                scorer=self.scorer, version=VERSION, parameters={"pairs": self.pairs}, embedder=self.embedder
            ),
            floor=float(self.mean(weights=np.ones((1, self.n)))[0]),
            high=float(np.percentile(self.cosines[~np.eye(self.n, dtype=bool)], HIGH_PERCENTILE)),
            n=self.n,
            made_at=now,
        )


def distinct_exchanges(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """Return the exchanges with question and answer, one per distinct question: answers to one question are related."""
    distinct: dict[str, Exchange] = {}
    for exchange in exchanges:
        if not is_blank(exchange.question or "") and not is_blank(exchange.answer or ""):
            distinct.setdefault(normalize_for_comparison(exchange.question), exchange)
    return list(distinct.values())


async def measure_unrelated_pairs(exchanges: Sequence[Exchange], embedder: Embedder) -> list[UnrelatedPairs]:
    """Return the cosines of unrelated pairs for each cosine scorer that has enough texts.

    Raises:
        ScoringError: the embedder failed.
    """
    distinct = distinct_exchanges(exchanges)
    if len(distinct) < MIN_CALIBRATION_EXCHANGES:
        return []
    questions = await _embed_all(embedder, [exchange.question for exchange in distinct])
    answers = await _embed_all(embedder, [exchange.answer for exchange in distinct])
    measured = [
        UnrelatedPairs("answer_relevancy", "question and question", embedder.model, questions @ questions.T),
        UnrelatedPairs("question_answer_similarity", "question and answer", embedder.model, questions @ answers.T),
    ]
    first_contexts = [
        next((context.text for context in exchange.contexts if not is_blank(context.text)), None)
        for exchange in distinct
    ]
    indexes = [index for index, text in enumerate(first_contexts) if text is not None]
    if len(indexes) >= MIN_CALIBRATION_EXCHANGES:
        contexts = await _embed_all(embedder, [first_contexts[index] for index in indexes])
        cosines = questions[indexes] @ contexts.T
        measured.append(UnrelatedPairs("context_similarity", "question and context", embedder.model, cosines))
    return measured


async def _embed_all(embedder: Embedder, texts: Sequence[str | None]) -> Vectors:
    shown = [truncate_utf8(strip_control_characters(text or ""), MAX_EMBEDDED_BYTES) for text in texts]
    batches = [shown[start : start + _TEXTS_PER_REQUEST] for start in range(0, len(shown), _TEXTS_PER_REQUEST)]
    return np.concatenate([await embedder.embed(batch) for batch in batches])


class CalibratedScorer:
    """A scorer whose labels come from the calibrated value, which is stored in ``details["calibrated"]``.

    Value and fingerprint do not change. Calibrations for other embedders are ignored, and labels that are not bands,
    such as ``noncommittal``, are kept.
    """

    def __init__(self, scorer: Scorer, calibrations: Calibrations) -> None:
        self.scorer = scorer
        self._calibrations = calibrations

    def __repr__(self) -> str:
        return repr(self.scorer)

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the wrapped scorer, such as its judge."""
        return getattr(self.__dict__["scorer"], name)

    # Explicit, because __getattr__ does not make the class a Scorer for type checkers.
    @property
    def name(self) -> str:
        """Name of the wrapped scorer."""
        return self.scorer.name

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the wrapped scorer."""
        return self.scorer.fingerprint

    @property
    def requires(self) -> frozenset[str]:
        """Required inputs of the wrapped scorer."""
        return self.scorer.requires

    @property
    def range(self) -> tuple[float, float]:
        """Range of the wrapped scorer."""
        return self.scorer.range

    async def score(self, exchange: Exchange) -> Score | float:
        """Return the wrapped scorer's score with the label for its calibrated value.

        Raises:
            ScoringError: raised by the wrapped scorer.
        """
        score = await self.scorer.score(exchange)
        return apply_calibration(score, self._calibrations) if isinstance(score, Score) else score


def apply_calibration(score: Score, calibrations: Calibrations) -> Score:
    """Return the score with the label for its calibrated value, or unchanged if no calibration applies."""
    calibration = calibrations.get((score.embedder or "", score.scorer))
    if calibration is None or score.value is None or score.scorer not in COSINE_SCORERS:
        return score
    value = calibration.rescale(score.value)
    label = band_of(value) if score.label is None or score.label in _BAND_LABELS else score.label
    return replace(score, label=label, details={**score.details, "calibrated": value})


def with_calibrated_labels(scorer: Scorer, calibrations: Calibrations | None) -> Scorer:
    """Wrap scorers whose values are cosines in :class:`CalibratedScorer`; return other scorers unchanged."""
    if calibrations is None or scorer.name not in COSINE_SCORERS:
        return scorer
    return CalibratedScorer(scorer, calibrations)
