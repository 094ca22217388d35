"""Shows what rules would have told over the stored history: by the code that watches, over what was there then."""

from __future__ import annotations

from germane.alerting.backtest.backtest import Episode, Preview, Replayed, Unreplayed, run_backtest

__all__ = ["Episode", "Preview", "Replayed", "Unreplayed", "run_backtest"]
