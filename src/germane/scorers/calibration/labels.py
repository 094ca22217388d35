"""Labels from calibrated values, because cosines of different embedders have different scales."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from germane.calibration import Calibration
from germane.exchange import Exchange
from germane.score import BANDS, Score, band_of
from germane.scorers.base.protocols import Scorer

COSINE_SCORERS = ("answer_relevancy", "question_answer_similarity", "context_similarity")
"""Scorers whose values are cosines, or means of cosines."""
_BAND_LABELS = frozenset(label for _, label in BANDS)

Calibrations = Mapping[tuple[str, str], Calibration]
"""Calibrations by embedder and scorer. Looked up for each score, so they can be added later."""


class CalibratedScorer:
    """A scorer whose labels come from the calibrated value, which is stored in ``details["calibrated"]``.

    Value and fingerprint do not change. Calibrations of other embedders are ignored, and labels that are not bands,
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
        """Return the wrapped scorer's score with the label of its calibrated value.

        Raises:
            ScoringError: raised by the wrapped scorer.
        """
        score = await self.scorer.score(exchange)
        return apply_calibration(score, self._calibrations) if isinstance(score, Score) else score


def apply_calibration(score: Score, calibrations: Calibrations) -> Score:
    """Return the score with the label of its calibrated value, or unchanged if no calibration applies."""
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
