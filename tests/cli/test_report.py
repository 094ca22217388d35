"""What `germane report` says."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.score import Reason
from germane.storage import Decision, Store

Call = Callable[..., Any]
Scored = Callable[..., Any]
GOOD, BAD = [0.9, 0.8, 0.85] * 10, [0.3, 0.2, 0.25] * 10


def table(text: str) -> list[str]:
    """Return the rows of the table, without its heading."""
    _, _, rest = text.partition("\nroute")
    return rest.partition("\n\n")[0].splitlines()[1:]


def cells(row: str) -> list[str]:
    """Return what stands in the columns."""
    return re.split(r"\s{2,}", row)


def test_each_route_has_mean_interval_and_coverage(call: Call, store: Store, scored: Scored) -> None:
    """A line per route tells how it does and how sure that is."""
    scored(store, GOOD)
    scored(store, [*BAD, Reason.JUDGE_REFUSED], route="search")

    ended = call("report")

    ask, search = table(ended.out)
    assert ended.code == 0
    assert ask.split() == [
        "ask",
        "answer_relevancy",
        "30",
        "0.850",
        "0.752",
        "to",
        "0.866",
        "0%",
        "0%",
        "30",
        "of",
        "30",
    ]
    assert search.startswith("search  answer_relevancy  30  0.250")
    assert search.endswith("100%       0%        30 of 31")


def test_json_is_one_object_with_a_version(call: Call, store: Store, scored: Scored) -> None:
    """A program reads the same numbers."""
    scored(store, GOOD)

    content = call("report", "--json").content

    (route,) = content["routes"]
    assert content["enough"] == 20
    assert (route["service"], route["route"], route["scorer"], route["n"]) == ("shop", "ask", "answer_relevancy", 30)
    assert (route["fingerprint"], route["newest"], route["enough"]) == ("f1", True, True)
    assert route["mean"] == pytest.approx(0.85)
    assert route["interval"][0] < 0.85 < route["interval"][1]
    counts = content["coverage"][0]
    assert (counts["seen"], counts["scored"], counts["pending"], counts["failed"]) == (30, 30, 0, {})
    assert route["coverage"] == counts


def test_few_scores_are_not_enough_data(call: Call, store: Store, scored: Scored) -> None:
    """No mean is shown that nobody should act on."""
    scored(store, GOOD[:7])

    ended = call("report")

    assert "not enough data (n=7, need 20)" in ended.out
    assert "0.8" not in ended.out
    assert call("report", "--json").content["routes"][0]["enough"] is False


def test_nothing_yet_is_said_so(call: Call, database: str) -> None:
    """Silence is no data, never zero."""
    assert "No scores." in call("report").out
    assert call("report", "--json").content["routes"] == []


def test_fingerprints_are_never_averaged_and_told_apart(call: Call, store: Store, scored: Scored) -> None:
    """A judge that was changed makes a second line, and it is said which is newer."""
    old = datetime.now(UTC) - timedelta(hours=2)
    scored(store, BAD, fingerprint="old0", started_at=old)
    scored(store, GOOD, fingerprint="new0")

    rows = sorted(table(call("report").out), key=cells)

    assert [cells(row)[1] for row in rows] == ["answer_relevancy new0 (newest)", "answer_relevancy old0"]
    assert ["0.850" in row for row in rows] == [True, False]
    assert ["0.250" in row for row in rows] == [False, True]


def test_routes_of_two_services_are_told_apart(call: Call, store: Store, scored: Scored) -> None:
    """The service is named where the route alone does not say which is meant."""
    scored(store, GOOD)
    scored(store, GOOD, service="help")
    scored(store, GOOD, route="other")

    assert [cells(row)[0] for row in table(call("report").out)] == ["ask (help)", "ask (shop)", "other"]


def test_what_was_dropped_before_a_scorer_was_known_is_told(call: Call, store: Store, scored: Scored) -> None:
    """A process that only captures knows no scorer; what its queue or its limit dropped is told all the same."""
    scored(store, [0.5])
    store.declare("shop", ["never asked"])
    for reason, count in ((Reason.CAPTURE_LIMIT, 9), (Reason.QUEUE_FULL, 2)):
        store.count_dropped({("shop", "ask"): count}, [], reason)

    ended = call("report")
    dropped, known = call("report", "--json").content["coverage"]

    assert "  ask, before any scorer was known: 9 skipped (capture_limit), 2 skipped (queue_full)\n" in ended.out
    assert "never asked" not in ended.out
    assert (dropped["scorer"], dropped["seen"], dropped["skipped"]) == ("", 11, {"capture_limit": 9, "queue_full": 2})
    assert (known["scorer"], known["seen"]) == ("answer_relevancy", 1)


def test_candidates_that_wait_are_told(call: Call, store: Store, scored: Scored) -> None:
    """What waits for the budget's picks is told apart from what waits for a judge, and so is what was not paid for."""
    (exchange,) = scored(store, [0.5])
    store.add([type(exchange)(**_again(exchange, number)) for number in range(3)])
    assert "  exchanges that no process has looked at yet: 3\n" in call("report").out
    waiting = store.unsampled(10)
    store.assign([Decision(one.id, 0.5, "candidate") for one in waiting[:2]], {"answer_relevancy": "f1"})
    with store._database.write() as connection:
        connection.exec_driver_sql("UPDATE scoring_task SET not_before = NULL WHERE state = 'pending'")
    unpaid = {"answer_relevancy": Reason.BUDGET}
    store.assign([Decision(waiting[2].id, 0.5, "budget", unpaid)], {"answer_relevancy": "f1"})

    ended, content = call("report"), call("report", "--json").content

    assert "  ask, answer_relevancy: 1 skipped (budget), 2 pending (waiting)\n" in ended.out
    assert "  2 of answer_relevancy are candidates: when their interval ends, the budget picks some\n" in ended.out
    (task,) = content["waiting"]["tasks"]
    assert (content["waiting"]["undecided"], task["candidates"], task["ready"]) == (0, 2, 0)


def test_absences_are_told_with_their_reasons(call: Call, store: Store, scored: Scored) -> None:
    """What has no score was skipped, failed or waits, and why."""
    exchanges = scored(store, [0.9, Reason.JUDGE_TIMEOUT, Reason.JUDGE_TIMEOUT, Reason.UNPARSABLE])
    more = scored(store, [])
    assert more == []
    store.add([type(exchanges[0])(**_again(exchanges[0], number)) for number in range(3)])
    waiting = store.unsampled(10)
    store.assign([Decision(waiting[0].id, 0.5, "drawn")], {"answer_relevancy": "f1"})
    skipped = {"answer_relevancy": Reason.NOT_DRAWN}
    store.assign([Decision(one.id, 0.5, "not_drawn", skipped) for one in waiting[1:]], {"answer_relevancy": "f1"})

    ended = call("report")
    (coverage,) = call("report", "--json").content["coverage"]

    assert (
        "  ask, answer_relevancy: 2 skipped (not_drawn), 2 failed (judge_timeout), 1 failed (unparsable), "
        "1 pending (waiting)\n"
    ) in ended.out
    assert coverage["skipped"] == {"not_drawn": 2}
    assert coverage["failed"] == {"judge_timeout": 2, "unparsable": 1}
    assert coverage["seen"] == 7


def _again(exchange: Any, number: int) -> dict[str, Any]:
    values = {name: getattr(exchange, name) for name in exchange.__dataclass_fields__}
    return values | {"id": f"{number:032x}"}


def test_one_route_can_be_chosen(call: Call, store: Store, scored: Scored) -> None:
    """`--route` shows that route alone."""
    scored(store, GOOD)
    scored(store, GOOD, route="search")

    content = call("report", "--route", "search", "--json").content

    assert {row["route"] for row in [*content["routes"], *content["coverage"]]} == {"search"}


@pytest.mark.parametrize(("least", "code"), [("0.8", 0), ("0.9", 3), ("-1", 0)])
def test_a_mean_under_the_threshold_ends_with_3(
    call: Call, store: Store, scored: Scored, least: str, code: int
) -> None:
    """A pipeline can stop on it."""
    scored(store, GOOD)

    assert call("report", "--fail-under", least).code == code


def test_too_few_scores_end_with_5(call: Call, store: Store, scored: Scored) -> None:
    """Neither good nor bad is claimed of seven scores, or of none."""
    assert call("report", "--fail-under", "0.5").code == 5
    scored(store, GOOD)
    assert call("report", "--fail-under", "0.5").code == 0
    scored(store, GOOD[:7], route="search")
    assert call("report", "--fail-under", "0.5", "--json").code == 5
    scored(store, BAD, route="other")
    assert call("report", "--fail-under", "0.5").code == 3


def test_a_route_whose_scores_all_failed_ends_with_5(call: Call, store: Store, scored: Scored) -> None:
    """A judge that was away does not pass for answers that are good."""
    scored(store, GOOD)
    scored(store, [Reason.JUDGE_UNREACHABLE] * 30, route="search")

    assert call("report", "--fail-under", "0.5").code == 5


def test_only_the_newest_fingerprint_is_judged(call: Call, store: Store, scored: Scored) -> None:
    """What another judge measured yesterday breaks no build today."""
    scored(store, BAD, fingerprint="old", started_at=datetime.now(UTC) - timedelta(hours=2))
    scored(store, GOOD, fingerprint="new")

    assert call("report", "--fail-under", "0.5").code == 0


@pytest.mark.parametrize(("since", "routes"), [("30m", 0), ("7200s", 0), ("4h", 1), ("1d", 1), ("1w", 1)])
def test_since_takes_a_span(call: Call, store: Store, scored: Scored, since: str, routes: int) -> None:
    """Answers count by the time at which they were given."""
    scored(store, GOOD, started_at=datetime.now(UTC) - timedelta(hours=3))

    assert len(call("report", "--since", since, "--json").content["routes"]) == routes


@pytest.mark.parametrize("zone", ["Z", "+05:30"])
def test_since_takes_a_moment(call: Call, database: str, zone: str) -> None:
    """ISO 8601, with its zone."""
    content = call("report", "--since", f"2026-03-01T12:00:00{zone}", "--json").content

    assert content["since"] == {"Z": "2026-03-01T12:00:00+00:00", "+05:30": "2026-03-01T06:30:00+00:00"}[zone]


@pytest.mark.parametrize("since", ["yesterday", "h", "-3h", "\u00b2h", "9" * 30 + "d", "", "2026-13-01"])
def test_a_time_that_is_none_is_wrong_usage(call: Call, database: str, since: str) -> None:
    """The message shows what can be written."""
    ended = call("report", "--since", since)

    assert ended.code == 2
    assert "neither a span such as 24h or 7d nor a moment in ISO 8601" in ended.err


@pytest.mark.parametrize("verb", ["report", "trend"])
def test_a_window_ends_after_it_begins(call: Call, database: str, verb: str) -> None:
    """And not in the time to come."""
    turned, late = call(verb, "--since", "1h", "--until", "2h"), call(verb, "--until", "2999-01-01")

    assert (turned.code, late.code) == (2, 2)
    assert "it is not after --since" in turned.err
    assert "still to come" in late.err


def test_answers_of_later_are_left_out(call: Call, store: Store, scored: Scored) -> None:
    """What the report is of stands above it."""
    scored(store, GOOD)

    ended = call("report", "--since", "7d", "--until", "6d")

    assert "No scores." in ended.out
    assert re.search(r"since \S+ \S+ UTC and before \S+ \S+ UTC", ended.out)


def test_reports_are_the_same_on_every_database(call: Call, migrated_url: str, scored: Scored) -> None:
    """SQLite and PostgreSQL tell the same."""
    store = Store(migrated_url)
    scored(store, [*GOOD, Reason.JUDGE_REFUSED])
    store.close()

    content = call("report", "--database", migrated_url, "--json").content

    assert content["routes"][0]["mean"] == pytest.approx(0.85)
    assert content["coverage"][0]["failed"] == {"judge_refused": 1}


def test_hostile_names_do_no_harm(call: Call, store: Store, scored: Scored) -> None:
    """A route named by a visitor cannot move the cursor."""
    scored(store, GOOD, route="a\x1b[2Jb\n\u202ec")

    (row,) = table(call("report").out)

    assert row.startswith("a\ufffd[2Jb \ufffdc  ")
