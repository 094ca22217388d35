"""A fleet whose processes are killed: the short version. The long one is `make chaos`."""

from __future__ import annotations

from pathlib import Path

from fleet import Fleet
from killing import kill_and_drain

KILLS = 6


def test_a_fleet_of_which_anybody_may_be_killed_keeps_its_promises(database_url: str, tmp_path: Path) -> None:
    """No committed exchange is lost, none is scored twice, and the tally is that of the rows, to the last count.

    The judge is asked once for each score, and once more only for what a killed process was at.
    """
    with Fleet(database_url, tmp_path) as fleet:
        report = kill_and_drain(fleet, kills=KILLS, seed=7, pause=0.6)

    assert report.faults == [], str(report)
