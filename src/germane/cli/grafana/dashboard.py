"""The dashboard for Grafana, as its JSON."""

from __future__ import annotations

from typing import Any, Final

from germane.cli.grafana.panels import SOURCE, panels

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
