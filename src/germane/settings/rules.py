"""Alert rules. Five of them are active by default."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import combinations, product
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from germane.alert import Severity
from germane.settings.types import DAY, Names, NestedSettings, PublicURL, matches_patterns

HOUR: Final = 3600
DEFAULT_SCORER: Final = "answer_relevancy"
RESERVED_LABELS: Final = ("alertname", "rule", "severity", "service", "scorer", "route", "channel", "change", "owner")
"""Labels that germane sets itself."""
_LABEL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}")

Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^\P{Cc}+$")]
"""A string that is stored in the database and shown in messages. Control characters are rejected."""


def _validate_labels(labels: dict[str, str]) -> dict[str, str]:
    for name in labels:
        if not _LABEL_NAME.fullmatch(name) or name in RESERVED_LABELS:
            reserved = ", ".join(RESERVED_LABELS)
            raise ValueError(
                f"invalid label name {name!r:.80}: use only letters, digits and _; these names are reserved: {reserved}"
            )
    return labels


class Rule(NestedSettings):
    """Fields shared by all rules."""

    model_config = ConfigDict(populate_by_name=True)

    name: Name
    """Name of the rule in its alerts. Defaults to the rule's type."""
    enabled: bool = True
    """Set to `false` to turn off a rule that is active by default."""
    severity: Severity = "warning"
    """Severity of its alerts: `info`, `warning` or `critical`."""
    scorer: str | None = None
    """The scorer to watch. By default, each online scorer is watched separately."""
    routes: Names = ()
    """Route patterns, such as `support-*`. By default, all routes."""
    pending: float = Field(default=0, ge=0, le=30 * DAY, validation_alias="for")
    """Seconds for which the condition must hold before the alert fires."""
    repeat_interval: float = Field(default=DAY, ge=60, le=400 * DAY)
    """Seconds after which the notification about a firing, unacknowledged alert is repeated."""
    runbook_url: PublicURL | None = None
    """URL of a page that describes how to respond. Notifications link to it."""
    owner: str | None = Field(default=None, min_length=1, max_length=200, pattern=r"^\P{Cc}+$")
    """The responsible person or team. Notifications name the owner, and Alertmanager receives it as a label."""
    labels: Annotated[dict[str, str], AfterValidator(_validate_labels)] = Field(default_factory=dict)
    """Additional labels for notifications, such as `team = "search"`. Alertmanager can use them for routing."""

    def matches_route(self, route: str) -> bool:
        """Return whether the rule applies to a route."""
        return matches_patterns(self.routes, route)


class Drop(Rule):
    """Alert when scores fall below their learned baseline, with a specified false-alert rate."""

    type: Literal["drop"] = "drop"
    name: Name = "drop"
    min_drop: float = Field(default=0.05, ge=0.001, lt=1)
    """The smallest drop in the mean that matters."""
    false_alerts_per_year: float = Field(default=1.0, gt=0, le=1000)
    """The accepted number of false alerts per year, for each service and scorer."""
    critical_drop: float | None = Field(default=0.15, gt=0, le=1)
    """The drop in a service's or a route's mean at which the alert becomes critical."""
    accept_improvements: bool = False
    """Whether germane automatically accepts a lasting improvement as the new baseline. By default, it only proposes the
    new baseline.
    """
    attributes: dict[str, str] = Field(default_factory=dict)
    """Attribute value patterns, by attribute name. Only answers that match all patterns count. They have their own
    baseline, which germane starts learning at the first matching answer."""


class WindowRule(Rule):
    """Fields shared by all rules that evaluate a time window."""

    scorer: str | None = DEFAULT_SCORER
    """The scorer to watch."""
    attributes: dict[str, str] = Field(default_factory=dict)
    """Attribute value patterns, by attribute name. Only answers that match all patterns count."""
    window: float = Field(default=DAY, gt=0, le=400 * DAY)
    """Length of the window in seconds, ending at the newest scored answer. It is extended until it contains
    `min_samples` scores."""
    min_samples: int = Field(default=30, ge=2)
    """Minimum number of scores in the window. With fewer, the state of the rule does not change."""
    recovery_margin: float = Field(default=0.03, ge=0, le=1)
    """The alert resolves once the value is better than the threshold by at least this margin."""
    keep_firing_for: float = Field(default=6 * HOUR, ge=0, le=30 * DAY)
    """Seconds for which the value must stay recovered before the alert resolves."""


class MeanThreshold(WindowRule):
    """Alert when a route's mean score over a window is significantly below a threshold."""

    type: Literal["mean_threshold"] = "mean_threshold"
    name: Name = "mean_threshold"
    threshold: float = Field(ge=-1, le=1)
    """The alert fires when the mean and the upper bound of its one-sided 95% interval are below the threshold."""


class LowScoreRate(WindowRule):
    """Alert when a route's share of low scores over a window exceeds a threshold."""

    type: Literal["low_score_rate"] = "low_score_rate"
    name: Name = "low_score_rate"
    threshold: float = Field(ge=0, lt=1)
    """The alert fires when the share and the lower bound of its one-sided 95% interval are above the threshold."""


class NoncommittalRate(WindowRule):
    """Alert when a route's share of noncommittal answers over a window exceeds a threshold."""

    type: Literal["noncommittal_rate"] = "noncommittal_rate"
    name: Name = "noncommittal_rate"
    threshold: float = Field(ge=0, lt=1)
    """The alert fires when the share and the lower bound of its one-sided 95% interval are above the threshold."""


class NoData(Rule):
    """Alert when answers arrive but none are scored."""

    type: Literal["no_data"] = "no_data"
    name: Name = "no_data"
    pending: float = Field(default=60, ge=0, le=30 * DAY, validation_alias="for")
    """Seconds for which the condition must hold before the alert fires. The default covers a restart or a database
    outage, after which the backlog is scored."""
    at_least: float = Field(default=900, ge=1, le=30 * DAY)
    """Seconds without a score, while answers are due for scoring, after which the condition holds. If twice the usual
    gap between scores is longer, that is used instead."""


class ScorerError(Rule):
    """Alert when a scorer fails: its judge is unreachable, rejects the key, or sends replies that cannot be parsed."""

    type: Literal["scorer_error"] = "scorer_error"
    name: Name = "scorer_error"
    pending: float = Field(default=60, ge=0, le=30 * DAY, validation_alias="for")
    """Seconds for which the condition must hold before the alert fires."""
    threshold: float = Field(default=0.2, ge=0, lt=1)
    """The alert fires when the share of failed scores exceeds the threshold, and resolves at half the threshold."""
    window: float = Field(default=HOUR, ge=60, le=30 * DAY)
    """Length of the window in seconds."""
    min_samples: int = Field(default=20, ge=1)
    """Minimum number of scoring attempts in the window. With fewer, the state of the rule does not change."""


class BudgetExhausted(Rule):
    """Alert when the budget is exhausted. Answers are then skipped until the budget is renewed."""

    type: Literal["budget_exhausted"] = "budget_exhausted"
    name: Name = "budget_exhausted"
    pending: float = Field(default=900, ge=0, le=30 * DAY, validation_alias="for")
    """Seconds for which the budget must be exhausted before the alert fires."""


class JudgeDrift(Rule):
    """Alert when the judge scores the same answers differently than before, although its server reports the same model.
    The `anchors` setting determines how many answers are scored again every day."""

    type: Literal["judge_drift"] = "judge_drift"
    name: Name = "judge_drift"


AnyRule = Drop | MeanThreshold | LowScoreRate | NoncommittalRate | NoData | ScorerError | BudgetExhausted | JudgeDrift
DEFAULT_RULES: Final[tuple[AnyRule, ...]] = (
    Drop(),
    NoData(),
    ScorerError(),
    BudgetExhausted(),
    JudgeDrift(),
)
RULE_TYPES: Final[dict[str, type[Rule]]] = {rule.model_fields["type"].default: rule for rule in get_args(AnyRule)}
MEAN_RULES: Final = frozenset({"drop", "mean_threshold"})
"""Types of rules that watch the mean score."""
SHARE_RULES: Final = frozenset({"low_score_rate", "noncommittal_rate"})
"""Types of rules that watch a share of answers."""
SCORE_RULES: Final = MEAN_RULES | SHARE_RULES
"""Types of rules that watch scores rather than the scoring process."""


def active_rules(rules: Sequence[AnyRule]) -> tuple[AnyRule, ...]:
    """Return the enabled rules, preceded by the default rule for each type that is not configured."""
    configured = {rule.type for rule in rules}
    return (
        *(rule for rule in DEFAULT_RULES if rule.type not in configured),
        *(rule for rule in rules if rule.enabled),
    )


def _with_type(value: Any) -> Any:
    """Return a configured rule with its type, which defaults to ``mean_threshold``."""
    if isinstance(value, Rule):
        return value
    typed = {"type": "mean_threshold", **value} if isinstance(value, dict) else {}
    if typed.get("type") not in list(RULE_TYPES):
        raise ValueError(f"type must be one of {', '.join(RULE_TYPES)}")
    return typed


def _validate_distinct_names(rules: tuple[AnyRule, ...]) -> tuple[AnyRule, ...]:
    """Reject rules with the same name that can raise alerts about the same scores."""

    def overlap(first_pattern: str, second_pattern: str) -> bool:
        patterns = (first_pattern, second_pattern)
        # Two patterns that both contain wildcards are assumed to overlap.
        both_wild = all(any(sign in pattern for sign in "*?[") for pattern in patterns)
        return both_wild or fnmatchcase(first_pattern, second_pattern) or fnmatchcase(second_pattern, first_pattern)

    for first, second in combinations(active_rules(rules), 2):
        same_scorer = first.scorer == second.scorer or None in {first.scorer, second.scorer}
        same_route = True  # only window rules raise one alert per route; other rules raise a single alert
        if isinstance(first, WindowRule) and isinstance(second, WindowRule):
            pairs = product(first.routes or ("*",), second.routes or ("*",))
            same_route = any(overlap(*pair) for pair in pairs)
        if first.name == second.name and same_scorer and same_route:
            raise ValueError(f"two rules named {first.name!r} watch the same scores; give them different names")
    return rules


Rules = Annotated[
    tuple[Annotated[AnyRule, Field(discriminator="type"), BeforeValidator(_with_type)], ...],
    AfterValidator(_validate_distinct_names),
]
