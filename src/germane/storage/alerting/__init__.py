"""Storage of alerts, baselines, detector state and notifications."""

from __future__ import annotations
