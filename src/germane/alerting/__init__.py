"""Rules, the drop detector, the alert state machine, notifications, channels and backtests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from germane.lazy import lazy_exports

if TYPE_CHECKING:
    from germane.alerting.actions import (
        accept_alert_baseline,
        acknowledge_alert,
        active_baseline_for,
        end_silence,
        find_alert,
        matchers_for,
        resolve_alert,
        silence_alerts,
    )
    from germane.alerting.backtest import AlertEpisode, BacktestReport, RuleBacktest, default_step, run_backtest
    from germane.alerting.changes import Change, find_changes, first_answer_with, list_changes
    from germane.alerting.channels import (
        Callback,
        Channel,
        ChannelMessage,
        DeliveryError,
        ExchangeQuote,
        Log,
        MessageFormat,
        ResendingChannel,
        build_channels,
        build_test_message,
        channel_filters,
        message_formats,
    )
    from germane.alerting.drop import (
        LEARNING_PERIOD,
        MIN_BASELINE_SPAN,
        BaselineExample,
        accept_baseline,
        firing_onset,
        import_baseline_from_examples,
        import_baseline_from_history,
    )
    from germane.alerting.evaluator import AlertEvaluator
    from germane.alerting.messages import alert_message
    from germane.alerting.notifier import was_notified
    from germane.alerting.rules import evaluate_mean_threshold, evaluate_share, warn_about_missing_scorers
    from germane.alerting.sensitivity import DropSensitivity, list_sensitivities
    from germane.alerting.wording import CAUSES, RESOLVE_REASONS

_MODULES = {
    "actions": (
        "accept_alert_baseline", "acknowledge_alert", "active_baseline_for", "end_silence", "find_alert",
        "matchers_for", "resolve_alert", "silence_alerts",
    ),
    "backtest": ("AlertEpisode", "BacktestReport", "RuleBacktest", "default_step", "run_backtest"),
    "changes": ("Change", "find_changes", "first_answer_with", "list_changes"),
    "channels": (
        "Callback", "Channel", "ChannelMessage", "DeliveryError", "ExchangeQuote", "Log", "MessageFormat",
        "ResendingChannel", "build_channels", "build_test_message", "channel_filters", "message_formats",
    ),
    "drop": (
        "LEARNING_PERIOD", "MIN_BASELINE_SPAN", "BaselineExample", "accept_baseline", "firing_onset",
        "import_baseline_from_examples", "import_baseline_from_history",
    ),
    "evaluator": ("AlertEvaluator",),
    "messages": ("alert_message",),
    "notifier": ("was_notified",),
    "rules": ("evaluate_mean_threshold", "evaluate_share", "warn_about_missing_scorers"),
    "sensitivity": ("DropSensitivity", "list_sensitivities"),
    "wording": ("CAUSES", "RESOLVE_REASONS"),
}  # fmt: skip

__all__ = [
    "CAUSES",
    "LEARNING_PERIOD",
    "MIN_BASELINE_SPAN",
    "RESOLVE_REASONS",
    "AlertEpisode",
    "AlertEvaluator",
    "BacktestReport",
    "BaselineExample",
    "Callback",
    "Change",
    "Channel",
    "ChannelMessage",
    "DeliveryError",
    "DropSensitivity",
    "ExchangeQuote",
    "Log",
    "MessageFormat",
    "ResendingChannel",
    "RuleBacktest",
    "accept_alert_baseline",
    "accept_baseline",
    "acknowledge_alert",
    "active_baseline_for",
    "alert_message",
    "build_channels",
    "build_test_message",
    "channel_filters",
    "default_step",
    "end_silence",
    "evaluate_mean_threshold",
    "evaluate_share",
    "find_alert",
    "find_changes",
    "firing_onset",
    "first_answer_with",
    "import_baseline_from_examples",
    "import_baseline_from_history",
    "list_changes",
    "list_sensitivities",
    "matchers_for",
    "message_formats",
    "resolve_alert",
    "run_backtest",
    "silence_alerts",
    "warn_about_missing_scorers",
    "was_notified",
]

# numpy, httpx and smtplib are slow to import.
__getattr__ = lazy_exports(__name__, _MODULES)
