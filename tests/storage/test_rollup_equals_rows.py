"""Rollups checked against rows: trends are the same whichever part is rolled up."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from tests.exports import load_records

from germane.annotation import Feedback, RecordedScore
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.statistics.histogram import BINS
from germane.storage import Coverage, SamplingDecision, TrackingStore
from germane.storage.archive.reader import open_window
from germane.storage.db.tables import metadata
from germane.storage.trends.aggregates import PROXIES, SCORES
from germane.storage.trends.bucket_grid import BucketGrid
from germane.storage.trends.query import TrendQuery, TrendRequest
from germane.testing import transaction

Make = Callable[..., Exchange]
LEASE = timedelta(minutes=1)
SCORERS = {"relevancy": "f1", "faithfulness": "f2"}
EPOCH = datetime(2026, 2, 27, 9, 0, tzinfo=UTC)
"""Earlier than all data written here."""
FIRST_DAY = date(1970, 1, 1).toordinal()
DAY = 86_400

WEEK = 7 * 24 * 60
minutes = st.integers(0, 60 * 60)
window_ends = st.one_of(minutes, st.sampled_from([-3 * WEEK, 3 * WEEK]))
"""Window ends in minutes after the epoch: within the data, or three weeks before or after it."""
few = st.integers(1, 4)
values = st.sampled_from([-0.2, 0.0, 0.005, 0.29, 0.5, 0.8, 1.0, None])
operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), few, minutes),
        st.tuples(st.just("assign"), few, st.sampled_from([0.1, 0.37, 1.0])),
        st.tuples(st.just("assign_proxies"), few, few),
        st.tuples(st.just("complete"), few, values),
        st.tuples(st.just("record"), few, st.sampled_from([0.1, 0.9])),
        st.tuples(st.just("label"), few, minutes),
        st.tuples(st.just("drop"), few, minutes),
        st.tuples(st.just("forget"), st.sampled_from(["u0", "u1"]), few),
        st.tuples(st.just("prune"), minutes, few),
        st.tuples(st.just("export"), few, few),
        st.tuples(st.just("restore"), few, few),
        st.tuples(
            st.just("update_rollups"), few, st.sampled_from([None, (), ("model",), ("attributes.tier", "model")])
        ),
        st.tuples(st.just("update_rollups"), st.just(1000), st.none()),
    ),
    min_size=3,
    max_size=15,
)
timezones = st.sampled_from(["America/New_York", "America/Havana", "Asia/Kolkata", "Australia/Lord_Howe"]).map(ZoneInfo)
"""In the first two, clocks change during these weeks, and Havana skips midnight; the others have half-hour offsets."""
windows = st.lists(
    st.tuples(
        window_ends,
        window_ends,
        st.one_of(
            st.sampled_from([None, *(BucketGrid(length) for length in (300, 3600, 5400, 21_600, 86_400, 604_800))]),
            st.builds(BucketGrid, st.sampled_from([3600, DAY, 3 * DAY, 7 * DAY]), timezones),
        ),
        st.sampled_from(["", "model", "attributes.tier"]),
        st.sampled_from([{}, {"route": "ask"}, {"scorer": "relevancy"}, {"scorer": "relevancy", "route": "search"}]),
    ),
    min_size=1,
    max_size=2,
)
FULL_WINDOW: tuple[int, int, BucketGrid | None, str, dict[str, str]] = (-3 * WEEK, 3 * WEEK, None, "", {})


INITIAL_OPERATIONS = (
    ("drop", 1, -200),
    ("add", 4, 0),
    ("assign", 4, 0.37),
    ("complete", 4, 0.8),
    ("record", 3, 0.1),
    ("add", 1, 200),
    ("assign_proxies", 1, 1),
    ("export", 9, 9),
)
"""Provides data for the later operations to change."""


class RollupModel:
    """Apply operations to one database that already has data."""

    def __init__(self, store: TrackingStore, make: Make, clock: Any, folder: str = "") -> None:
        self.store, self.make, self.clock, self.folder = store, make, clock, folder
        self.exported: Sequence[Any] = ()
        with transaction(store) as connection:  # each Hypothesis example starts empty
            for table in metadata.tables.values():
                connection.execute(table.delete())
        for name, first, second in INITIAL_OPERATIONS:
            getattr(self, name)(first, second)

    def add(self, count: int, minute: int) -> None:
        self.store.exchanges.add(
            [
                self.make(
                    started_at=EPOCH + timedelta(minutes=minute + 17 * number),
                    route=("ask", "search")[number % 2],
                    user=f"u{number}",
                    model=(None, "m1", "m2")[number % 3],
                    attributes=({}, {"tier": "free"}, {"tier": True})[number % 3],
                )
                for number in range(count)
            ]
        )

    def assign(self, count: int, probability: float) -> None:
        decisions = [
            SamplingDecision(
                exchange.id,
                probability,
                "uniform",
                {"faithfulness": UnscoredReason.NOT_SAMPLED} if number % 2 else {},
                proxy=(None, 0.3, 0.7)[number % 3],
                proxy_probability=(None, 0.5, 1.0)[number % 3],
            )
            for number, exchange in enumerate(self.store.sampling.list_undecided(count))
        ]
        self.store.sampling.assign_tasks(decisions, SCORERS)

    def assign_proxies(self, count: int, _: int) -> None:
        decisions = [
            SamplingDecision(exchange.id, 1.0, "uniform", proxy=0.4, proxy_probability=0.5)
            for exchange in self.store.sampling.list_undecided(count)
        ]
        self.store.sampling.assign_tasks(decisions, {})

    def complete(self, count: int, value: float | None) -> None:
        claims = self.store.queue.claim_tasks("me", SCORERS, limit=count, lease=LEASE)
        results = [
            (
                task,
                Score(
                    scorer=task.scorer,
                    fingerprint=task.fingerprint + ("", " served")[task.id % 2],
                    value=value,
                    reason=UnscoredReason.UNPARSABLE if value is None else None,
                    label="noncommittal" if value == 0.0 else None,
                ),
            )
            for claim in claims
            for task in claim.tasks
        ]
        self.store.queue.complete_tasks("me", results)

    def record(self, count: int, value: float) -> None:
        self.clock.advance(seconds=1)
        given = [
            RecordedScore(exchange_id=exchange.id, name="mine", value=value, recorded_at=self.clock.now)
            for exchange in self.store.answers.list_exchanges(limit=count)
        ]
        self.store.exchanges.record_scores(given)

    def label(self, count: int, _: int) -> None:
        given = [
            Feedback(id=uuid4().hex, exchange_id=exchange.id, score=0.0, created_at=self.clock.now)
            for exchange in self.store.answers.list_exchanges(limit=count)
        ]
        self.store.labels.add_feedback(given)
        self.store.sampling.apply_feedback(
            [feedback.id for feedback in given], [feedback.exchange_id for feedback in given], SCORERS
        )

    def drop(self, count: int, minute: int) -> None:
        self.store.exchanges.count_dropped({("shop", "ask"): count}, SCORERS, at=EPOCH + timedelta(minutes=minute))

    def forget(self, user: str, _: int) -> None:
        self.store.retention.forget(user=user)

    def prune(self, minute: int, _: int) -> None:
        self.store.retention.prune(before=EPOCH + timedelta(minutes=minute / 3))

    def export(self, *_: int) -> None:
        self.exported = load_records(self.store, limit=30)

    def restore(self, *_: int) -> None:
        self.store.transfer.restore_records(self.exported)

    def update_rollups(self, limit: int, breakdowns: Sequence[str] | None) -> None:
        self.store.rollups.update(limit, breakdowns=breakdowns)

    def archive(self, minute: int, _: int) -> None:
        """Close all days, and archive those before a time; sometimes, stop in the middle of a day."""
        self.assign(1000, 1.0)
        self.complete(1000, 0.29)
        self.store.rollups.update()
        before = EPOCH + timedelta(minutes=minute + 2 * 24 * 60)
        stops = iter([False] * (minute % 13))
        stopping = (lambda: next(stops, True)) if minute % 2 else (lambda: False)
        self.store.archive.archive_days(self.folder, before=before, stopping=stopping)


@pytest.mark.slow
@given(steps=operations, window_list=windows, eager=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_trends_from_rollups_equal_trends_from_rows_after_any_operations(
    store: TrackingStore, make: Make, clock: Any, steps: list[tuple[str, Any, Any]], window_list: list[Any], eager: bool
) -> None:
    """Sums, histograms, counts and proxies match the rows for any window, bucket, dimension and filter."""
    run, window_list = RollupModel(store, make, clock), [FULL_WINDOW, *window_list]
    for number, (name, first, second) in enumerate(steps):
        getattr(run, name)(first, second)
        if eager and number % 2:
            store.rollups.update()
        assert_trends_match_rows(store, *window_list[number % len(window_list)])
        if eager:
            store.rollups.update()
    for window in window_list:
        assert_trends_match_rows(store, *window)


archiving_operations = st.lists(
    st.one_of(
        st.tuples(st.just("archive"), minutes, few),
        st.tuples(st.just("add"), few, minutes),
        st.tuples(st.just("assign"), few, st.sampled_from([0.1, 1.0])),
        st.tuples(st.just("complete"), few, values),
        st.tuples(st.just("drop"), few, minutes),
        st.tuples(st.just("forget"), st.sampled_from(["u0", "u1"]), few),
        st.tuples(st.just("export"), few, few),
        st.tuples(st.just("restore"), few, few),
        st.tuples(st.just("update_rollups"), few, st.sampled_from([(), ("model",), ("attributes.tier", "model")])),
    ),
    min_size=2,
    max_size=6,
)


@pytest.mark.slow
@given(steps=archiving_operations, window_list=windows)
@settings(max_examples=settings.default.max_examples // 2, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_trends_match_rows_in_the_database_and_the_archive(
    store: TrackingStore, make: Make, clock: Any, tmp_path: Path, steps: list[tuple[str, Any, Any]], window_list: Any
) -> None:
    """Wherever a row is, it counts exactly once, in any window."""
    clock.advance(days=30)
    run = RollupModel(store, make, clock, tempfile.mkdtemp(dir=tmp_path))
    run.archive(60 * 24, 1)
    for name, first, second in steps:
        getattr(run, name)(first, second)
        assert_trends_match_rows(store, *window_list[0])
    for window in [FULL_WINDOW, *window_list]:
        assert_trends_match_rows(store, *window)


@pytest.mark.slow
@pytest.mark.parametrize("rolled_up", [False, True])
@pytest.mark.parametrize(
    "steps",
    [
        [("add", 4, 400)],
        [("assign", 4, 1.0)],
        [("assign_proxies", 4, 1)],
        [("complete", 4, None)],
        [("record", 3, 0.9)],
        [("label", 4, 0)],
        [("drop", 2, 0)],
        [("forget", "u0", 1)],
        [("prune", 3600, 1)],
        [("forget", "u0", 1), ("restore", 1, 1)],
    ],
    ids=lambda steps: "-".join(name for name, *_ in steps),
)
def test_each_change_marks_its_hour_dirty(
    store: TrackingStore, make: Make, clock: Any, steps: list[tuple[str, Any, Any]], rolled_up: bool
) -> None:
    """After a change, no trend is read from outdated rollups."""
    run = RollupModel(store, make, clock)
    for name, first, second in steps:
        store.rollups.update()
        getattr(run, name)(first, second)
    store.rollups.update() if rolled_up else None

    assert_trends_match_rows(store, *FULL_WINDOW)


def assert_trends_match_rows(
    store: TrackingStore, first: int, second: int, bucket: BucketGrid | None, dimension: str, equal: Mapping[str, str]
) -> None:
    since, until = (EPOCH + timedelta(minutes=minute) for minute in sorted((first, second)))
    request = TrendRequest(since=since, until=until, bucket=bucket, equal=equal, dimension=dimension)
    names = ("service", "route", "scorer")
    with (
        transaction(store, read_only=True, snapshot=True) as connection,
        TrendQuery(connection, request) as trend_query,
    ):
        scores = with_starts(trend_query.scores((*names, "fingerprint")), bucket)
        counts = with_starts(trend_query.counts(names), bucket)
        proxies = with_starts(trend_query.proxies(names[:2]), bucket)
        with open_window(connection, None, None) as archive:
            sources = [connection] if archive is None else [connection, archive]
            rows, proxy_rows, minutes = (
                [dict(row) for source in sources for row in source.execute(text(query)).mappings()]
                for query in (SCORE_QUERY, PROXY_QUERY, TALLY_QUERY)
            )
    assert {key: group.sums for key, group in scores.items()} == approximately(sums_of_rows(rows, request))
    spreads = {key: list(group.histogram.weights) for key, group in scores.items() if group.histogram is not None}
    assert spreads == approximately(bins_of_rows(rows, request))
    assert {key: group.latest for key, group in scores.items()} == latest_of_rows(rows, request)
    assert proxies == approximately(proxies_of_rows(proxy_rows, request))
    assert {key: +Counter(found) for key, found in counts.items() if any(found.values())} == counts_of_rows(
        minutes, request
    )


def approximately(expected: dict[Any, Any]) -> dict[Any, Any]:
    return {key: pytest.approx(value, rel=1e-9, abs=1e-12) for key, value in expected.items()}


SCORE_QUERY = (
    "SELECT score.*, exchange.model, exchange.attributes FROM score LEFT JOIN exchange ON exchange.id = exchange_id"
)
PROXY_QUERY = "SELECT * FROM exchange WHERE proxy IS NOT NULL"
TALLY_QUERY = "SELECT minute AS started_at, tally.* FROM tally"


def within(rows: list[dict[str, Any]], request: TrendRequest, *, by_minute: bool = False) -> list[dict[str, Any]]:
    since = request.since.replace(second=0, microsecond=0) if by_minute else request.since
    return [
        row
        for row in rows
        if since <= moment(row) < request.until
        and all(row[name] == value for name, value in request.equal.items() if name in row)
    ]


def moment(row: dict[str, Any]) -> datetime:
    started_at = row["started_at"]
    if isinstance(started_at, str):
        return datetime.fromisoformat(started_at).replace(tzinfo=UTC)
    if started_at.tzinfo is None:  # in the archive
        return started_at.replace(tzinfo=UTC)  # type: ignore[no-any-return]
    return started_at.astimezone(UTC)  # type: ignore[no-any-return]


def with_starts(groups: Mapping[Any, Any], grid: BucketGrid | None) -> dict[Any, Any]:
    """Replace bucket numbers with bucket starts."""
    return dict(groups) if grid is None else {(grid.start(key[0]), *key[1:]): group for key, group in groups.items()}


def start(row: dict[str, Any], request: TrendRequest) -> tuple[datetime, ...]:
    """Return the start of the bucket, computed from the calendar."""
    grid = request.bucket
    if grid is None:
        return ()
    at = moment(row)
    if grid.length % DAY:
        return (datetime.fromtimestamp(at.timestamp() // grid.length * grid.length, UTC),)
    days = grid.length // DAY
    day = at.astimezone(grid.timezone).date()
    # Weeks start on Monday; other buckets of days are counted from 1970-01-01.
    first = day - timedelta(days=day.weekday() if days == 7 else (day.toordinal() - FIRST_DAY) % days)
    return (datetime.combine(first, time(), grid.timezone).astimezone(UTC),)


def key_of(row: dict[str, Any], request: TrendRequest) -> tuple[Any, ...]:
    names = (row["service"], row["route"], row["scorer"], row["fingerprint"])
    return (*start(row, request), *names, *([label(row, request.dimension)] if request.dimension else []))


def label(row: dict[str, Any], dimension: str) -> str:
    if dimension == "model":
        return row["model"] or ""
    found = row["attributes"] or "{}"
    return "free" if "free" in str(found) else "true" if "rue" in str(found) else ""


def sums_of_rows(rows: list[dict[str, Any]], request: TrendRequest) -> dict[Any, dict[str, float]]:
    found: dict[Any, dict[str, float]] = {}
    for row in within(rows, request):
        sums = found.setdefault(key_of(row, request), dict.fromkeys(SCORES, 0.0))
        y, x, w = row["value"], row["proxy"], 1 / (row["sampling_probability"] or 1.0)
        known = x is not None
        x = x or 0.0
        each = {
            "n": 1, "n_zero": y == 0, "sum_w": w, "sum_w_zero": w * (y == 0),
            "sum_w2": w * w, "sum_w2_zero": w * w * (y == 0), "sum_wy": w * y, "sum_wy2": w * y * y,
            "sum_w2y": w * w * y, "sum_w2y2": w * w * y * y, "sum_w_low": w * (y < 0.5),
            "sum_w_noncommittal": w * (row["label"] == "noncommittal"),
            "n_with_x": known, "sum_w_with_x": w * known, "sum_w2_with_x": w * w * known,
            "sum_wx": w * x, "sum_wy_with_x": w * y * known,
            "sum_wx2": w * x * x, "sum_wxy": w * x * y, "sum_wy2_with_x": w * y * y * known, "sum_w2x": w * w * x,
            "sum_w2y_with_x": w * w * y * known, "sum_w2x2": w * w * x * x, "sum_w2xy": w * w * x * y,
        }  # fmt: skip
        for name, value in each.items():
            sums[name] += value
    return found


def bins_of_rows(rows: list[dict[str, Any]], request: TrendRequest) -> dict[Any, list[float]]:
    found: dict[Any, list[float]] = {}
    for row in within(rows, request):
        number = min(BINS - 1, max(0, int(row["value"] * BINS)))
        weights = found.setdefault(key_of(row, request), [0.0] * BINS)
        weights[number] += 1 / (row["sampling_probability"] or 1.0)
    return found


def latest_of_rows(rows: list[dict[str, Any]], request: TrendRequest) -> dict[Any, datetime]:
    found: dict[Any, datetime] = {}
    for row in within(rows, request):
        found[key_of(row, request)] = max(moment(row), found.get(key_of(row, request), EPOCH))
    return found


def proxies_of_rows(rows: list[dict[str, Any]], request: TrendRequest) -> dict[Any, dict[str, float]]:
    found: dict[Any, dict[str, float]] = {}
    for row in within(rows, request):
        sums = found.setdefault((*start(row, request), row["service"], row["route"]), dict.fromkeys(PROXIES, 0.0))
        v, x = 1 / (row["proxy_probability"] or 1.0) / row["capture_probability"], row["proxy"]
        each = {
            "n": 1,
            "sum_v": v,
            "sum_v2": v * v,
            "sum_vx": v * x,
            "sum_vx2": v * x * x,
            "sum_v2x": v * v * x,
            "sum_v2x2": v * v * x * x,
        }
        for name, value in each.items():
            sums[name] += value
    return found


def counts_of_rows(rows: list[dict[str, Any]], request: TrendRequest) -> dict[Any, Counter[Any]]:
    found: dict[Any, Counter[Any]] = {}
    for row in within(rows, request, by_minute=True):
        key = (*start(row, request), row["service"], row["route"], row["scorer"])
        found.setdefault(key, Counter())[row["outcome"], row["reason"]] += row["count"]
    return {key: +counts for key, counts in found.items() if any(counts.values())}


@pytest.mark.slow
@given(steps=operations)
@settings(max_examples=settings.default.max_examples // 2, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_coverage_counts_from_rollups_add_up(
    store: TrackingStore, make: Make, clock: Any, steps: list[tuple[str, Any, Any]]
) -> None:
    """seen = scored + skipped + failed + pending in every bucket."""
    run = RollupModel(store, make, clock)
    for name, first, second in steps:
        getattr(run, name)(first, second)
    store.rollups.update()

    assert store.rollups.count_dirty_hours() == 0
    for scorer in (*SCORERS, "mine"):
        covered = store.trends.coverage_over_time(
            scorer=scorer, bucket=timedelta(days=1), since=EPOCH - timedelta(days=1), until=clock.now
        )
        assert all(adds_up(coverage) for coverage in covered)


def adds_up(one: Coverage) -> bool:
    return one.seen == one.scored + one.pending + sum(one.skipped.values()) + sum(one.failed.values())
