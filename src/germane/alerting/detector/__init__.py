"""Tells drops from chance: numbers in, turns out. Knows no database, no clock and no settings."""

from __future__ import annotations

from germane.alerting.detector.detector import Detector
from germane.alerting.detector.learning import learn
from germane.alerting.detector.power import Chance, Power, power, tolerance
from germane.alerting.detector.seen import Seen, kept, thinning
from germane.alerting.detector.transition import Carrier, Half, Turn

__all__ = [
    "Carrier",
    "Chance",
    "Detector",
    "Half",
    "Power",
    "Seen",
    "Turn",
    "kept",
    "learn",
    "power",
    "thinning",
    "tolerance",
]
