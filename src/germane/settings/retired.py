"""Former names of settings, so that error messages can suggest the current ones."""

from __future__ import annotations

from collections.abc import Sequence

RETIRED_SETTINGS = {
    "alert_link": "alert_url",
    "always": "always_score",
    "capture_limit": "max_exchanges_per_minute",
    "host_names": "allowed_hosts",
    "lease": "task_lease",
    "local_llm": "local_judge_path",
    "max_hold": "max_span_delay",
    "noncommittal_votes": "judge_detects_refusals",
    "questions": "generated_questions",
    "queue": "queue_size",
    "rate": "sample_rate",
    "retry_for": "retry_timeout",
    "text_limit": "max_text_length",
    "tick": "poll_interval",
    "token": "dashboard_token",
    "trace_link": "trace_url",
    "trend_by": "breakdowns",
}
RETIRED_FIELDS = {
    "budget": {"calls_per_day": "requests_per_day", "calls_per_hour": "requests_per_hour"},
    "channels": {
        "allow": "allowed_networks",
        "answers": "include_text",
        "kind": "type",
        "trusted": "allow_private_networks",
    },
    "rules": {
        "false_alarms_per_year": "false_alerts_per_year",
        "keep_firing": "keep_firing_for",
        "kind": "type",
        "min_count": "min_samples",
        "recovery": "recovery_margin",
        "repeat_every": "repeat_interval",
    },
}
"""Maps each setting to its renamed fields, from the former name to the current one."""
RETIRED_RULE_TYPES = {"floor": "mean_threshold", "low_rate": "low_score_rate"}


def current_name(path: Sequence[str]) -> str | None:
    """Return the current name of a renamed setting or field, or None if it was not renamed.

    The path is, for example, ``("budget", "calls_per_day")``.
    """
    if len(path) == 1:
        return RETIRED_SETTINGS.get(path[0])
    return RETIRED_FIELDS.get(RETIRED_SETTINGS.get(path[0], path[0]), {}).get(path[-1])
