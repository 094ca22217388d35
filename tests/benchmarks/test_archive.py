"""The benchmark of the archive on a small scale, without times."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import archive
import duckdb
import pytest

pytestmark = pytest.mark.slow


def test_copied_days_have_their_own_ids_and_times(tmp_path: Path) -> None:
    """Two days with the same ids would count as one, and the benchmark would measure too little."""
    days = 30
    with closing(archive.TrackingStore(f"sqlite:///{tmp_path / 'germane.db'}")) as store:
        store.migrate()
        archive.build(store, tmp_path / "archive", days, 3_000)
        stored = store.archive.summarize().days
    rows = sum(day.manifest.rows("exchange") for day in stored)

    with duckdb.connect() as connection:
        found = connection.execute(
            f"SELECT count(DISTINCT id), count(DISTINCT started_at::DATE), min(length(id)), min(length(trace_id)) "
            f"FROM read_parquet('{tmp_path}/archive/day=*/exchange-*.parquet')"
        ).fetchone()

    assert len(stored) == days
    assert found == (rows, days, 32, 32)
