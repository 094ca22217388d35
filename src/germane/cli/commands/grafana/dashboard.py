"""The dashboard for Grafana, as its JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

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


Panel = dict[str, Any]
SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
WIDTH: Final = 24
"""Of Grafana's grid."""
SCORE: Final = {"min": 0, "max": 1, "decimals": 2}
SHARE: Final = {"unit": "percentunit", "min": 0, "max": 1}
AT_SCORING: Final = "Counted when a score was made, unweighted, by the processes that score: no trend of answers."
BY_ANSWER: Final = "By the time of the answer, weighted. No value under 20 scores; judges are never averaged."


def panels(link: str | None) -> list[Panel]:
    """Return them from top to bottom; ``link`` is where germane's own pages are, None for no links there."""
    rows = [_now(), _trends(link), _kinds(link), _scoring(), _work()]
    placed: list[Panel] = []
    for row in rows:
        placed += _placed(row, y=sum(panel["gridPos"]["h"] for panel in placed if panel["gridPos"]["x"] == 0))
    return [{"id": number, **panel} for number, panel in enumerate(placed, start=1)]


def _placed(row: Sequence[Panel], y: int) -> list[Panel]:
    width = WIDTH // len(row)
    return [
        {**panel, "gridPos": {"x": column * width, "y": y, "w": width, "h": panel.pop("height")}}
        for column, panel in enumerate(row)
    ]


def _now() -> list[Panel]:
    return [
        _stat("Open alerts", ALERTS, {"decimals": 0, **_steps(green=None, red=1)}),
        _stat("Database", UP, {"mappings": [_words({"0": "away", "1": "there"})], **_steps(red=None, green=1)}),
        _stat("Oldest without a score", LAG, {"unit": "s", **_steps(green=None, orange=600)}),
        _stat("Processes that score", WORKERS, {"decimals": 0, **_steps(red=None, green=1)}),
    ]


def _trends(link: str | None) -> list[Panel]:
    asked = {"mean": MEAN, "lower": LOWER, "upper": UPPER, "baseline": BASELINE}
    panel = _series("$route: mean with its 95 % interval", asked, SCORE, said=BY_ANSWER, height=9)
    panel["fieldConfig"]["overrides"] = [
        _override("upper", {"custom.fillBelowTo": "lower", "custom.lineWidth": 0, "custom.fillOpacity": 20}),
        _override("lower", {"custom.lineWidth": 0, "custom.fillOpacity": 0}),
        _override("baseline", {"custom.lineStyle": {"fill": "dash", "dash": [8, 8]}, "custom.fillOpacity": 0}),
    ]
    panel |= {"repeat": "route", "repeatDirection": "h", "maxPerRow": 3}
    return [_linked(panel, link, "${route:percentencode}")]


def _kinds(link: str | None) -> list[Panel]:
    of_route = "${__field.labels.route:percentencode}"
    made = [
        _series("Scores", {"{{route}}": NUMBER}, {"decimals": 0}, said="n of each mean."),
        _series("Low answers", {"{{route}}": LOW}, SHARE, said=f"Share in the lowest band. {BY_ANSWER}"),
        _series("Refusals", {"{{route}}": REFUSED}, SHARE, said=f"Answers that do not answer. {BY_ANSWER}"),
    ]
    return [_linked(panel, link, of_route) for panel in made]


def _scoring() -> list[Panel]:
    covered = _series("What became of exchanges", {"{{outcome}} {{reason}}": OUTCOMES}, {"decimals": 0})
    covered["fieldConfig"]["defaults"]["custom"] = {"stacking": {"mode": "normal"}, "fillOpacity": 40}
    alerts = _series("Alerts", {"{{rule}} {{route}} {{severity}}, {{state}}": ALERTS_BY_RULE}, {"decimals": 0})
    heatmap: Panel = {
        "type": "heatmap",
        "title": "Scores, counted at scoring time",
        "description": AT_SCORING,
        "datasource": SOURCE,
        "targets": [{**_target("{{le}}", HISTOGRAM, 0), "format": "heatmap"}],
        "options": {"calculate": False, "yAxis": {"axisPlacement": "left"}, "color": {"scheme": "Blues"}},
        "fieldConfig": {"defaults": {}, "overrides": []},
        "height": 8,
    }
    return [covered, heatmap, alerts]


def _work() -> list[Panel]:
    return [
        _series("What waits for a score", {"{{state}}": DEPTH}, {"decimals": 0}),
        _series("Lag", {"oldest": LAG}, {"unit": "s"}),
        _series("Budget of the day (UTC) that is spent", {"{{limit}}": BUDGET}, {**SHARE, "max": None}),
        _series("Dollars of the day (UTC)", {"spent": DOLLARS}, {"unit": "currencyUSD"}),
    ]


def _series(title: str, asked: Mapping[str, str], unit: Mapping[str, Any], *, said: str = "", height: int = 8) -> Panel:
    return {
        "type": "timeseries",
        "title": title,
        "description": said,
        "datasource": SOURCE,
        "targets": [_target(legend, query, number) for number, (legend, query) in enumerate(asked.items())],
        "fieldConfig": {"defaults": {**unit, "custom": {"spanNulls": False}}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "height": height,
    }


def _stat(title: str, query: str, unit: Mapping[str, Any]) -> Panel:
    return {
        "type": "stat",
        "title": title,
        "datasource": SOURCE,
        "targets": [{**_target("", query, 0), "instant": True}],
        "fieldConfig": {"defaults": {**unit}, "overrides": []},
        "options": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "graphMode": "none"},
        "height": 4,
    }


def _target(legend: str, query: str, number: int) -> dict[str, Any]:
    return {"refId": chr(ord("A") + number), "expr": query, "legendFormat": legend, "datasource": SOURCE}


def _linked(panel: Panel, link: str | None, route: str) -> Panel:
    if link is not None:
        url = f"{link.rstrip('/')}/r/{route}?service=${{service:percentencode}}&scorer=${{scorer:percentencode}}"
        panel["fieldConfig"]["defaults"]["links"] = [{"title": "Its answers", "url": url, "targetBlank": True}]
    return panel


def _override(name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    properties = [{"id": key, "value": value} for key, value in changes.items()]
    return {"matcher": {"id": "byName", "options": name}, "properties": properties}


def _steps(**colours: float | None) -> dict[str, Any]:
    steps = [{"color": colour, "value": value} for colour, value in colours.items()]
    return {"thresholds": {"mode": "absolute", "steps": steps}, "color": {"mode": "thresholds"}}


def _words(words: Mapping[str, str]) -> dict[str, Any]:
    return {"type": "value", "options": {value: {"text": text} for value, text in words.items()}}


UID: Final = "germane-answers"
"""Always the same, so that links to it last and a newer one takes its place."""
WINDOWS: Final = ("1h", "24h", "7d")


def dashboard(link: str | None = None) -> dict[str, Any]:
    """Return it; ``link`` is the address of germane's own pages, to which routes then lead."""
    return {
        "uid": UID,
        "id": None,
        "title": "germane: do answers still answer",
        "tags": ["germane", "rag"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "timezone": "browser",
        "refresh": "1m",
        "time": {"from": "now-7d", "to": "now"},
        "templating": {"list": _variables()},
        "annotations": {"list": []},
        "links": [] if link is None else [_to_pages(link)],
        "panels": panels(link),
    }


def _variables() -> list[dict[str, Any]]:
    window = {"name": "window", "label": "Window", "type": "custom", "query": ",".join(WINDOWS)}
    chosen = {"text": "24h", "value": "24h", "selected": True}
    options = [{"text": name, "value": name, "selected": name == "24h"} for name in WINDOWS]
    return [
        {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0},
        _variable("service", "Service", "label_values(germane_exchanges_seen, service)"),
        _variable("scorer", "Scorer", 'label_values(germane_scores{service="$service"}, scorer)'),
        _variable("route", "Route", 'label_values(germane_scores{service="$service", scorer="$scorer"}, route)')
        | {"multi": True, "includeAll": True, "current": {"text": ["All"], "value": ["$__all"]}},
        {**window, "current": chosen, "options": options},
    ]


def _variable(name: str, label: str, query: str) -> dict[str, Any]:
    asked = {"query": query, "refId": name}
    of_prometheus = {"type": "query", "datasource": SOURCE, "definition": query, "query": asked}
    return {"name": name, "label": label, **of_prometheus, "refresh": 2, "sort": 1, "multi": False}


def _to_pages(link: str) -> dict[str, Any]:
    return {"title": "germane", "type": "link", "url": link, "targetBlank": True, "icon": "external link"}
