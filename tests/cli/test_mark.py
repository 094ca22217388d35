"""Tests of `germane mark` and of comparisons in `germane report`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.cases import each

from germane.annotation import Marker
from germane.storage import TrackingStore

Call = Callable[..., Any]
Scored = Callable[..., Any]
GOOD, WORSE, BAD = [0.9, 0.8, 0.85] * 10, [0.85, 0.75, 0.8] * 10, [0.3, 0.2, 0.25] * 10


def ago(minutes: float) -> datetime:
    return datetime.now(UTC) - timedelta(minutes=minutes)


@pytest.fixture
def deployed(store: TrackingStore, scored: Scored) -> Callable[..., None]:
    """Write scores for a route before and after a marker that is ten minutes old. The marker is created once."""

    def write(before: list[float], after: list[float], *, after_fingerprint: str = "f1", **given: Any) -> None:
        if not store.trends.list_markers():
            store.trends.add_markers([Marker(id="m1", name="index v42", service="shop", at=ago(10))])
        if before:
            scored(store, before, started_at=ago(15), **given)
        if after:
            scored(store, after, started_at=ago(5), fingerprint=after_fingerprint, **given)

    return write


def rows(text: str) -> dict[str, list[str]]:
    """Return the cells of the comparison's lines, by their first cell."""
    table = text.partition("Before: ")[2].partition("\n\n")[2].partition("\n\n")[0]
    cells = [re.split(r"\s{2,}", line) for line in table.splitlines()[2:]]
    return {one[0]: one[1:] for one in cells}


def test_mark_stores_a_marker(call: Call, store: TrackingStore) -> None:
    """The marker has the current time, the configured service, and attributes."""
    before = datetime.now(UTC)
    ended = call("mark", " index v42\n", "--attribute", "commit=4f2a9c1", "--attribute", "by=ann=1")

    (listed,) = store.trends.list_markers()
    assert ended.code == 0
    assert ended.out.startswith("Added marker 'index v42' at ")
    assert (listed.name, listed.attributes) == ("index v42", {"commit": "4f2a9c1", "by": "ann=1"})
    assert before <= listed.at <= datetime.now(UTC)


def test_a_marker_can_be_in_the_past(call: Call, store: TrackingStore) -> None:
    """The time is an ISO 8601 time or a duration. Any service can be given."""
    content = call("mark", "v1", "--at", "2026-03-01T12:00:00+01:00", "--service", "bank", "--json").content
    call("mark", "v2", "--at", "2h")

    latest, first = store.trends.list_markers()
    assert content["marker"] == {
        "id": first.id, "name": "v1", "service": "bank", "at": "2026-03-01T11:00:00+00:00", "attributes": {},
    }  # fmt: skip
    assert first.at == datetime(2026, 3, 1, 11, 0, tzinfo=UTC)
    assert abs((datetime.now(UTC) - latest.at) - timedelta(hours=2)) < timedelta(minutes=1)


@each(
    "arguments",
    [(" ",), ("x" * 501,), ("v1", "--at", "2999-01-01"), ("v1", "--at", "soon"), ("v1", "--attribute", "commit"),
     ("v1", "--attribute", "=x"), ()],
)  # fmt: skip
def test_invalid_markers_are_usage_errors(call: Call, store: TrackingStore, arguments: tuple[str, ...]) -> None:
    """Nothing is stored."""
    assert call("mark", *arguments).code == 2
    assert store.trends.list_markers() == []


def test_marker_names_are_sanitized(call: Call, store: TrackingStore) -> None:
    """This applies to markers from any source."""
    ended = call("mark", "v\x1b[31m\u202e1")
    result = call("report", "--since", "mark", "--compare")

    assert "\x1b" not in ended.out + result.out
    assert "\u202e" not in ended.out + result.out
    assert store.trends.list_markers()[0].name == "v\x1b[31m\u202e1"


def test_a_significant_drop_since_the_marker_exits_with_3(call: Call, deployed: Callable[..., None]) -> None:
    """The line shows size, interval and effect. Stable routes are not mentioned."""
    deployed(GOOD, BAD)
    deployed(GOOD, GOOD, route="search")

    ended = call("report", "--since", "mark", "--fail-on-drop")

    found = rows(ended.out)
    assert ended.code == 3
    assert found["ask"][:3] == ["0.850 (30)", "0.250 (30)", "-0.600"]
    assert found["ask"][-1] == "dropped"
    assert found["search"][2] == "+0.000"
    assert found["search"][-1] != "dropped"
    assert found["all routes"][2] == "-0.300"
    assert "after: " in ended.out
    assert "(marker 'index v42')" in " ".join(ended.out.split())
    assert "Significant drop: ask, answer_relevancy fell by 0.600 (" in ended.out
    assert "a large effect" in ended.out


def test_a_comparison_without_a_threshold_exits_with_0(call: Call, deployed: Callable[..., None]) -> None:
    """The output is the same."""
    deployed(GOOD, BAD)

    ended = call("report", "--since", "mark:index v42", "--compare")

    assert ended.code == 0
    assert rows(ended.out)["ask"][-1] == "dropped"


def test_a_comparison_without_a_drop_passes(call: Call, deployed: Callable[..., None]) -> None:
    """Improved answers also pass."""
    deployed(BAD, GOOD)

    ended = call("report", "--since", "mark", "--fail-on-drop")

    assert ended.code == 0
    assert rows(ended.out)["ask"][-1] == "higher"
    assert "No significant drop." in ended.out


def test_a_drop_below_the_min_drop_option_passes(call: Call, deployed: Callable[..., None]) -> None:
    """``--min-drop`` is the size that a drop must exceed significantly."""
    deployed(GOOD * 4, WORSE * 4)

    assert call("report", "--since", "mark", "--fail-on-drop").code == 3
    ended = call("report", "--since", "mark", "--fail-on-drop", "--min-drop", "0.1")
    assert ended.code == 0
    assert rows(ended.out)["ask"][-1] == "lower"
    assert "No significant drop of more than 0.1." in ended.out


def test_a_comparison_needs_enough_scores_in_both_windows(call: Call, deployed: Callable[..., None]) -> None:
    """The output states no result, and the exit code is 5."""
    deployed(GOOD, BAD[:19])

    ended = call("report", "--since", "mark", "--fail-on-drop")

    assert ended.code == 5
    assert rows(ended.out)["ask"] == ["0.850 (30)", "- (19)", "-", "-", "not enough data"]
    assert "Not enough data: no route has at least 20 scores" in " ".join(ended.out.split())


def test_scores_with_different_fingerprints_are_not_compared(call: Call, deployed: Callable[..., None]) -> None:
    """The output names both fingerprints. A lower mean with the new fingerprint is not a drop."""
    deployed(GOOD, BAD, after_fingerprint="f2")

    ended = call("report", "--since", "mark", "--fail-on-drop")

    assert ended.code == 5
    assert ended.out.count("judge changed") == 2
    assert "answer_relevancy f1" in ended.out
    assert "answer_relevancy f2" in ended.out


def test_a_traffic_shift_is_not_a_drop(call: Call, deployed: Callable[..., None]) -> None:
    """The plain mean falls from 0.75 to 0.35, but each route and the weighted mean stay the same."""
    deployed(GOOD * 5, GOOD)
    deployed(BAD, BAD * 5, route="search")

    ended = call("report", "--since", "mark", "--fail-on-drop")

    assert ended.code == 0
    assert rows(ended.out)["all routes"][:3] == ["0.750 (180)", "0.750 (180)", "+0.000"]


def test_json_output_contains_the_comparison(call: Call, deployed: Callable[..., None]) -> None:
    """The output also contains the report. Both windows have the same length."""
    deployed(GOOD, BAD)

    ended = call("report", "--since", "mark", "--fail-on-drop", "--json")

    content = ended.content["comparison"]
    (line,) = content["routes"]
    since, until = (datetime.fromisoformat(content["after"][name]) for name in ("since", "until"))
    earlier = datetime.fromisoformat(content["before"]["since"])
    assert ended.code == 3
    assert (content["compared"], content["dropped"], content["services"]) == (True, True, [])
    assert (content["marker"]["name"], content["marker"]["service"], content["min_drop"]) == ("index v42", "shop", 0.0)
    assert content["before"]["until"] == content["after"]["since"] == ended.content["since"]
    assert until - since == since - earlier
    assert (line["route"], line["finding"], line["effect_name"], line["share"]) == ("ask", "dropped", "large", None)
    assert line["difference"] == pytest.approx(-0.6, abs=1e-9)
    assert line["interval"][0] < -0.6 < line["interval"][1] < 0
    assert (line["before"]["n"], line["after"]["has_min_samples"]) == (30, True)
    assert line["before"]["mean"] == pytest.approx(0.85, abs=1e-9)


def test_the_earlier_window_can_be_longer(
    call: Call, store: TrackingStore, scored: Scored, deployed: Callable[..., None]
) -> None:
    """Shortly after a deployment, a day of earlier scores makes the comparison more precise."""
    scored(store, GOOD, started_at=ago(600))
    deployed([], BAD)

    assert call("report", "--since", "mark", "--fail-on-drop").code == 5
    assert call("report", "--since", "mark", "--fail-on-drop", "--before", "1d").code == 3
    assert call("report", "--since", "mark", "--before", "0d").code == 2
    assert call("report", "--since", "mark", "--before", "999999w").code == 2
    assert call("report", "--since", "mark", "--before", "day").code == 2


def test_the_since_option_accepts_durations_times_and_markers(
    call: Call, store: TrackingStore, deployed: Callable[..., None]
) -> None:
    """A marker is the newest one, or the newest with a given name, and belongs to the given service."""
    deployed(GOOD, BAD)
    store.trends.add_markers([Marker(id="m2", name="index v43", service="bank", at=ago(1))])

    for since in ("10m", ago(10).isoformat(), "mark:index v42"):
        assert call("report", "--since", since, "--fail-on-drop").code == 3
    assert call("report", "--since", "mark", "--fail-on-drop").code == 5
    assert call("report", "--since", "mark", "--service", "shop", "--fail-on-drop").code == 3
    assert call("report", "--since", "mark", "--service", "bank", "--json").content["routes"] == []


def test_an_unknown_marker_is_an_error(call: Call, database: str) -> None:
    """The error explains how to add a marker."""
    for since in ("mark", "mark:v1"):
        ended = call("report", "--since", since)
        assert ended.code == 1
        assert "germane mark" in ended.err
    assert call("report", "--since", "mark:").code == 2


def test_both_thresholds_of_a_comparison_are_checked(call: Call, deployed: Callable[..., None]) -> None:
    """If either is violated, the exit code is 3. If data for either is missing, it is 5."""
    deployed([], BAD)

    assert call("report", "--since", "mark", "--fail-on-drop", "--fail-under", "0.5").code == 3
    assert call("report", "--since", "mark", "--fail-on-drop", "--fail-under", "0.1").code == 5
