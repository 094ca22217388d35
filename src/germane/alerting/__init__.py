"""Rules, the drop detector, the alert state machine, notifications, channels and backtests."""

from __future__ import annotations

from germane.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
