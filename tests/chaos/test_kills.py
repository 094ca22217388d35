"""Six kills of processes in a cluster. `make chaos` runs 200."""

from __future__ import annotations

from pathlib import Path

from cluster import Cluster
from random_kills import kill_and_drain

KILLS = 6


def test_guarantees_hold_when_any_process_is_killed(database_url: str, tmp_path: Path) -> None:
    """No committed exchange is lost, none is scored twice, and the tally matches the rows.

    The judge is called once per score, and called again only for tasks that a killed process held.
    """
    with Cluster(database_url, tmp_path) as cluster:
        report = kill_and_drain(cluster, kills=KILLS, seed=7, pause=0.6)

    assert report.violations == [], str(report)
