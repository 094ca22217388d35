"""Brings the detector to live scores: which judge's, against which baseline, how far it has come."""

from __future__ import annotations

from germane.alerting.drop.adopting import Example, accept, adopt, adopt_history, onset_of
from germane.alerting.drop.learner import LEARN_FOR, Learner
from germane.alerting.drop.watch import Look, Watch

__all__ = ["LEARN_FOR", "Example", "Learner", "Look", "Watch", "accept", "adopt", "adopt_history", "onset_of"]
