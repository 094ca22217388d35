"""Tests of `germane report`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.cases import each

from germane.score import UnscoredReason
from germane.storage import BaselineKey, SamplingDecision, TrackingStore
from germane.testing import transaction

Call = Callable[..., Any]
Scored = Callable[..., Any]
GOOD, BAD = [0.9, 0.8, 0.85] * 10, [0.3, 0.2, 0.25] * 10


def table(text: str) -> list[str]:
    """Return the rows of the table, without its heading."""
    _, _, rest = text.partition("\nroute")
    return rest.partition("\n\n")[0].splitlines()[1:]


def cells(row: str) -> list[str]:
    """Return the contents of the columns."""
    return re.split(r"\s{2,}", row)


def test_the_report_shows_mean_interval_and_coverage_of_each_route(
    call: Call, store: TrackingStore, scored: Scored
) -> None:
    """One line per route."""
    scored(store, GOOD)
    scored(store, [*BAD, UnscoredReason.JUDGE_REFUSED], route="search")

    ended = call("report")

    ask, search = table(ended.out)
    assert ended.code == 0
    assert ask.split() == [
        "ask",
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
    assert search.startswith("search  30  0.250")
    assert search.endswith("100%       0%  30 of 31")


def test_the_share_of_refusals_is_not_shown_if_no_scorer_detects_them(
    call: Call, store: TrackingStore, scored: Scored
) -> None:
    """The output shows neither 0% nor 0."""
    scored(store, GOOD, scorer="question_coverage")

    (row,) = table(call("report").out)
    (route,) = json.loads(call("report", "--json").out)["routes"]

    assert cells(row)[-2:] == ["not measured", "30 of 30"]
    assert (route["low_share"], route["noncommittal_share"]) == (0.0, None)


def test_report_json_contains_the_same_values(call: Call, store: TrackingStore, scored: Scored) -> None:
    """The output is one object with a version."""
    scored(store, GOOD)

    content = call("report", "--json").content

    (route,) = content["routes"]
    assert content["min_samples"] == 20
    assert (route["service"], route["route"], route["scorer"], route["n"]) == ("shop", "ask", "answer_relevancy", 30)
    assert (route["fingerprint"], route["newest"], route["has_min_samples"]) == ("f1", True, True)
    assert route["mean"] == pytest.approx(0.85)
    assert route["interval"][0] < 0.85 < route["interval"][1]
    counts = content["coverage"][0]
    assert (counts["seen"], counts["scored"], counts["pending"], counts["failed"]) == (30, 30, 0, {})
    assert route["coverage"] == counts


def test_the_mean_of_fewer_than_twenty_scores_is_not_shown(call: Call, store: TrackingStore, scored: Scored) -> None:
    """Such a mean is too uncertain to act on."""
    scored(store, GOOD[:7])

    ended = call("report")

    assert "not enough data (need 20)" in ended.out
    assert "0.8" not in ended.out
    assert call("report", "--json").content["routes"][0]["has_min_samples"] is False


def test_an_empty_report_states_that_there_are_no_scores(call: Call, database: str) -> None:
    """Missing data is never shown as zero."""
    assert "No scores." in call("report").out
    assert call("report", "--json").content["routes"] == []


def test_each_fingerprint_has_its_own_row(call: Call, store: TrackingStore, scored: Scored) -> None:
    """After a change of judge, the newer row is marked."""
    old = datetime.now(UTC) - timedelta(hours=2)
    scored(store, BAD, fingerprint="old0", started_at=old)
    scored(store, GOOD, fingerprint="new0")

    lines = call("report").out.splitlines()

    means = {name: lines[lines.index(name) + 2].split()[2] for name in lines if name.startswith("answer_relevancy")}
    assert means == {"answer_relevancy new0 (newest)": "0.850", "answer_relevancy old0": "0.250"}


def test_routes_with_the_same_name_show_their_service(call: Call, store: TrackingStore, scored: Scored) -> None:
    """The service is shown if the route alone is ambiguous."""
    scored(store, GOOD)
    scored(store, GOOD, service="help")
    scored(store, GOOD, route="other")

    assert [cells(row)[0] for row in table(call("report").out)] == ["ask (help)", "ask (shop)", "other"]


def test_the_report_shows_exchanges_dropped_before_a_scorer_was_known(
    call: Call, store: TrackingStore, scored: Scored
) -> None:
    """A process that only captures does not know any scorer. The exchanges that it dropped are reported."""
    scored(store, [0.5])
    store.exchanges.declare_routes("shop", ["never asked"])
    for reason, count in ((UnscoredReason.EXCHANGE_LIMIT, 9), (UnscoredReason.QUEUE_FULL, 2)):
        store.exchanges.count_dropped({("shop", "ask"): count}, [], reason)

    ended = call("report")
    dropped, known = call("report", "--json").content["coverage"]

    assert "  ask, no scorer assigned: 9 skipped (exchange_limit), 2 skipped (queue_full)\n" in ended.out
    assert "never asked" not in ended.out
    assert (dropped["scorer"], dropped["seen"], dropped["skipped"]) == ("", 11, {"exchange_limit": 9, "queue_full": 2})
    assert (known["scorer"], known["seen"]) == ("answer_relevancy", 1)


def test_candidates_are_shown_separately_from_pending_tasks(call: Call, store: TrackingStore, scored: Scored) -> None:
    """The report lists candidates for the budget, pending tasks, and exchanges skipped because of the budget."""
    (exchange,) = scored(store, [0.5])
    store.exchanges.add([type(exchange)(**_again(exchange, number)) for number in range(3)])
    assert "  exchanges not yet sampled: 3\n" in call("report").out
    waiting = store.sampling.list_undecided(10)
    store.sampling.assign_tasks(
        [SamplingDecision(one.id, 0.5, "candidate") for one in waiting[:2]], {"answer_relevancy": "f1"}
    )
    with transaction(store) as connection:
        connection.exec_driver_sql("UPDATE scoring_task SET due_at = NULL WHERE state = 'pending'")
    unpaid = {"answer_relevancy": UnscoredReason.BUDGET}
    store.sampling.assign_tasks([SamplingDecision(waiting[2].id, 0.5, "budget", unpaid)], {"answer_relevancy": "f1"})

    ended, content = call("report"), call("report", "--json").content

    assert "  ask, answer_relevancy: 1 skipped (budget), 2 pending\n" in ended.out
    candidates = "2 candidates for answer_relevancy: a sample within the budget is selected at the end of the interval"
    assert candidates in " ".join(ended.out.split())
    (task,) = content["backlog"]["tasks"]
    assert (content["backlog"]["unsampled"], task["candidates"], task["ready"]) == (0, 2, 0)


def test_unscored_exchanges_are_shown_with_reasons(call: Call, store: TrackingStore, scored: Scored) -> None:
    """The reasons cover skipped, failed and pending tasks."""
    exchanges = scored(
        store, [0.9, UnscoredReason.JUDGE_TIMEOUT, UnscoredReason.JUDGE_TIMEOUT, UnscoredReason.UNPARSABLE]
    )
    more = scored(store, [])
    assert more == []
    store.exchanges.add([type(exchanges[0])(**_again(exchanges[0], number)) for number in range(3)])
    waiting = store.sampling.list_undecided(10)
    store.sampling.assign_tasks([SamplingDecision(waiting[0].id, 0.5, "sampled")], {"answer_relevancy": "f1"})
    skipped = {"answer_relevancy": UnscoredReason.NOT_SAMPLED}
    store.sampling.assign_tasks(
        [SamplingDecision(one.id, 0.5, "not_sampled", skipped) for one in waiting[1:]], {"answer_relevancy": "f1"}
    )

    ended = call("report")
    (coverage,) = call("report", "--json").content["coverage"]

    flat = " ".join(ended.out.split())
    unscored = "2 skipped (not_sampled), 2 failed (judge_timeout), 1 failed (unparsable), 1 pending"
    assert f"ask, answer_relevancy: {unscored}" in flat
    assert coverage["skipped"] == {"not_sampled": 2}
    assert coverage["failed"] == {"judge_timeout": 2, "unparsable": 1}
    assert coverage["seen"] == 7


def _again(exchange: Any, number: int) -> dict[str, Any]:
    values = {name: getattr(exchange, name) for name in exchange.__dataclass_fields__}
    return values | {"id": f"{number:032x}"}


def test_a_report_can_be_filtered_by_route(call: Call, store: TrackingStore, scored: Scored) -> None:
    """`--route` shows only that route."""
    scored(store, GOOD)
    scored(store, GOOD, route="search")

    content = call("report", "--route", "search", "--json").content

    assert {row["route"] for row in [*content["routes"], *content["coverage"]]} == {"search"}


@pytest.mark.parametrize(("least", "code"), [("0.8", 0), ("0.9", 3), ("-1", 0)])
def test_a_mean_below_the_threshold_exits_with_3(
    call: Call, store: TrackingStore, scored: Scored, least: str, code: int
) -> None:
    """CI pipelines can stop on this exit code."""
    scored(store, GOOD)

    assert call("report", "--fail-under", least).code == code


def test_a_report_with_too_few_scores_exits_with_5(call: Call, store: TrackingStore, scored: Scored) -> None:
    """No result is claimed from few or no scores."""
    assert call("report", "--fail-under", "0.5").code == 5
    scored(store, GOOD)
    assert call("report", "--fail-under", "0.5").code == 0
    scored(store, GOOD[:7], route="search")
    assert call("report", "--fail-under", "0.5", "--json").code == 5
    scored(store, BAD, route="other")
    assert call("report", "--fail-under", "0.5").code == 3


def test_a_route_with_only_failures_exits_with_5(call: Call, store: TrackingStore, scored: Scored) -> None:
    """An unreachable judge is not mistaken for good answers."""
    scored(store, GOOD)
    scored(store, [UnscoredReason.JUDGE_UNREACHABLE] * 30, route="search")

    assert call("report", "--fail-under", "0.5").code == 5


def test_the_threshold_applies_to_the_newest_fingerprint(call: Call, store: TrackingStore, scored: Scored) -> None:
    """Scores from an earlier judge do not fail a build."""
    scored(store, BAD, fingerprint="old", started_at=datetime.now(UTC) - timedelta(hours=2))
    scored(store, GOOD, fingerprint="new")

    assert call("report", "--fail-under", "0.5").code == 0


@pytest.mark.parametrize(("since", "routes"), [("30m", 0), ("7200s", 0), ("4h", 1), ("1d", 1), ("1w", 1)])
def test_the_since_option_accepts_a_duration(
    call: Call, store: TrackingStore, scored: Scored, since: str, routes: int
) -> None:
    """The window selects answers by the time when they were given."""
    scored(store, GOOD, started_at=datetime.now(UTC) - timedelta(hours=3))

    assert len(call("report", "--since", since, "--json").content["routes"]) == routes


@each("zone", ["Z", "+05:30"])
def test_the_since_option_accepts_a_time(call: Call, database: str, zone: str) -> None:
    """The time is in ISO 8601 format, with a UTC offset."""
    content = call("report", "--since", f"2026-03-01T12:00:00{zone}", "--json").content

    assert content["since"] == {"Z": "2026-03-01T12:00:00+00:00", "+05:30": "2026-03-01T06:30:00+00:00"}[zone]


@each("since", ["yesterday", "h", "-3h", "\u00b2h", "9" * 30 + "d", "", "2026-13-01"])
def test_an_invalid_time_is_a_usage_error(call: Call, database: str, since: str) -> None:
    """The error shows valid values."""
    ended = call("report", "--since", since)

    assert ended.code == 2
    assert "neither a duration such as 24h or 7d nor an ISO 8601 time" in ended.err


@each("verb", ["report", "trend"])
def test_a_report_window_must_end_after_it_begins(call: Call, database: str, verb: str) -> None:
    """The window must not begin in the future either."""
    turned, late = call(verb, "--since", "1h", "--until", "2h"), call(verb, "--until", "2999-01-01")

    assert (turned.code, late.code) == (2, 2)
    assert "must be after --since" in turned.err
    assert "in the future" in late.err


def test_the_until_option_excludes_later_answers(call: Call, store: TrackingStore, scored: Scored) -> None:
    """The window is stated above the table."""
    scored(store, GOOD)

    ended = call("report", "--since", "7d", "--until", "6d")

    assert "No scores." in ended.out
    assert re.search(r"since \S+ \S+ UTC and before \S+ \S+ UTC", ended.out)


def test_a_report_is_identical_on_sqlite_and_postgresql(call: Call, migrated_url: str, scored: Scored) -> None:
    """The databases are SQLite and PostgreSQL."""
    store = TrackingStore(migrated_url)
    scored(store, [*GOOD, UnscoredReason.JUDGE_REFUSED])
    store.close()

    content = call("report", "--database", migrated_url, "--json").content

    assert content["routes"][0]["mean"] == pytest.approx(0.85)
    assert content["coverage"][0]["failed"] == {"judge_refused": 1}


def test_hostile_route_names_in_reports_are_sanitized(call: Call, store: TrackingStore, scored: Scored) -> None:
    """A route named by a visitor cannot move the cursor."""
    scored(store, GOOD, route="a\x1b[2Jb\n\u202ec")

    (row,) = table(call("report").out)

    assert row.startswith("a\ufffd[2Jb \ufffdc  ")


def test_the_report_fits_80_columns_in_a_pipe(call: Call, store: TrackingStore, scored: Scored) -> None:
    """Long notes are wrapped, and each scorer has its own table, as on a terminal. Programs read the JSON."""
    for scorer in ("answer_relevancy", "question_answer_similarity"):
        scored(store, [*GOOD, UnscoredReason.JUDGE_REFUSED, UnscoredReason.UNPARSABLE], scorer=scorer, route="r" * 38)
    start = datetime.now(UTC)
    key = BaselineKey("shop", "question_answer_similarity", "f1")
    assert store.baselines.begin_learning(key, "first", since=start, until=start + timedelta(days=14))

    lines = call("report").out.splitlines()

    assert "learning until" in " ".join(lines)
    assert [line for line in lines if len(line) > 80] == []
