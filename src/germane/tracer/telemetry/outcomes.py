"""Counting of what became of exchanges and scorings. The metrics API takes time to import, so it is imported at use."""

from __future__ import annotations

from collections.abc import Mapping

from germane.tracer import conventions
from germane.tracer.connection import current_connection
from germane.tracer.guard import guarded

OutcomeKey = tuple[str, str, str, str]
"""Route, scorer, outcome and reason. The scorer is empty for captured exchanges and set for finished scorings."""
_FAILED = "metrics are not recorded, {} (nothing else is affected)"


def count_outcomes(outcomes: Mapping[OutcomeKey, int]) -> None:
    """Count outcomes. Never raises. Without a connection, nothing is counted."""
    if current_connection() is not None:
        guarded("the counters", _count, outcomes, said=_FAILED)


def _count(outcomes: Mapping[OutcomeKey, int]) -> None:
    from germane.tracer.telemetry.counters import instruments

    current = instruments()
    for (route, scorer, outcome, reason), number in outcomes.items():
        labels = {conventions.WORKFLOW_NAME: route, conventions.OUTCOME: outcome}
        if reason:
            labels[conventions.ERROR_TYPE if outcome == "failed" else conventions.REASON] = reason
        if scorer:
            current.runs.add(number, {conventions.EVALUATION_NAME: scorer, **labels})
        else:
            current.captured.add(number, labels)


def are_gauges_exported() -> bool:
    """Return whether gauges are exported: the application has a meter provider, or an OTLP endpoint is configured."""
    from germane.tracer.telemetry.counters import has_meter_provider

    return current_connection() is not None and bool(guarded("the gauges", has_meter_provider, said=_FAILED))
