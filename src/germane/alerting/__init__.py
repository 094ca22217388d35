"""Rules, the drop detector, the alert state machine, notifications, channels and backtests."""

from __future__ import annotations
