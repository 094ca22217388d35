"""The drop detector. It turns scores into transitions, and uses no database, clock or settings."""

from __future__ import annotations

from germane.alerting.detector.bet_grid import tolerance
from germane.alerting.detector.detector import Detector
from germane.alerting.detector.drop_evidence import Contributor, Half, Transition
from germane.alerting.detector.learning import learn_baseline
from germane.alerting.detector.limiter import StreamLimiter, UserLimit
from germane.alerting.detector.score_batch import ScoreBatch, is_sampled, sampling_draw, sampling_rate

__all__ = [
    "Contributor",
    "Detector",
    "Half",
    "ScoreBatch",
    "StreamLimiter",
    "Transition",
    "UserLimit",
    "is_sampled",
    "learn_baseline",
    "sampling_draw",
    "sampling_rate",
    "tolerance",
]
