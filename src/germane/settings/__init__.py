"""Settings: every option of germane, with its type, default and environment variable.

Arguments of :func:`load_settings` override ``GERMANE_...`` environment variables, those override ``germane.toml``, and
that overrides ``[tool.germane]`` in ``pyproject.toml``.
"""

from __future__ import annotations

from germane.settings.channels import (
    BUILTIN_CHANNELS,
    AlertmanagerSettings,
    AnyChannel,
    ChannelSettings,
    EmailSettings,
    HTTPChannel,
    PagerDutySettings,
    SlackSettings,
    WebhookSettings,
)
from germane.settings.rules import (
    DEFAULT_RULES,
    RULE_TYPES,
    AnyRule,
    BudgetExhausted,
    Drop,
    LowScoreRate,
    MeanThreshold,
    NoData,
    NoncommittalRate,
    Rule,
    ScorerError,
    WindowRule,
)
from germane.settings.settings import (
    DEFAULT_EMBEDDER,
    DEFAULT_JUDGE,
    ENV_PREFIX,
    LOCAL,
    Capture,
    EvaluationSettingsArguments,
    Settings,
    SettingsArguments,
    load_settings,
    signature_with_settings,
)
from germane.settings.sources import SettingValue, setting_values
from germane.settings.types import (
    DAY,
    AlwaysScore,
    Budget,
    ExchangeFilter,
    Price,
    Retention,
    parse_token,
    resolve_secret,
    resolve_url,
)

__all__ = [
    "BUILTIN_CHANNELS",
    "DAY",
    "DEFAULT_EMBEDDER",
    "DEFAULT_JUDGE",
    "DEFAULT_RULES",
    "ENV_PREFIX",
    "LOCAL",
    "RULE_TYPES",
    "AlertmanagerSettings",
    "AlwaysScore",
    "AnyChannel",
    "AnyRule",
    "Budget",
    "BudgetExhausted",
    "Capture",
    "ChannelSettings",
    "Drop",
    "EmailSettings",
    "EvaluationSettingsArguments",
    "ExchangeFilter",
    "HTTPChannel",
    "LowScoreRate",
    "MeanThreshold",
    "NoData",
    "NoncommittalRate",
    "PagerDutySettings",
    "Price",
    "Retention",
    "Rule",
    "ScorerError",
    "SettingValue",
    "Settings",
    "SettingsArguments",
    "SlackSettings",
    "WebhookSettings",
    "WindowRule",
    "load_settings",
    "parse_token",
    "resolve_secret",
    "resolve_url",
    "setting_values",
    "signature_with_settings",
]
