"""``germane grafana``: a Grafana dashboard and Prometheus rules for the metrics served at ``/metrics``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal

import click

from germane.cli.core.command import Command
from germane.errors import GermaneError

FileKind = Literal["dashboard", "rules", "examples", "provider"]
FILE_NAMES: Final[dict[FileKind, str]] = {
    "dashboard": "dashboard.json",
    "rules": "rules.yaml",
    "examples": "rules-examples.yaml",
    "provider": "provider.yaml",
}
INSTRUCTIONS: Final[dict[FileKind, str]] = {
    "dashboard": "import it into Grafana, or provision it",
    "rules": "list it under rule_files in the Prometheus configuration",
    "examples": "example thresholds; adapt them to your routes before use",
    "provider": "copy it to Grafana's provisioning/dashboards, and set GERMANE_DASHBOARDS to this directory",
}
UID: Final = "germane-answers"
"""The dashboard's id. It is fixed, so that links keep working and a newer dashboard replaces an older one."""
WINDOWS: Final = ("1h", "24h", "7d")
GRID_WIDTH: Final = 24
"""Number of columns in Grafana's grid."""
DATA_SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
SCORE_UNIT: Final = {"min": 0, "max": 1, "decimals": 2}
SHARE_UNIT: Final = {"unit": "percentunit", "min": 0, "max": 1}
COUNT_UNIT: Final = {"decimals": 0}
BY_ANSWER_TIME: Final = (
    "Weighted, by answer time. Hidden below 20 scores. Scores from different judges are never averaged."
)
BY_SCORING_TIME: Final = "Unweighted counts, by scoring time. Does not show how answers change over time."

ROUTE: Final = 'service="$service", route=~"$route", scorer="$scorer", window="$window"'
NEWEST: Final = f'{ROUTE}, newest="true"'
SERIES: Final = "service, route, scorer, fingerprint"
SCORED: Final = 'gen_ai_evaluation_name="$scorer", gen_ai_workflow_name=~"$route"'


class FileModified(GermaneError):
    """A file exists already and has different content."""


@click.command("grafana", cls=Command, shared=())
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), required=False)
@click.option(
    "--print",
    "kind",
    type=click.Choice(list(FILE_NAMES)),
    help="Print one of the files instead of writing all of them.",
)
@click.option("--link", metavar="URL", help="URL of germane's dashboard. Panels then link to its routes.")
@click.option("--force", is_flag=True, help="Overwrite modified files.")
def command(folder: Path | None, kind: FileKind | None, link: str | None, force: bool) -> None:  # noqa: FBT001 - click passes it by name
    """Write a Grafana dashboard and Prometheus rules into FOLDER.

    The files query the metrics that germane serve and germane worker --metrics expose at /metrics.
    """
    if (folder is None) == (kind is None):
        raise click.UsageError("pass either FOLDER or --print")
    if link is not None and not link.startswith(("http://", "https://")):
        raise click.UsageError(f"--link must be an http:// or https:// URL, not {link!r}")
    texts = {
        kind: json.dumps(dashboard(link), indent=2) + "\n"
        if kind == "dashboard"
        else files(__package__ or "").joinpath(name).read_text("utf-8")
        for kind, name in FILE_NAMES.items()
    }
    if kind is not None:
        click.echo(texts[kind], nl=False)
    if folder is None:
        return
    paths = {kind: folder / name for kind, name in FILE_NAMES.items()}
    modified = [path for kind, path in paths.items() if path.exists() and path.read_text("utf-8") != texts[kind]]
    if modified and not force:
        names = ", ".join(map(str, modified))
        raise FileModified(
            f"existing files have different content: {names}; use another directory, or overwrite with --force"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for kind, path in paths.items():
        path.write_text(texts[kind], "utf-8")
        click.echo(f"{path}  {INSTRUCTIONS[kind]}")


def newest(gauge: str) -> str:
    """Return a query for a gauge, limited to the newest judge, with one series per route."""
    return f"max by ({SERIES}) ({gauge}{{{NEWEST}}})"


MEAN: Final = newest("germane_score_mean")
MEAN_CI_LOWER: Final = newest("germane_score_mean_ci_lower")
MEAN_CI_UPPER: Final = newest("germane_score_mean_ci_upper")
SCORES: Final = newest("germane_scores")
LOW: Final = newest("germane_low_ratio")
REFUSED: Final = newest("germane_noncommittal_ratio")
BASELINE: Final = (
    f'max by ({SERIES}) (germane_baseline_mean{{service="$service", route=~"$route", scorer="$scorer"}})'
    f" and on ({SERIES}) germane_scores{{{NEWEST}}}"
)
OUTCOMES: Final = (
    f"sum by (outcome, reason) (max by (service, route, scorer, outcome, reason) (germane_exchanges{{{ROUTE}}}))"
)
HISTOGRAM: Final = f"sum by (le) (increase(germane_evaluation_score_bucket{{{SCORED}}}[$__rate_interval]))"
OPEN_ALERTS: Final = (
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
COST: Final = "max(germane_judge_cost_today_usd)"

Panel = dict[str, Any]


def dashboard(link: str | None = None) -> dict[str, Any]:
    """Return the dashboard. With ``link``, the URL of germane's own dashboard, panels link to its routes."""
    window = {"name": "window", "label": "Window", "type": "custom", "query": ",".join(WINDOWS)}
    window_options = [{"text": name, "value": name, "selected": name == "24h"} for name in WINDOWS]
    variables = [
        {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0},
        _variable("service", "Service", "label_values(germane_exchanges_seen, service)"),
        _variable("scorer", "Scorer", 'label_values(germane_scores{service="$service"}, scorer)'),
        _variable("route", "Route", 'label_values(germane_scores{service="$service", scorer="$scorer"}, route)')
        | {"multi": True, "includeAll": True, "current": {"text": ["All"], "value": ["$__all"]}},
        {**window, "current": {"text": "24h", "value": "24h", "selected": True}, "options": window_options},
    ]
    links = []
    if link is not None:
        links.append({"title": "germane", "type": "link", "url": link, "targetBlank": True, "icon": "external link"})
    return {
        "uid": UID,
        "id": None,
        "title": "germane: answer quality",
        "tags": ["germane", "rag"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "timezone": "browser",
        "refresh": "1m",
        "time": {"from": "now-7d", "to": "now"},
        "templating": {"list": variables},
        "annotations": {"list": []},
        "links": links,
        "panels": _place_panels(link),
    }


def _variable(name: str, label: str, query: str) -> dict[str, Any]:
    source = {"type": "query", "datasource": DATA_SOURCE, "definition": query}
    return {
        "name": name,
        "label": label,
        **source,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": False,
    }


def _place_panels(link: str | None) -> list[Panel]:
    """Return the panels with ids and grid positions, row by row from the top."""
    reachable = {"0": {"text": "unreachable"}, "1": {"text": "reachable"}}
    database = {"mappings": [{"type": "value", "options": reachable}], **_thresholds(red=None, green=1)}
    low_description = f"Share of answers in the lowest band. {BY_ANSWER_TIME}"
    refusal_description = f"Share of refusals. {BY_ANSWER_TIME}"
    shares = [
        _time_series("Scores", {"{{route}}": SCORES}, COUNT_UNIT, description="Number of scores in each mean."),
        _time_series("Low scores", {"{{route}}": LOW}, SHARE_UNIT, description=low_description),
        _time_series("Refusals", {"{{route}}": REFUSED}, SHARE_UNIT, description=refusal_description),
    ]
    rows = [
        [
            _stat("Open alerts", OPEN_ALERTS, {**COUNT_UNIT, **_thresholds(green=None, red=1)}),
            _stat("Database", UP, database),
            _stat("Oldest unscored exchange", LAG, {"unit": "s", **_thresholds(green=None, orange=600)}),
            _stat("Scoring processes", WORKERS, {**COUNT_UNIT, **_thresholds(red=None, green=1)}),
        ],
        [_mean_panel(link)],
        [_add_route_link(panel, link, "${__field.labels.route:percentencode}") for panel in shares],
        _scoring_row(),
        [
            _time_series("Backlog", {"{{state}}": DEPTH}, COUNT_UNIT),
            _time_series("Queue lag", {"oldest": LAG}, {"unit": "s"}),
            _time_series("Budget used today (UTC)", {"{{limit}}": BUDGET}, {**SHARE_UNIT, "max": None}),
            _time_series("Judge cost today (UTC)", {"cost": COST}, {"unit": "currencyUSD"}),
        ],
    ]
    panels: list[Panel] = []
    top = 0
    for row in rows:
        width = GRID_WIDTH // len(row)
        for column, panel in enumerate(row):
            position = {"x": column * width, "y": top, "w": width, "h": panel.pop("height")}
            panels.append({"id": len(panels) + 1, **panel, "gridPos": position})
        top += panels[-len(row)]["gridPos"]["h"]
    return panels


def _mean_panel(link: str | None) -> Panel:
    queries = {"mean": MEAN, "lower": MEAN_CI_LOWER, "upper": MEAN_CI_UPPER, "baseline": BASELINE}
    panel = _time_series("$route: mean with 95% interval", queries, SCORE_UNIT, description=BY_ANSWER_TIME, height=9)
    panel["fieldConfig"]["overrides"] = [
        _override("upper", {"custom.fillBelowTo": "lower", "custom.lineWidth": 0, "custom.fillOpacity": 20}),
        _override("lower", {"custom.lineWidth": 0, "custom.fillOpacity": 0}),
        _override("baseline", {"custom.lineStyle": {"fill": "dash", "dash": [8, 8]}, "custom.fillOpacity": 0}),
    ]
    panel |= {"repeat": "route", "repeatDirection": "h", "maxPerRow": 3}
    return _add_route_link(panel, link, "${route:percentencode}")


def _scoring_row() -> list[Panel]:
    outcomes = _time_series("Exchanges by outcome", {"{{outcome}} {{reason}}": OUTCOMES}, COUNT_UNIT)
    outcomes["fieldConfig"]["defaults"]["custom"] = {"stacking": {"mode": "normal"}, "fillOpacity": 40}
    heatmap: Panel = {
        "type": "heatmap",
        "title": "Scores by scoring time",
        "description": BY_SCORING_TIME,
        "datasource": DATA_SOURCE,
        "targets": [{**_target("{{le}}", HISTOGRAM, 0), "format": "heatmap"}],
        "options": {"calculate": False, "yAxis": {"axisPlacement": "left"}, "color": {"scheme": "Blues"}},
        "fieldConfig": {"defaults": {}, "overrides": []},
        "height": 8,
    }
    alerts = _time_series("Alerts", {"{{rule}} {{route}} {{severity}}, {{state}}": ALERTS_BY_RULE}, COUNT_UNIT)
    return [outcomes, heatmap, alerts]


def _time_series(
    title: str, queries: Mapping[str, str], unit: Mapping[str, Any], *, description: str = "", height: int = 8
) -> Panel:
    return {
        "type": "timeseries",
        "title": title,
        "description": description,
        "datasource": DATA_SOURCE,
        "targets": [_target(legend, query, number) for number, (legend, query) in enumerate(queries.items())],
        "fieldConfig": {"defaults": {**unit, "custom": {"spanNulls": False}}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "height": height,
    }


def _stat(title: str, query: str, unit: Mapping[str, Any]) -> Panel:
    return {
        "type": "stat",
        "title": title,
        "datasource": DATA_SOURCE,
        "targets": [{**_target("", query, 0), "instant": True}],
        "fieldConfig": {"defaults": {**unit}, "overrides": []},
        "options": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "graphMode": "none"},
        "height": 4,
    }


def _target(legend: str, query: str, number: int) -> dict[str, Any]:
    return {"refId": chr(ord("A") + number), "expr": query, "legendFormat": legend, "datasource": DATA_SOURCE}


def _add_route_link(panel: Panel, link: str | None, route: str) -> Panel:
    if link is not None:
        url = f"{link.rstrip('/')}/r/{route}?service=${{service:percentencode}}&scorer=${{scorer:percentencode}}"
        panel["fieldConfig"]["defaults"]["links"] = [{"title": "Show answers", "url": url, "targetBlank": True}]
    return panel


def _override(name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    properties = [{"id": key, "value": value} for key, value in changes.items()]
    return {"matcher": {"id": "byName", "options": name}, "properties": properties}


def _thresholds(**colors: float | None) -> dict[str, Any]:
    """Return color thresholds. The color with the value None applies below the lowest threshold."""
    steps = [{"color": color, "value": value} for color, value in colors.items()]
    return {"thresholds": {"mode": "absolute", "steps": steps}, "color": {"mode": "thresholds"}}
