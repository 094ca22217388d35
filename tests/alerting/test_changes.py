"""What an alert says about changes in the application: the latest before the onset first, with its distance."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from germane.alert import Alert, alert_key
from germane.alerting.changes import NEAR, Change, find_changes, list_changes
from germane.alerting.facts import alert_facts
from germane.alerting.wording import alert_message
from germane.annotation import Marker
from germane.exchange import Exchange
from germane.score import Score
from germane.storage import SamplingDecision, TrackingStore

ONSET = datetime(2026, 3, 3, 12, tzinfo=UTC)
LABELS = {"service": "shop", "scorer": "answer_relevancy"}


def an_alert(**details: Any) -> Alert:
    """Return an open drop that began at noon."""
    return Alert(
        id="a", key=alert_key("drop", LABELS), labels=LABELS, rule="drop", type="drop", state="firing", onset=ONSET,
        starts_at=ONSET, fired_at=ONSET, evaluated_at=ONSET, details=details,
    )  # fmt: skip


def marker(name: str, minutes: float) -> dict[str, str]:
    """Return a marker some minutes after the onset, as an alert stores it."""
    return {"name": name, "at": (ONSET + timedelta(minutes=minutes)).isoformat()}


def test_the_latest_change_before_the_onset_is_named_first_with_its_distance_in_time() -> None:
    """Changes after the onset follow, and changes more than a day before it are not "around that time".

    A model that was in use all along, and only became the most common one, has no time and did not change.
    """
    alert = an_alert(
        markers=[marker("deploy", 10), marker("index v41", -600), marker("index v42", -80)],
        release={"prompt_version": ["6", "7"], "model": ["larch-1", "larch-2"]},
        release_times={"prompt_version": (ONSET - timedelta(days=2)).isoformat()},
    )
    facts = alert_facts(alert)
    assert [(change.name, change.distance(ONSET)) for change in facts.near] == [
        ("index v42", "80 minutes before"),
        ("index v41", "10 hours before"),
        ("deploy", "10 minutes after"),
    ]
    assert [(change.name, change.distance(ONSET)) for change in facts.far] == [
        ("prompt version 6 \u2192 7", "2 days before")
    ]


@given(st.lists(st.integers(-5_000, 5_000), min_size=1, max_size=8))
def test_changes_before_the_onset_are_listed_before_later_changes(minutes: list[int]) -> None:
    """All changes before the onset come before all changes after it, each group nearest first."""
    alert = an_alert(markers=[marker(f"m{number}", value) for number, value in enumerate(minutes)])
    times = [change.at - ONSET for change in list_changes(alert, ONSET)]

    before = [time for time in times if time <= timedelta()]
    assert times == [*sorted(before, reverse=True), *sorted(time for time in times if time > timedelta())]
    for change, time in zip(list_changes(alert, ONSET), times, strict=True):
        assert change.is_near(ONSET) == (abs(time) <= NEAR)
        assert change.distance(ONSET).endswith("before" if time <= timedelta() else "after")


def test_a_version_change_has_the_time_of_its_first_scored_answer(
    store: TrackingStore, new_exchange: Callable[..., Exchange]
) -> None:
    """The time is that of the first scored answer; a version that was always in use has none."""
    ages = {"6": (40, 30, 20), "7": (10.4, 8, 3)}
    made = [
        new_exchange(started_at=ONSET - timedelta(hours=age), prompt_version=version, model="larch-2")
        for version, of_version in ages.items()
        for age in of_version
    ]
    store.exchanges.add(made)
    store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "sampled") for one in made], {"answer_relevancy": "f"})
    claims = store.queue.claim_tasks("me", {"answer_relevancy": "f"}, limit=100, lease=timedelta(60))
    results = [
        (task, Score(scorer=task.scorer, fingerprint="f", value=0.9)) for claim in claims for task in claim.tasks
    ]
    store.queue.complete_tasks("me", results)
    store.trends.add_markers(
        [
            Marker(id=name, name=name, service=service, at=ONSET - timedelta(hours=hours))
            for name, service, hours in (("near", "shop", 1), ("far", "shop", 30), ("foreign", "bank", 1))
        ]
    )
    alert = an_alert(release={"prompt_version": ["6", "7"], "model": ["larch-1", "larch-2"]})
    found = find_changes(store.trends, alert, ONSET)

    assert [one["name"] for one in found["markers"]] == ["near"]
    began = ONSET - timedelta(hours=10.4)
    assert found["release_times"] == {"prompt_version": began.replace(second=0).isoformat()}


def test_names_of_markers_and_versions_in_changes_are_sanitized() -> None:
    """Line breaks and escape sequences are removed, and long names are truncated."""
    alert = an_alert(markers=[marker("a\n\x1b[31m" + "x" * 500, -1)], release={"model": ["\x07", "\u202e" + "y" * 500]})
    assert alert_message(alert).isprintable()
    assert len(alert_message(alert)) < 500


def test_the_stated_distance_between_a_change_and_the_onset_is_never_zero() -> None:
    """A change within a minute of the onset happened just before or just after it."""
    assert Change("deploy", ONSET).distance(ONSET) == "just before"
    assert Change("deploy", ONSET + timedelta(seconds=5)).distance(ONSET) == "just after"
