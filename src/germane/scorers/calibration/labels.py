"""Labels read off a calibrated scale: cosines of different embedders live on different ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from germane.calibration import Calibration
from germane.exchange import Exchange
from germane.score import BANDS, Score, band
from germane.scorers.base.protocols import Scorer

COSINES = ("answer_relevancy", "question_answer_similarity", "context_similarity")
"""Scorers whose values are cosines, or means of them."""
Calibrations = Mapping[tuple[str, str], Calibration]
"""By embedder and scorer. Looked at for each score: it may be filled later."""
_LABELS = frozenset(label for _, label in BANDS)


class Calibrated:
    """A scorer whose labels are those of the calibrated value, which goes into ``details["calibrated"]``.

    The value itself stays as it is, and so does the fingerprint. A calibration of another embedder is not used, and a
    label that is no band, such as ``noncommittal``, is kept.
    """

    def __init__(self, scorer: Scorer, calibrations: Calibrations) -> None:
        self.scorer = scorer
        self._calibrations = calibrations

    def __repr__(self) -> str:
        return repr(self.scorer)

    def __getattr__(self, name: str) -> Any:
        """Return what else the scorer has, such as its judge."""
        return getattr(self.__dict__["scorer"], name)

    @property
    def name(self) -> str:
        """That of the scorer."""
        return self.scorer.name

    @property
    def fingerprint(self) -> str:
        """That of the scorer: what its values are made of does not change."""
        return self.scorer.fingerprint

    @property
    def requires(self) -> frozenset[str]:
        """Those of the scorer."""
        return self.scorer.requires

    @property
    def range(self) -> tuple[float, float]:
        """That of the scorer."""
        return self.scorer.range

    async def score(self, exchange: Exchange) -> Score | float:
        """Return the scorer's score, with the label of its calibrated value.

        Raises:
            ScoringError: the scorer got no value.
        """
        score = await self.scorer.score(exchange)
        return relabelled(score, self._calibrations) if isinstance(score, Score) else score


def relabelled(score: Score, calibrations: Calibrations) -> Score:
    """Return the score with the label of its calibrated value; as it is where there is no calibration for it."""
    calibration = calibrations.get((score.embedder or "", score.scorer))
    if calibration is None or score.value is None or score.scorer not in COSINES:
        return score
    value = calibration.of(score.value)
    label = band(value) if score.label is None or score.label in _LABELS else score.label
    return replace(score, label=label, details={**score.details, "calibrated": value})


def calibrated(scorer: Scorer, calibrations: Calibrations | None) -> Scorer:
    """Return the scorer with calibrated labels where its values are cosines, else as it is."""
    return scorer if calibrations is None or scorer.name not in COSINES else Calibrated(scorer, calibrations)
