"""The panels of the dashboard for Grafana."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from germane.cli.grafana import queries

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
        _stat("Open alerts", queries.ALERTS, {"decimals": 0, **_steps(green=None, red=1)}),
        _stat("Database", queries.UP, {"mappings": [_words({"0": "away", "1": "there"})], **_steps(red=None, green=1)}),
        _stat("Oldest without a score", queries.LAG, {"unit": "s", **_steps(green=None, orange=600)}),
        _stat("Processes that score", queries.WORKERS, {"decimals": 0, **_steps(red=None, green=1)}),
    ]


def _trends(link: str | None) -> list[Panel]:
    asked = {"mean": queries.MEAN, "lower": queries.LOWER, "upper": queries.UPPER, "baseline": queries.BASELINE}
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
        _series("Scores", {"{{route}}": queries.NUMBER}, {"decimals": 0}, said="n of each mean."),
        _series("Low answers", {"{{route}}": queries.LOW}, SHARE, said=f"Share in the lowest band. {BY_ANSWER}"),
        _series("Refusals", {"{{route}}": queries.REFUSED}, SHARE, said=f"Answers that do not answer. {BY_ANSWER}"),
    ]
    return [_linked(panel, link, of_route) for panel in made]


def _scoring() -> list[Panel]:
    covered = _series("What became of exchanges", {"{{outcome}} {{reason}}": queries.OUTCOMES}, {"decimals": 0})
    covered["fieldConfig"]["defaults"]["custom"] = {"stacking": {"mode": "normal"}, "fillOpacity": 40}
    alerts = _series("Alerts", {"{{rule}} {{route}} {{severity}}, {{state}}": queries.ALERTS_BY_RULE}, {"decimals": 0})
    heatmap: Panel = {
        "type": "heatmap",
        "title": "Scores, counted at scoring time",
        "description": AT_SCORING,
        "datasource": SOURCE,
        "targets": [{**_target("{{le}}", queries.HISTOGRAM, 0), "format": "heatmap"}],
        "options": {"calculate": False, "yAxis": {"axisPlacement": "left"}, "color": {"scheme": "Blues"}},
        "fieldConfig": {"defaults": {}, "overrides": []},
        "height": 8,
    }
    return [covered, heatmap, alerts]


def _work() -> list[Panel]:
    return [
        _series("What waits for a score", {"{{state}}": queries.DEPTH}, {"decimals": 0}),
        _series("Lag", {"oldest": queries.LAG}, {"unit": "s"}),
        _series("Budget of the day (UTC) that is spent", {"{{limit}}": queries.BUDGET}, {**SHARE, "max": None}),
        _series("Dollars of the day (UTC)", {"spent": queries.DOLLARS}, {"unit": "currencyUSD"}),
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
