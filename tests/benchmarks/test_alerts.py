"""A part of the alerts benchmark: the production detector on synthetic streams with a fixed seed."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from alerts import main
from streams.bands import median_figure, plain_figure, reported, share_figure
from streams.cases import Cell
from streams.figures import Figure
from streams.measures import Measured, in_all_per_drop, per_drop, premature, quantile, recovery_delay
from streams.recipe import Change, stream
from streams.simulate import chosen, simulated, simulated_hourly_rule, tasks
from streams.tables import cell, line, miss, pages, read, written
from streams.watched import Outcome, detected, random_of, streamed, watched

SMALL, USUAL = Cell(20, 0.02), Cell(100, 0.01)
FOLDER = Path(__file__).parents[2]


def by_place(figures: list[Figure]) -> dict[tuple[str, str], float]:
    """Return results by case and measure."""
    return {(figure.case, figure.measure): figure.value for figure in figures}


def test_drops_are_detected_and_services_without_a_drop_raise_at_most_one_alert() -> None:
    """In 15 services per case, at most one alert fires without a drop. A drop of 0.10 is detected within two days."""
    cases = ("null", "mix -.075", "shift .10", "refusal .10", "support .20")
    found = by_place(simulated(3, USUAL, chosen(USUAL, times=0.05, only=cases)))

    assert found["null", "alerts"] <= 1 / 15
    assert found["mix -.075", "alerts"] <= 1 / 15
    for case, hours in (("shift .10", 30), ("refusal .10", 80), ("support .20", 90)):
        assert found[case, "p7"] >= 0.9
        assert 4 < found[case, "median"] <= hours


def test_one_drop_raises_exactly_one_alert_and_the_alert_resolves() -> None:
    """A 28-day drop fires once. The alert for a 15-day drop resolves within days of the recovery, and not earlier."""
    found = by_place(simulated(4, USUAL, chosen(USUAL, times=0.1, only=(".07 for 28 d", ".10 for 15 d"))))

    assert found[".07 for 28 d", "found"] == 1
    assert found[".07 for 28 d", "per drop"] <= 1.15
    assert found[".10 for 15 d", "premature"] == 0
    assert found[".10 for 15 d", "per drop"] <= 2.3
    assert 10 < found[".10 for 15 d", "median"] < 120


def test_a_year_without_a_change_raises_at_most_two_alerts_in_six_services() -> None:
    """The services have 20 scores per day and a daily wander of 0.02."""
    (figure,) = simulated(5, SMALL, chosen(SMALL, times=0.05, only=("year",)))

    assert (figure.count, figure.value <= 2 / 6) == (6, True)


def test_the_hourly_rule_raises_many_false_alerts_or_misses_most_drops() -> None:
    """By default it fires on most days. Tuned to germane's number of false alerts, it detects almost nothing."""
    cases = ("null", "mix -.038", "mix -.075", "shift .05", "shift .10", ".07 for 15 d")
    found = by_place(simulated_hourly_rule(6, USUAL, chosen(USUAL, times=0.05, only=cases)))

    assert found["null", "hourly rule: alerts"] > 20
    assert found["shift .05", "hourly rule, tuned: p7"] <= 0.2
    assert found[".07 for 15 d", "hourly rule: per drop"] > 100


def test_the_batch_size_does_not_change_the_benchmark_result() -> None:
    """Batches of one day and of 31 days give the same result, and a service's outcome does not depend on its task."""
    (case,) = chosen(USUAL, only=(".10 for 15 d",))
    found = streamed(1, USUAL, case, 7)
    daily = detected(found, days=case.days)

    assert daily == detected(found, days=case.days, step=31)
    assert daily[:1] == detected(found, days=case.days, once=True)
    assert watched(1, USUAL, case, 7) == Outcome(found.onset, found.end, daily)
    assert [fires for _, fires in daily] == [True, False]
    assert sorted(n for task in tasks(1, USUAL, [case]) for n in task.numbers) == list(range(case.services))


def test_random_numbers_are_reproducible_and_differ_between_services() -> None:
    """The random numbers depend on the seed, the kind of service, the case and the service number."""
    places = [
        (1, USUAL, "null", 0),
        (2, USUAL, "null", 0),
        (1, SMALL, "null", 0),
        (1, USUAL, "year", 0),
        (1, USUAL, "null", 1),
    ]
    drawn = [random_of(*place).random() for place in places]

    assert len(set(drawn)) == len(places)
    assert drawn == [random_of(*place).random() for place in places]
    one, two = (stream(random_of(*places[0]), 20, 0.01, days=20, change=Change(shift=0.1)) for _ in range(2))
    assert (one.values == two.values).all()


def test_detection_measures_are_computed_from_the_times_of_a_drop_and_its_alerts() -> None:
    """During a drop from hour 100 to 200, the alert fires at 110, resolves at 150, fires at 160 and resolves at 230."""
    outcome = Outcome(100, 200, ((50, True), (60, False), (110, True), (150, False), (160, True), (230, False)))
    silent = Outcome(100, 200, ())
    open_still = Outcome(100, 200, ((120, True),))

    assert per_drop([outcome, silent]) == Measured(3, 1, 1)
    assert premature([outcome, silent, open_still]).value == 0.5
    assert in_all_per_drop([outcome, silent]).value == 4
    assert (recovery_delay([outcome], 0.5).value, recovery_delay([outcome, open_still], 0.9).value) == (30, math.inf)
    assert quantile([1, 2, math.inf], 0.5).value == 2


def test_benchmark_results_are_compared_with_the_published_values() -> None:
    """Detection rates match within 0.10, median delays within 30%, and other values stay below a limit.

    Better values also meet the limit.
    """
    place, known = Cell(100, 0.01), reported(Cell(100, 0.01), "shift .05", 0)
    assert known == 0.81
    verdicts = [
        share_figure(place, "shift .05", "p7", Measured(value, 0.03, 150), known).verdict for value in (0.7, 0.71, 0.95)
    ]
    assert verdicts == ["missed", "met", "better"]
    verdicts = [
        median_figure(place, "shift .05", Measured(value, 3, 150), 100.0).verdict for value in (131, 130, 69, math.inf)
    ]
    assert verdicts == ["missed", "met", "better", "missed"]
    assert median_figure(place, "shift .05", Measured(math.inf, 3, 150), math.inf).verdict == "met"
    missed = plain_figure(place, ".07 for 28 d", "per drop", Measured(1.25, 0.05, 75), 1.0, 1.15)
    assert "1.25, limit <= 1.15 (reported 1), 2 standard errors beyond, 75 services" in miss(missed)
    assert "missed" in line(missed)
    assert cell({("a", "m"): missed}, ("a", "m")) == "**1.25 (1)**"


def test_the_benchmark_prints_and_writes_results_and_fails_on_a_missed_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The written file reproduces the tables. The exit code is 1 if a limit was missed."""
    path = tmp_path / "figures.json"
    settings = ["--processes", "1", "--cells", "20:.01", "--times", ".05", "--cases", "shift .20", "null"]
    code, printed = main([*settings, "--json", str(path)]), capsys.readouterr().out

    assert code == ("missed:" in printed)
    assert written(read(path.read_text())) == path.read_text()
    assert main(["--tables", str(path)]) == 0
    assert "|20, 0.01|" in capsys.readouterr().out


def test_the_detector_page_shows_the_stored_alert_results() -> None:
    """docs/detector.md contains the tables generated from benchmarks/alerts.json."""
    kept = read((FOLDER / "benchmarks" / "alerts.json").read_text())

    assert pages(kept) in (FOLDER / "docs" / "detector.md").read_text()
