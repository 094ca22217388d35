"""The families benchmark: its measures, its goals, and the tables that docs/research/detector.md shows."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from families import main
from streams import database, families
from streams.attribution import attribute
from streams.database import DatabaseRow, replay
from streams.families import DROP_DAYS, Family
from streams.oracle import SHIFT, log_shiryaev_roberts
from streams.production import BEGINS, learn, relearn, simulated, watch
from streams.recipe import BASELINE_DAYS, KEPT, Change
from streams.results import DropRow, QuietRow, pages, poisson_interval, quartiles, read, summary_table, written
from streams.rivals import RIVALS

FOLDER = Path(__file__).parents[2]
SHIFT_OF_TWENTY = Change(shift=0.2)


def test_the_detector_page_shows_the_stored_family_results() -> None:
    """docs/research/detector.md contains the tables generated from benchmarks/families.json."""
    page = (FOLDER / "docs" / "research" / "detector.md").read_text()

    for name, table in pages(read((FOLDER / "benchmarks" / "families.json").read_text())).items():
        assert table in page, name


def test_the_page_for_users_shows_the_stored_family_results() -> None:
    """docs/drop-detector.md contains the summary generated from benchmarks/families.json."""
    results = read((FOLDER / "benchmarks" / "families.json").read_text())

    assert summary_table(results) in (FOLDER / "docs" / "drop-detector.md").read_text()


def test_the_stored_results_cover_all_families() -> None:
    """There are at least 25 service-years per quiet family."""
    kept = read((FOLDER / "benchmarks" / "families.json").read_text())

    assert [row.family for row in kept.quiet] == [family.title for family in families.QUIET]
    assert min(row.years for row in kept.quiet) >= 25
    assert [row.family for row in kept.drops] == [family.title for family in families.DROPS]
    assert len(kept.database) == len(database.REPLAYED)


@pytest.mark.slow
def test_the_benchmark_can_update_one_table_and_keep_the_other_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code is 1 if a goal is missed; the written file reproduces the tables."""
    steady = (Family("quiet, wander 0.02", 100, 0.02),)
    shift = (Family("shift 0.20", 100, 0.02, change=SHIFT_OF_TWENTY, lasts=14),)
    for name, some in (("STEADY", steady), ("QUIET", steady), ("DROPS", shift)):
        monkeypatch.setattr(f"families.{name}", some)
    path = tmp_path / "families.json"
    settings = ["--processes", "1", "--years", "1", "--services", "2", "--json", str(path), "--sections"]
    main([*settings, "quiet"])
    code, printed = main([*settings, "drops"]), capsys.readouterr().out

    kept = read(path.read_text())
    assert code == ("missed goals:" in printed.rpartition("drops: ")[2])
    assert ([row.family for row in kept.quiet], kept.drops[0].found["germane"]) == (
        ["quiet, wander 0.02, 100 a day"],
        2,
    )
    assert written(kept) == path.read_text()
    assert main(["--tables", str(path)]) == 0
    assert "|shift 0.20, 100 a day|1.00 (0.34 to 1.00)|" in capsys.readouterr().out


def test_a_baseline_is_relearned_after_a_traffic_change_only_at_the_same_level() -> None:
    """It is relearned after two weeks of ten times the traffic, unless the level has fallen at the same time."""
    same = Family("growth", 100, 0.0, growth=10)
    worse = replace(same, change=SHIFT_OF_TWENTY, onset_day=BASELINE_DAYS)
    streams = [simulated(3, family, 30, 0)[1].stream for family in (same, worse)]
    first = [learn(stream, 0, BEGINS) for stream in streams]

    found = [relearn(stream, active, 2 * BEGINS) for stream, active in zip(streams, first, strict=True)]
    assert relearn(streams[0], first[0], 2 * BEGINS - 24) is None
    assert found[0] is not None
    assert found[0].scores_per_day > 8 * first[0].scores_per_day
    assert found[1] is None


def test_the_alert_after_a_drop_on_one_route_names_the_route() -> None:
    """The first alert after a drop on one route names this route. An alert about all routes names none."""
    one = Family("one", 100, 0.02, change=Change(shift=0.4, only="support"), lasts=14)
    every = Family("all", 100, 0.02, change=SHIFT_OF_TWENTY, lasts=14)

    assert (attribute(3, one, 0), attribute(3, every, 0)) == ("exact", "exact")
    found = watch(3, every, DROP_DAYS, 0)
    assert (len(found.fired), len(found.resolved), set(found.statistics)) == (1, 1, set(RIVALS))
    assert found.onset < found.fired[0] < found.onset + 48


@pytest.mark.slow
def test_alerts_on_a_database_match_the_alerts_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A drop and its recovery produce two notifications, with daily reminders between them."""
    drop = Family("shift 0.20", 40, 0.02, change=SHIFT_OF_TWENTY, lasts=4)
    monkeypatch.setattr(database, "REPLAYED", ((drop, 28),))
    row = replay(5, None, 0)

    assert row.misses == []
    assert (len(row.changes), row.notifications) == (2, 2)
    assert row.reminders <= (row.changes[1] - row.changes[0]) / 24


def test_benchmark_goals_are_compared_with_point_estimates() -> None:
    """The goals limit false alerts, shares, delays and notifications, and require the same alerts on a database."""
    counted = QuietRow("q", 25, {"germane": 6}, is_counted=True, weekly_deviation=0.0, fall_at_alerts=None)
    assert counted.misses == ["alerts"]
    assert replace(counted, is_counted=False).misses == []
    assert replace(counted, alerts={"germane": 5}).misses == []

    small = DropRow("shift 0.05, 1000 a day", 100, {"germane": 84}, {"germane": [1.0, 90.0, math.inf]}, 2.0, [])
    large = DropRow("shift 0.10, 300 a day", 100, {"germane": 100}, {"germane": [5.0, 13.1, 20.0]}, 2.21, [])
    assert (small.misses, large.misses) == (["found"], ["hours", "notifications"])
    assert DatabaseRow("d", 20, 100, [400.0, 500.0], [401.0, 500.0], 2, 1).misses == []
    assert DatabaseRow("d", 20, 100, [400.0], [400.0, 500.0], 2, 1).misses == ["difference"]


def test_poisson_intervals_are_exact() -> None:
    """They match Garwood's limits. For large counts, the approximation has the same value."""
    assert poisson_interval(0) == pytest.approx((0, 3.6889), abs=1e-4)
    assert poisson_interval(10) == pytest.approx((4.7954, 18.3904), abs=1e-4)
    assert poisson_interval(500) == pytest.approx((457.13, 545.81), abs=0.05)
    assert poisson_interval(501) == pytest.approx((458.09, 546.86), abs=0.05)


def test_quartiles_of_detection_delays_can_be_infinite() -> None:
    """In this example, only half of the services have an alert."""
    assert quartiles([3.0, 5.0, math.inf, math.inf]) == [3.0, 5.0, math.inf]


def test_the_likelihood_ratio_is_exact() -> None:
    """The filter's statistic equals the statistic of multivariate normal densities, summed over all onsets."""
    random, blocks, spread = np.random.default_rng(2), 12, 0.2
    errors, counts = 0.02 * random.standard_normal(blocks), np.full(blocks, 250.0)
    days = np.arange(blocks) // 4
    level = 0.02**2 * KEPT ** np.abs(days[:, None] - days)
    precision = np.linalg.inv(level + np.diag(spread**2 / counts))
    onsets = np.arange(blocks)
    falls = SHIFT * (np.arange(blocks) >= onsets[:, None])
    ratios = [-fall @ precision @ errors - fall @ precision @ fall / 2 for fall in falls]

    found = log_shiryaev_roberts(errors, counts, spread, 0.02)

    assert found[-1] == pytest.approx(np.logaddexp.reduce(ratios), abs=1e-9)
