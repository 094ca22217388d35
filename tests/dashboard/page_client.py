"""A client for a store's pages and forms, and alerts to display."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.testclient import TestClient
from tests.dashboard.conftest import now
from tests.dashboard.seeding import NOW, SERVICE

from germane.alert import Alert, AlertChange, AlertEvent, alert_key
from germane.dashboard import create_app
from germane.settings import load_settings
from germane.storage import AlertTransaction, TrackingStore


@contextmanager
def open_dashboard(store: TrackingStore, *, read_only: bool = False, **settings: Any) -> Iterator[TestClient]:
    """Yield a client for a store's pages that does not follow redirects."""
    app = create_app(load_settings(database="sqlite://", **settings), store=store, now=now, read_only=read_only)
    with TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 50_000), follow_redirects=False) as client:
        yield client


def csrf_token(client: TestClient, path: str) -> str:
    """Return the CSRF token of the forms on a page."""
    found = re.search(r'name="csrf" value="([^"]+)"', client.get(path).text)
    assert found is not None
    return found[1]


def post_form(client: TestClient, path: str, page: str = "/alerts", **fields: str) -> Any:
    """Submit a form with the CSRF token of a page."""
    return client.post(path, data={"csrf": csrf_token(client, page), **fields})


def write_alert(store: TrackingStore, name: str, **given: Any) -> Alert:
    """Write a firing alert of the ``mean_threshold`` rule."""
    labels = given.pop("labels", {"service": SERVICE, "scorer": "answer_relevancy", "route": name})
    values = {
        "rule": "mean_threshold",
        "type": "mean_threshold",
        "state": "firing",
        "starts_at": NOW,
        "fired_at": NOW,
        **given,
    }
    alert = Alert(id=name, key=alert_key(values["rule"], labels), labels=labels, evaluated_at=NOW, **values)
    event = AlertEvent(id=f"e{name}", alert_id=name, at=NOW, type="fired", after=alert.state)
    assert store.alerts.commit(AlertTransaction(changes=[AlertChange(alert=alert, event=event)]))
    return alert
