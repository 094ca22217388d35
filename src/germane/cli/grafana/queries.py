"""What panels ask Prometheus for. Of several processes on one database each tells the same: the largest counts."""

from __future__ import annotations

from typing import Final

ROUTE: Final = 'service="$service", route=~"$route", scorer="$scorer", window="$window"'
NEWEST: Final = f'{ROUTE}, newest="true"'
PLACE: Final = "service, route, scorer, fingerprint"
SCORED: Final = 'gen_ai_evaluation_name="$scorer", gen_ai_workflow_name=~"$route"'


def newest(gauge: str) -> str:
    """Return the newest judge's values of a gauge, one series per route."""
    return f"max by ({PLACE}) ({gauge}{{{NEWEST}}})"


MEAN: Final = newest("germane_score_mean")
LOWER: Final = newest("germane_score_mean_lower")
UPPER: Final = newest("germane_score_mean_upper")
NUMBER: Final = newest("germane_scores")
LOW: Final = newest("germane_low_ratio")
REFUSED: Final = newest("germane_noncommittal_ratio")
BASELINE: Final = (
    f'max by ({PLACE}) (germane_baseline_mean{{service="$service", route=~"$route", scorer="$scorer"}})'
    f" and on ({PLACE}) germane_scores{{{NEWEST}}}"
)
OUTCOMES: Final = (
    f"sum by (outcome, reason) (max by (service, route, scorer, outcome, reason) (germane_exchanges{{{ROUTE}}}))"
)
HISTOGRAM: Final = f"sum by (le) (increase(rag_evaluation_score_bucket{{{SCORED}}}[$__rate_interval]))"
ALERTS: Final = (
    "sum(max by (service, route, scorer, rule, severity, state)"
    ' (germane_alerts_open{service="$service", state=~"firing|recovering"})) or 0 * (max(germane_up) == 1)'
)
ALERTS_BY_RULE: Final = (
    'max by (service, route, scorer, rule, severity, state) (germane_alerts_open{service="$service"})'
)
UP: Final = "min(germane_up)"
LAG: Final = "max(germane_queue_lag_seconds)"
WORKERS: Final = "max(germane_workers)"
DEPTH: Final = "sum by (state) (max by (scorer, state) (germane_queue_depth))"
BUDGET: Final = "max by (limit) (germane_budget_used_ratio)"
DOLLARS: Final = "max(germane_spent_today_dollars)"
"""What was spent of the day, under a budget."""
