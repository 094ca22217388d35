"""Pages with many routes stay small."""

from __future__ import annotations

from dataclasses import replace

import pytest
from starlette.testclient import TestClient
from tests.dashboard.conftest import Week
from tests.dashboard.page_client import open_dashboard
from tests.dashboard.seeding import DROP, FINGERPRINTS, NOW, SEARCH

from germane.storage import SamplingDecision

MAX_SIZE, MAX_USUAL_SIZE = 200_000, 110_000
ROUTES = 10_000


def test_every_page_is_small_with_its_style_and_script(page: TestClient) -> None:
    """A page with charts and fifty rows is small enough for a slow connection, even if nothing is compressed."""
    files = sum(len(page.get(f"/static/{name}").content) for name in ("style.css", "germane.js"))
    paths = ("/", "/answers?sort=newest", "/answers?group=question", "/compare?by=model", "/usage", "/worker")
    sizes = {path: files + len(page.get(path).content) for path in paths}

    assert {path: size for path, size in sizes.items() if size > MAX_USUAL_SIZE} == {}


@pytest.mark.slow
def test_every_page_is_small_with_ten_thousand_routes(own_week: Week) -> None:
    """Menus become text fields, and lists are truncated and show the number of hidden routes."""
    late = next(one for one in reversed(own_week.seeded.exchanges) if one.started_at < NOW - DROP / 10)
    made = [
        replace(late, id=f"{number:032x}", route=f"tenant-{number:05d}/documents/search", trace_id=f"{number:032x}")
        for number in range(ROUTES)
    ]
    for start in range(0, ROUTES, 1000):
        own_week.store.exchanges.add(made[start : start + 1000])
        decisions = [SamplingDecision(one.id, 1.0, "sampled") for one in made[start : start + 1000]]
        own_week.store.sampling.assign_tasks(decisions, FINGERPRINTS)
    sizes = {}
    with open_dashboard(own_week.store) as client:
        for path in (
            "/", "/answers", "/answers?route=nope", f"/answers?route={SEARCH}", f"/r/{SEARCH}", "/r/nope", "/alerts",
            "/alerts/backtest", "/worker", f"/alerts/{own_week.seeded.open_alert}", f"/a/{made[0].id}",
            "/usage", "/compare?window=24h", "/compare?by=model", f"/compare?by=prompt_version&route={SEARCH}",
        ):  # fmt: skip
            sizes[path] = len(client.get(path, headers={"accept": "text/html"}).content)

    assert {path: size for path, size in sizes.items() if size > MAX_SIZE} == {}
