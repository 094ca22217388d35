"""Tells drops from chance: numbers in, turns out. Knows no database, no clock and no settings."""

from __future__ import annotations

from germane.monitor.detector.detector import Detector
from germane.monitor.detector.learning import learn
from germane.monitor.detector.power import Chance, Power, power, tolerance
from germane.monitor.detector.seen import Seen
from germane.monitor.detector.thinning import kept, thinning
from germane.monitor.detector.turn import Carrier, Half, Turn

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
