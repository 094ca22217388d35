"""The onset of a drop in stored scores, and on which side of the nearest deploy it lies."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.alerting.conftest import a_rule
from tests.conftest import migrated_file
from tests.insights.incidents import FINGERPRINT, SCORER, write

from germane.alerting.onset import UNKNOWN, Onset, add_onset, estimate_onset, find_deploy, format_distance
from germane.annotation import Marker
from germane.storage import TrackingStore

BEGAN = datetime(2026, 11, 19, 5, 30, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
NOW = BEGAN + 8 * HOUR
ONSET = Onset(BEGAN, (BEGAN - 20 * MINUTE, BEGAN + 10 * MINUTE))


@pytest.fixture
def made(tmp_path: Path) -> Iterator[TrackingStore]:
    """An empty store."""
    store = TrackingStore(f"sqlite:///{migrated_file(tmp_path)}", clock=lambda: NOW)
    yield store
    store.close()


def score(store: TrackingStore, value: Callable[[datetime, random.Random], float], **levels: float) -> None:
    """Store one answer in ten minutes for each route, over two days: its level plus a value."""
    made = random.Random(4)
    times = [NOW - 2 * DAY + 10 * MINUTE * number for number in range(6 * 48)]
    write(
        store,
        made,
        [("shop", route, at, max(0.0, level + value(at, made))) for at in times for route, level in levels.items()],
    )


def fallen(at: datetime, made: random.Random) -> float:
    """Return the difference from a route's level: noise, and a drop."""
    return made.gauss(0, 0.02) - (0.3 if at >= BEGAN else 0.0)


def estimate(store: TrackingStore, **given: Any) -> Onset | None:
    """Estimate the onset on one route."""
    place = {"scorer": SCORER, "service": "shop", "route": "ask", "fingerprint": FINGERPRINT, "until": NOW}
    return estimate_onset(store.trends, **place | given)


def mark(store: TrackingStore, **times: timedelta) -> None:
    """Write markers at times relative to the onset, by name."""
    store.trends.add_markers(
        [
            Marker(id=UUID(int=number + 1).hex, name=name, service="shop", at=BEGAN + time)
            for number, (name, time) in enumerate(times.items())
        ]
    )


def test_the_onset_is_the_minute_of_the_first_answer_at_the_lower_level(made: TrackingStore) -> None:
    """The interval begins with the last good answer, and ends after the first bad one. Earlier answers are no drop."""
    score(made, fallen, ask=0.8, docs=0.5)

    assert estimate(made) == Onset(BEGAN, (BEGAN - 10 * MINUTE, BEGAN + MINUTE))
    assert estimate(made, suspected=NOW - DAY) == estimate(made)
    assert estimate(made, until=BEGAN) is None
    assert estimate(made, fingerprint="f2") is None


def test_a_drop_of_weeks_ago_has_an_onset(made: TrackingStore) -> None:
    """It is found if the search begins where the level was still good, also if there are months of answers."""
    times = [NOW - 50 * DAY + 2 * HOUR * number for number in range(12 * 50)]
    for age in (20 * DAY, 45 * DAY):
        began = NOW - age
        route = f"old-{age.days}"
        write(made, random.Random(age.days), [("shop", route, at, 0.4 if at >= began else 0.8) for at in times])

        assert estimate(made, route=route) is None
        found = estimate(made, route=route, suspected=NOW - 40 * DAY)
        assert found is not None
        assert found.at == began


def test_answers_are_not_read_one_by_one_over_days(made: TrackingStore) -> None:
    """Where a level drifts down slowly, the minute of the onset does not matter."""
    noise, began = random.Random(6), NOW - 12 * DAY
    times = [began + HOUR * number for number in range(12 * 24)]
    write(made, noise, [("shop", "ask", at, noise.gauss(0.8 - 0.01 * ((at - began) / DAY), 0.1)) for at in times])
    read: list[tuple[datetime, datetime]] = []

    class Recorded:
        def over_time(self, *, since: datetime, until: datetime, bucket: timedelta, **given: Any) -> Any:
            if bucket == MINUTE:
                read.append((since, until))
            return made.trends.over_time(since=since, until=until, bucket=bucket, **given)

    found = estimate_onset(
        Recorded(),  # type: ignore[arg-type]  # the only method that is called
        scorer=SCORER, service="shop", route="ask", fingerprint=FINGERPRINT, until=NOW,
    )  # fmt: skip
    assert found is not None
    assert found.interval is not None
    assert found.interval[0] < read[0][0] < read[0][1] < found.interval[1]
    assert read[0][1] - read[0][0] == DAY


def test_the_onset_of_a_whole_service_does_not_depend_on_the_levels_of_its_routes(made: TrackingStore) -> None:
    """Routes that a rule does not watch are left out."""
    score(made, fallen, ask=0.9, docs=0.4, faq=0.65)

    assert estimate(made, route=None) == Onset(BEGAN, (BEGAN - 10 * MINUTE, BEGAN + MINUTE))
    assert estimate(made, route=None, matches_route=lambda name: name == "other") is None


@pytest.mark.parametrize("type_", ["noncommittal_rate", "low_score_rate", "mean_threshold"])
def test_rules_that_know_no_onset_get_one_when_they_fire(made: TrackingStore, type_: str) -> None:
    """More refusals are a drop, too."""

    def refused(at: datetime, made: random.Random) -> float:
        return -1.0 if made.random() < (0.8 if at >= BEGAN else 0.03) else made.gauss(0, 0.02)

    score(made, refused, ask=0.8)
    labels = {"service": "shop", "scorer": SCORER, "route": "ask"}
    alert = add_onset(
        made.trends, a_rule(type_, labels=labels, fingerprint=FINGERPRINT, evaluated_at=NOW), "ask".__eq__
    )

    assert alert.onset is not None
    assert alert.onset_interval is not None
    assert alert.onset_interval[0] <= BEGAN < alert.onset_interval[1]
    assert abs(alert.onset - BEGAN) <= 20 * MINUTE


def test_alerts_about_scoring_and_alerts_without_a_clear_drop_are_unchanged(made: TrackingStore) -> None:
    """The detector's onset is kept."""
    score(made, lambda _, made: made.gauss(0, 0.02), ask=0.8)
    for type_ in ("drop", "no_data"):
        labels = {"service": "shop", "scorer": SCORER, "route": "ask"}
        alert = a_rule(type_, onset=BEGAN, labels=labels, fingerprint=FINGERPRINT, evaluated_at=NOW)
        assert add_onset(made.trends, alert, "ask".__eq__) == alert


@pytest.mark.parametrize(
    ("other", "is_shared"),
    [
        ({}, True),
        ({"labels": {"service": "shop", "scorer": SCORER}}, True),
        ({"labels": {"service": "shop", "scorer": SCORER, "route": "docs"}}, False),
        ({"labels": {"service": "desk", "scorer": SCORER, "route": "ask"}}, False),
        ({"fingerprint": "f2"}, False),
        ({"labels": {"service": "shop", "scorer": "faithfulness", "route": "ask"}, "fingerprint": "f2"}, True),
        ({"onset_interval": None}, False),
        ({"onset_interval": (BEGAN - 2 * HOUR, BEGAN - 10 * MINUTE)}, False),
        ({"onset_interval": (BEGAN + MINUTE, BEGAN + HOUR)}, False),
    ],
)
def test_a_drop_that_two_rules_or_scorers_notice_has_one_onset(
    made: TrackingStore, other: dict[str, Any], is_shared: bool
) -> None:
    """That is the one that was reported first, if the drop may have begun then."""
    score(made, fallen, ask=0.8)
    usual = {"labels": {"service": "shop", "scorer": SCORER, "route": "ask"}, "fingerprint": FINGERPRINT}
    told = {"onset": BEGAN - 5 * MINUTE, "onset_interval": (BEGAN - HOUR, BEGAN)}
    first = a_rule("mean_threshold", **usual | told | other)

    alert = add_onset(made.trends, a_rule("drop", **usual, evaluated_at=NOW), "ask".__eq__, [first])

    assert (alert.onset == first.onset) is is_shared
    assert (alert.onset_interval == first.onset_interval) is is_shared


@pytest.mark.parametrize(
    ("markers", "expected"),
    [
        ({}, None),
        ({"v2": -40 * MINUTE, "v1": -3 * DAY}, 'it began 40 minutes after the deploy "v2"'),
        ({"v2": -20 * MINUTE}, 'it began 20 minutes after the deploy "v2"'),
        ({"v1": -3 * DAY, "v3": 2 * HOUR}, 'it began 3 days after the deploy "v1"'),
        ({"v3": 10 * MINUTE}, "it began before any recorded deploy"),
        ({"Redeployment 7": -DAY}, 'it began 24 hours after "Redeployment 7"'),
        (
            {"v1": -40 * MINUTE, "v2": -5 * MINUTE, "v3": 9 * MINUTE, "v4": HOUR},
            'whether it began before or after the deploy "v2" cannot be decided',
        ),
    ],
)
def test_the_nearest_deploy_is_before_the_onset_after_it_or_cannot_be_decided(
    made: TrackingStore, markers: dict[str, timedelta], expected: str | None
) -> None:
    """Deploys of other services do not matter."""
    mark(made, **markers)

    found = find_deploy(made.trends, "shop", ONSET)

    assert (found and found.words) == expected
    assert find_deploy(made.trends, "desk", ONSET) is None


def test_an_onset_without_an_interval_may_be_a_day_off() -> None:
    """It is decided only for deploys that are further away."""
    onset = Onset(BEGAN)

    assert onset.side_of(BEGAN - UNKNOWN) == "before"
    assert onset.side_of(BEGAN - UNKNOWN + MINUTE) == onset.side_of(BEGAN + UNKNOWN - MINUTE) == "undecided"
    assert onset.side_of(BEGAN + UNKNOWN) == "after"


def test_distances_are_in_the_largest_unit_that_tells_them_apart() -> None:
    """Minutes up to two hours, and hours up to two days."""
    times = (timedelta(seconds=59), MINUTE, 119 * MINUTE, 2 * HOUR, 47 * HOUR, 2 * DAY)

    found = [format_distance(each) for each in times]
    assert found == [
        "just",
        "1 minute",
        "119 minutes",
        "2 hours",
        "47 hours",
        "2 days",
    ]
