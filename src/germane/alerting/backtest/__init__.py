"""Backtests of rules over the stored history, with the live evaluator."""

from __future__ import annotations

from germane.alerting.backtest.backtest import (
    AlertEpisode,
    BacktestReport,
    RuleBacktest,
    SkippedRule,
    default_step,
    run_backtest,
)

__all__ = ["AlertEpisode", "BacktestReport", "RuleBacktest", "SkippedRule", "default_step", "run_backtest"]
