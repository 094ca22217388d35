"""`germane mark`, and what a report says of the time before and since."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.annotation import Mark
from germane.storage import Store

Call = Callable[..., Any]
Scored = Callable[..., Any]
GOOD, WORSE, BAD = [0.9, 0.8, 0.85] * 10, [0.85, 0.75, 0.8] * 10, [0.3, 0.2, 0.25] * 10


def ago(minutes: float) -> datetime:
    return datetime.now(UTC) - timedelta(minutes=minutes)


@pytest.fixture
def deployed(store: Store, scored: Scored) -> Callable[..., None]:
    """Writes scores of a route from before and after a mark ten minutes ago, which is made once."""

    def write(before: list[float], after: list[float], *, after_fingerprint: str = "f1", **given: Any) -> None:
        if not store.marks():
            store.add_marks([Mark(id="m1", name="index v42", service="shop", at=ago(10))])
        if before:
            scored(store, before, started_at=ago(15), **given)
        if after:
            scored(store, after, started_at=ago(5), fingerprint=after_fingerprint, **given)

    return write


def rows(text: str) -> dict[str, list[str]]:
    """Return the cells of the comparison's lines, by their first."""
    table = text.partition("Before: ")[2].partition("\n\n")[2].partition("\n\n")[0]
    cells = [re.split(r"\s{2,}", line) for line in table.splitlines()[1:]]
    return {one[0]: one[1:] for one in cells}


def test_a_mark_is_kept(call: Call, store: Store) -> None:
    """Now, of the service of the settings, with what else is to be known of it."""
    before = datetime.now(UTC)
    ended = call("mark", " index v42\n", "--attribute", "commit=4f2a9c1", "--attribute", "by=ann=1")

    (found,) = store.marks()
    assert ended.code == 0
    assert ended.out.startswith("marked 'index v42' at ")
    assert (found.name, found.attributes) == ("index v42", {"commit": "4f2a9c1", "by": "ann=1"})
    assert before <= found.at <= datetime.now(UTC)


def test_a_mark_may_be_of_an_earlier_moment(call: Call, store: Store) -> None:
    """Of any service; the moment in ISO 8601, or as a span."""
    content = call("mark", "v1", "--at", "2026-03-01T12:00:00+01:00", "--service", "bank", "--json").content
    call("mark", "v2", "--at", "2h")

    latest, first = store.marks()
    assert content["mark"] == {
        "id": first.id, "name": "v1", "service": "bank", "at": "2026-03-01T11:00:00+00:00", "attributes": {},
    }  # fmt: skip
    assert first.at == datetime(2026, 3, 1, 11, 0, tzinfo=UTC)
    assert abs((datetime.now(UTC) - latest.at) - timedelta(hours=2)) < timedelta(minutes=1)


@pytest.mark.parametrize(
    "arguments",
    [(" ",), ("x" * 501,), ("v1", "--at", "2999-01-01"), ("v1", "--at", "soon"), ("v1", "--attribute", "commit"),
     ("v1", "--attribute", "=x"), ()],
)  # fmt: skip
def test_what_is_no_mark_is_refused(call: Call, store: Store, arguments: tuple[str, ...]) -> None:
    """Nothing is kept."""
    assert call("mark", *arguments).code == 2
    assert store.marks() == []


def test_a_terminal_cannot_be_tricked_with_a_name(call: Call, store: Store) -> None:
    """Whoever made the mark."""
    ended = call("mark", "v\x1b[31m\u202e1")
    told = call("report", "--since", "mark", "--compare")

    assert "\x1b" not in ended.out + told.out
    assert "\u202e" not in ended.out + told.out
    assert store.marks()[0].name == "v\x1b[31m\u202e1"


def test_a_drop_since_the_mark_fails(call: Call, deployed: Callable[..., None]) -> None:
    """The line tells its size, its interval and its effect; the route that stayed is quiet."""
    deployed(GOOD, BAD)
    deployed(GOOD, GOOD, route="search")

    ended = call("report", "--since", "mark", "--fail-on-drop")

    found = rows(ended.out)
    assert ended.code == 3
    assert found["ask"][:4] == ["answer_relevancy", "0.850 (n=30)", "0.250 (n=30)", "-0.600"]
    assert found["ask"][-1] == "dropped"
    assert found["search"][3] == "+0.000"
    assert found["search"][-1] != "dropped"
    assert found["all routes, by traffic before"][3] == "-0.300"
    assert "after: " in ended.out
    assert "(mark 'index v42')" in ended.out
    assert "Dropped for sure: ask, answer_relevancy by 0.600 (" in ended.out
    assert "a large effect" in ended.out


def test_comparing_alone_never_fails(call: Call, deployed: Callable[..., None]) -> None:
    """It prints the same."""
    deployed(GOOD, BAD)

    ended = call("report", "--since", "mark:index v42", "--compare")

    assert ended.code == 0
    assert rows(ended.out)["ask"][-1] == "dropped"


def test_without_a_drop_it_passes(call: Call, deployed: Callable[..., None]) -> None:
    """Also where answers got better."""
    deployed(BAD, GOOD)

    ended = call("report", "--since", "mark", "--fail-on-drop")

    assert ended.code == 0
    assert rows(ended.out)["ask"][-1] == "higher"
    assert "Nothing dropped for sure." in ended.out


def test_a_drop_smaller_than_asked_for_passes(call: Call, deployed: Callable[..., None]) -> None:
    """``--min-drop`` says how much is to have dropped, for sure."""
    deployed(GOOD * 4, WORSE * 4)

    assert call("report", "--since", "mark", "--fail-on-drop").code == 3
    ended = call("report", "--since", "mark", "--fail-on-drop", "--min-drop", "0.1")
    assert ended.code == 0
    assert rows(ended.out)["ask"][-1] == "lower, but not for sure by more than 0.1"
    assert "Nothing dropped for sure by more than 0.1." in ended.out


def test_too_few_scores_to_compare_are_not_enough_data(call: Call, deployed: Callable[..., None]) -> None:
    """On either side; nothing is claimed, and the exit code tells."""
    deployed(GOOD, BAD[:19])

    ended = call("report", "--since", "mark", "--fail-on-drop")

    assert ended.code == 5
    assert rows(ended.out)["ask"][1:] == [
        "0.850 (n=30)", "- (n=19)", "-", "-", "-", "not enough data (need 20 on both sides)",
    ]  # fmt: skip
    assert "Nothing could be compared" in ended.out


def test_another_judge_is_not_compared(call: Call, deployed: Callable[..., None]) -> None:
    """Both fingerprints are named; that the new one scores lower is no drop."""
    deployed(GOOD, BAD, after_fingerprint="f2")

    ended = call("report", "--since", "mark", "--fail-on-drop")

    assert ended.code == 5
    assert ended.out.count("the judge changed: not comparable") == 2
    assert "answer_relevancy f1" in ended.out
    assert "answer_relevancy f2" in ended.out


def test_traffic_that_moves_is_no_drop(call: Call, deployed: Callable[..., None]) -> None:
    """The plain mean of all answers falls from .75 to .35; each route stays, and so does the service."""
    deployed(GOOD * 5, GOOD)
    deployed(BAD, BAD * 5, route="search")

    ended = call("report", "--since", "mark", "--fail-on-drop")

    assert ended.code == 0
    assert rows(ended.out)["all routes, by traffic before"][1:4] == ["0.750 (n=180)", "0.750 (n=180)", "+0.000"]


def test_json_has_all_of_the_comparison(call: Call, deployed: Callable[..., None]) -> None:
    """Beside what a report has anyway; the moments of both stretches, as long as one another."""
    deployed(GOOD, BAD)

    ended = call("report", "--since", "mark", "--fail-on-drop", "--json")

    content = ended.content["comparison"]
    (line,) = content["routes"]
    since, until = (datetime.fromisoformat(content["after"][name]) for name in ("since", "until"))
    earlier = datetime.fromisoformat(content["before"]["since"])
    assert ended.code == 3
    assert (content["compared"], content["dropped"], content["services"]) == (True, True, [])
    assert (content["mark"]["name"], content["mark"]["service"], content["min_drop"]) == ("index v42", "shop", 0.0)
    assert content["before"]["until"] == content["after"]["since"] == ended.content["since"]
    assert until - since == since - earlier
    assert (line["route"], line["finding"], line["effect_name"], line["share"]) == ("ask", "dropped", "large", None)
    assert line["difference"] == pytest.approx(-0.6, abs=1e-9)
    assert line["interval"][0] < -0.6 < line["interval"][1] < 0
    assert (line["before"]["n"], line["after"]["enough"]) == (30, True)
    assert line["before"]["mean"] == pytest.approx(0.85, abs=1e-9)


def test_the_time_before_may_be_longer(call: Call, store: Store, scored: Scored, deployed: Callable[..., None]) -> None:
    """Where the deploy was a moment ago, a day of earlier scores tells more."""
    scored(store, GOOD, started_at=ago(600))
    deployed([], BAD)

    assert call("report", "--since", "mark", "--fail-on-drop").code == 5
    assert call("report", "--since", "mark", "--fail-on-drop", "--before", "1d").code == 3
    assert call("report", "--since", "mark", "--before", "0d").code == 2
    assert call("report", "--since", "mark", "--before", "999999w").code == 2
    assert call("report", "--since", "mark", "--before", "day").code == 2


def test_since_takes_a_span_a_moment_or_a_mark(call: Call, store: Store, deployed: Callable[..., None]) -> None:
    """The newest mark, the newest of a name, and of a service only that one's."""
    deployed(GOOD, BAD)
    store.add_marks([Mark(id="m2", name="index v43", service="bank", at=ago(1))])

    for since in ("10m", ago(10).isoformat(), "mark:index v42"):
        assert call("report", "--since", since, "--fail-on-drop").code == 3
    assert call("report", "--since", "mark", "--fail-on-drop").code == 5
    assert call("report", "--since", "mark", "--service", "shop", "--fail-on-drop").code == 3
    assert call("report", "--since", "mark", "--service", "bank", "--json").content["routes"] == []


def test_a_mark_that_is_not_there_is_an_error(call: Call, database: str) -> None:
    """It says how to make one."""
    for since in ("mark", "mark:v1"):
        ended = call("report", "--since", since)
        assert ended.code == 1
        assert "germane mark" in ended.err
    assert call("report", "--since", "mark:").code == 2


def test_both_thresholds_count(call: Call, deployed: Callable[..., None]) -> None:
    """A mean under the one, or a drop: 3. Too little for one of them: 5."""
    deployed([], BAD)

    assert call("report", "--since", "mark", "--fail-on-drop", "--fail-under", "0.5").code == 3
    assert call("report", "--since", "mark", "--fail-on-drop", "--fail-under", "0.1").code == 5
