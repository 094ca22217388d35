"""Pages whose window reaches into the archive."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.dashboard.page_client import open_dashboard
from tests.storage.archiving import archive, fill
from tests.storage.conftest import an_exchange

from germane.storage import TrackingStore


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_page_names_the_days_that_cannot_be_read(store: TrackingStore, tmp_path: Path) -> None:
    """It does not show lower numbers. Pages whose window does not reach the archive work."""
    exchanges = fill(store, an_exchange)
    archive(store, str(tmp_path / "archive"))
    (path,) = tmp_path.glob("archive/day=2026-02-03/score-*.parquet")
    path.unlink()

    with open_dashboard(store) as client:
        recent = client.get("/answers", headers={"accept": "text/html"})
        damaged = client.get(f"/a/{exchanges[-1].id}", headers={"accept": "text/html"})

    assert recent.status_code == 200
    assert damaged.status_code == 503
    assert f"1 day of the archive could not be read: 2026-02-03: {path.name} is missing" in damaged.text
