"""The drop rule: the active fingerprint, the baseline and the state of its detector."""

from __future__ import annotations

from germane.alerting.drop.baselines import (
    LEARNING_PERIOD,
    MIN_BASELINE_SPAN,
    BaselineExample,
    BaselineLearner,
    accept_baseline,
    accept_new_route,
    firing_onset,
    import_baseline_from_examples,
    import_baseline_from_history,
)
from germane.alerting.drop.watcher import DropEvaluation, DropWatcher

__all__ = [
    "LEARNING_PERIOD",
    "MIN_BASELINE_SPAN",
    "BaselineExample",
    "BaselineLearner",
    "DropEvaluation",
    "DropWatcher",
    "accept_baseline",
    "accept_new_route",
    "firing_onset",
    "import_baseline_from_examples",
    "import_baseline_from_history",
]
