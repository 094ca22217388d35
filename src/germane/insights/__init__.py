"""Read models for the dashboard, reports and the command line, such as the verdict, worst answers and charts."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from germane.score import NONCOMMITTAL

if TYPE_CHECKING:
    from germane.insights.alert_detail import AlertDetail, can_accept_baseline, load_alert_detail
    from germane.insights.alerts import (
        AlertFilter,
        AlertList,
        AlertSummary,
        format_level,
        load_alert_list,
    )
    from germane.insights.answers import (
        AnswerExport,
        AnswerInsight,
        AnswerList,
        AnswerSearch,
        available_scorers,
        load_answer,
        load_answer_list,
        rescore_answer,
        rescore_matching,
    )
    from germane.insights.charts import ChartMarker, TrendChart, chart_points, sparkline_svg, trend_figure
    from germane.insights.context import (
        BUCKETS,
        DEFAULT_WINDOW,
        WINDOWS,
        InsightContext,
        ViewParams,
        choose_scorer,
        choose_service,
    )
    from germane.insights.document import (
        MEAN_HEADINGS,
        Document,
        DocumentTable,
        Section,
        mean_cells,
        to_html,
        to_markdown,
    )
    from germane.insights.formatting import (
        FILTERS,
        format_bytes,
        format_count,
        format_duration,
        format_interval,
        format_number,
        format_percent,
        format_run_time,
        format_seconds,
        humanize,
        quote_segment,
        route_path,
        scorer_title,
    )
    from germane.insights.health import (
        HealthSummary,
        Onboarding,
        StatusBar,
        has_exchanges,
        load_health,
        load_onboarding,
        load_status_bar,
    )
    from germane.insights.last_day import baseline_level
    from germane.insights.overview import Overview, RouteCard, load_overview
    from germane.insights.route import RouteInsight, list_routes, load_route
    from germane.insights.rule_diagnosis import (
        BacktestBusy,
        BacktestTooLarge,
        DiagnosisScope,
        RuleDiagnosis,
        diagnose_rules,
        run_rule_backtest,
    )
    from germane.insights.situation import alert_concerns_route, chart_markers, describe_period
    from germane.insights.verdict import Verdict
    from germane.insights.worker import (
        WorkerInsight,
        describe_limits,
        describe_sampling,
        describe_sampling_outcomes,
        describe_sampling_settings,
        load_worker,
    )
    from germane.insights.worst_answers import (
        LOADED_PER_ANSWER,
        MAX_REFUSALS,
        MAX_WORST_ANSWERS,
        WorstAnswer,
        as_worst_answers,
    )

__all__ = [
    "BUCKETS",
    "DEFAULT_WINDOW",
    "FILTERS",
    "LOADED_PER_ANSWER",
    "MAX_REFUSALS",
    "MAX_WORST_ANSWERS",
    "MEAN_HEADINGS",
    "NONCOMMITTAL",
    "WINDOWS",
    "AlertDetail",
    "AlertFilter",
    "AlertList",
    "AlertSummary",
    "AnswerExport",
    "AnswerInsight",
    "AnswerList",
    "AnswerSearch",
    "BacktestBusy",
    "BacktestTooLarge",
    "ChartMarker",
    "DiagnosisScope",
    "Document",
    "DocumentTable",
    "HealthSummary",
    "InsightContext",
    "Onboarding",
    "Overview",
    "RouteCard",
    "RouteInsight",
    "RuleDiagnosis",
    "Section",
    "StatusBar",
    "TrendChart",
    "Verdict",
    "ViewParams",
    "WorkerInsight",
    "WorstAnswer",
    "alert_concerns_route",
    "as_worst_answers",
    "available_scorers",
    "baseline_level",
    "can_accept_baseline",
    "chart_markers",
    "chart_points",
    "choose_scorer",
    "choose_service",
    "describe_limits",
    "describe_period",
    "describe_sampling",
    "describe_sampling_outcomes",
    "describe_sampling_settings",
    "diagnose_rules",
    "format_bytes",
    "format_count",
    "format_duration",
    "format_interval",
    "format_level",
    "format_number",
    "format_percent",
    "format_run_time",
    "format_seconds",
    "has_exchanges",
    "humanize",
    "list_routes",
    "load_alert_detail",
    "load_alert_list",
    "load_answer",
    "load_answer_list",
    "load_health",
    "load_onboarding",
    "load_overview",
    "load_route",
    "load_status_bar",
    "load_worker",
    "mean_cells",
    "quote_segment",
    "rescore_answer",
    "rescore_matching",
    "route_path",
    "run_rule_backtest",
    "scorer_title",
    "sparkline_svg",
    "to_html",
    "to_markdown",
    "trend_figure",
]

_MODULES: Final = {
    "alert_detail": (
        "AlertDetail",
        "can_accept_baseline",
        "load_alert_detail",
    ),
    "alerts": (
        "AlertFilter",
        "AlertList",
        "AlertSummary",
        "format_level",
        "load_alert_list",
    ),
    "answers": (
        "AnswerExport",
        "AnswerInsight",
        "AnswerList",
        "AnswerSearch",
        "available_scorers",
        "load_answer",
        "load_answer_list",
        "rescore_answer",
        "rescore_matching",
    ),
    "charts": (
        "ChartMarker",
        "TrendChart",
        "chart_points",
        "sparkline_svg",
        "trend_figure",
    ),
    "context": (
        "BUCKETS",
        "DEFAULT_WINDOW",
        "WINDOWS",
        "InsightContext",
        "ViewParams",
        "choose_scorer",
        "choose_service",
    ),
    "document": (
        "MEAN_HEADINGS",
        "Document",
        "DocumentTable",
        "Section",
        "mean_cells",
        "to_html",
        "to_markdown",
    ),
    "formatting": (
        "FILTERS",
        "format_bytes",
        "format_count",
        "format_duration",
        "format_interval",
        "format_number",
        "format_percent",
        "format_run_time",
        "format_seconds",
        "humanize",
        "quote_segment",
        "route_path",
        "scorer_title",
    ),
    "health": (
        "HealthSummary",
        "Onboarding",
        "StatusBar",
        "has_exchanges",
        "load_health",
        "load_onboarding",
        "load_status_bar",
    ),
    "last_day": ("baseline_level",),
    "overview": (
        "Overview",
        "RouteCard",
        "load_overview",
    ),
    "route": (
        "RouteInsight",
        "list_routes",
        "load_route",
    ),
    "rule_diagnosis": (
        "BacktestBusy",
        "BacktestTooLarge",
        "DiagnosisScope",
        "RuleDiagnosis",
        "diagnose_rules",
        "run_rule_backtest",
    ),
    "situation": (
        "alert_concerns_route",
        "chart_markers",
        "describe_period",
    ),
    "verdict": ("Verdict",),
    "worker": (
        "WorkerInsight",
        "describe_limits",
        "describe_sampling",
        "describe_sampling_outcomes",
        "describe_sampling_settings",
        "load_worker",
    ),
    "worst_answers": (
        "LOADED_PER_ANSWER",
        "MAX_REFUSALS",
        "MAX_WORST_ANSWERS",
        "WorstAnswer",
        "as_worst_answers",
    ),
}
_MODULE_OF: Final = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    # Loaded on first use: the command line renders a document without importing storage or charts.
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return value
