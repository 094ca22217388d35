"""Pages about alerts: the list, one alert, actions and backtests."""

from __future__ import annotations
