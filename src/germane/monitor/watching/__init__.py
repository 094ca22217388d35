"""Brings the detector to live scores: which judge's, against which baseline, how far it has come."""

from __future__ import annotations

from germane.monitor.watching.adopting import Example, accept, adopt, adopt_history, onset_of
from germane.monitor.watching.learner import LEARN_FOR, Learner
from germane.monitor.watching.watch import Look, Watch

__all__ = ["LEARN_FOR", "Example", "Learner", "Look", "Watch", "accept", "adopt", "adopt_history", "onset_of"]
