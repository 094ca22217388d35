"""What trends are read from is what the rows say, at any moment, whatever was rolled up and whatever was not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from germane.annotation import Feedback, RecordedScore
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage import Coverage, ExportSelection, SamplingDecision, TrackingStore
from germane.storage.db.tables import metadata
from germane.storage.stats.histogram import BINS
from germane.storage.trends.aggregates import PROXIES, SCORES
from germane.storage.trends.query import TrendQuery, TrendRequest

Make = Callable[..., Exchange]
LEASE = timedelta(minutes=1)
SCORERS = {"relevancy": "f1", "faithfulness": "f2"}
BEGINNING = datetime(2026, 2, 27, 9, 0, tzinfo=UTC)
"""Before anything that is written here."""

WEEK = 7 * 24 * 60
minutes = st.integers(0, 60 * 60)
ends = st.one_of(minutes, st.sampled_from([-3 * WEEK, 3 * WEEK]))
"""Of a window, in minutes: within what is written, or whole weeks beside it."""
few = st.integers(1, 4)
values = st.sampled_from([-0.2, 0.0, 0.005, 0.29, 0.5, 0.8, 1.0, None])
operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), few, minutes),
        st.tuples(st.just("assign"), few, st.sampled_from([0.1, 0.37, 1.0])),
        st.tuples(st.just("weigh"), few, few),
        st.tuples(st.just("complete"), few, values),
        st.tuples(st.just("record"), few, st.sampled_from([0.1, 0.9])),
        st.tuples(st.just("label"), few, minutes),
        st.tuples(st.just("drop"), few, minutes),
        st.tuples(st.just("forget"), st.sampled_from(["u0", "u1"]), few),
        st.tuples(st.just("prune"), minutes, few),
        st.tuples(st.just("keep"), few, few),
        st.tuples(st.just("restore"), few, few),
        st.tuples(st.just("roll"), few, st.sampled_from([None, (), ("model",), ("attributes.tier", "model")])),
        st.tuples(st.just("roll"), st.just(1000), st.none()),
    ),
    min_size=3,
    max_size=15,
)
windows = st.lists(
    st.tuples(
        ends,
        ends,
        st.sampled_from([None, 300, 3600, 5400, 21_600, 86_400, 604_800]),
        st.sampled_from(["", "model", "attributes.tier"]),
        st.sampled_from([{}, {"route": "ask"}, {"scorer": "relevancy"}, {"scorer": "relevancy", "route": "search"}]),
    ),
    min_size=1,
    max_size=2,
)
EVERYTHING: tuple[int, int, int | None, str, dict[str, str]] = (-3 * WEEK, 3 * WEEK, None, "", {})


BEFORE = (
    ("drop", 1, -200),
    ("add", 4, 0),
    ("assign", 4, 0.37),
    ("complete", 4, 0.8),
    ("record", 3, 0.1),
    ("add", 1, 200),
    ("weigh", 1, 1),
    ("keep", 9, 9),
)
"""So that there is something to change."""


class Run:
    """Plays operations on one database, in which there is something already."""

    def __init__(self, store: TrackingStore, make: Make, clock: Any) -> None:
        self.store, self.make, self.clock = store, make, clock
        self.kept: Sequence[Any] = ()
        with store._database.write() as connection:  # else each example would go on where the last one ended
            for table in metadata.tables.values():
                connection.execute(table.delete())
        for name, first, second in BEFORE:
            getattr(self, name)(first, second)

    def add(self, count: int, minute: int) -> None:
        self.store.exchanges.add(
            [
                self.make(
                    started_at=BEGINNING + timedelta(minutes=minute + 17 * number),
                    route=("ask", "search")[number % 2],
                    user=f"u{number}",
                    model=(None, "m1", "m2")[number % 3],
                    attributes=({}, {"tier": "free"}, {"tier": True})[number % 3],
                )
                for number in range(count)
            ]
        )

    def assign(self, count: int, chance: float) -> None:
        decisions = [
            SamplingDecision(
                one.id,
                chance,
                "uniform",
                {"faithfulness": UnscoredReason.NOT_SAMPLED} if number % 2 else {},
                proxy=(None, 0.3, 0.7)[number % 3],
                proxy_probability=(None, 0.5, 1.0)[number % 3],
            )
            for number, one in enumerate(self.store.sampling.list_undecided(count))
        ]
        self.store.sampling.assign_tasks(decisions, SCORERS)

    def weigh(self, count: int, _: int) -> None:
        decisions = [
            SamplingDecision(one.id, 1.0, "uniform", proxy=0.4, proxy_probability=0.5)
            for one in self.store.sampling.list_undecided(count)
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
            RecordedScore(exchange_id=one.id, name="mine", value=value, recorded_at=self.clock.now)
            for one in self.store.answers.list_exchanges(limit=count)
        ]
        self.store.exchanges.record_scores(given)

    def label(self, count: int, _: int) -> None:
        given = [
            Feedback(id=uuid4().hex, exchange_id=one.id, score=0.0, created_at=self.clock.now)
            for one in self.store.answers.list_exchanges(limit=count)
        ]
        self.store.labels.add_feedback(given)
        self.store.sampling.apply_feedback([one.id for one in given], [one.exchange_id for one in given], SCORERS)

    def drop(self, count: int, minute: int) -> None:
        self.store.exchanges.count_dropped({("shop", "ask"): count}, SCORERS, at=BEGINNING + timedelta(minutes=minute))

    def forget(self, user: str, _: int) -> None:
        self.store.retention.forget(user=user)

    def prune(self, minute: int, _: int) -> None:
        self.store.retention.prune(before=BEGINNING + timedelta(minutes=minute / 3))

    def keep(self, *_: int) -> None:
        self.kept = self.store.transfer.load_records(ExportSelection(), limit=30)

    def restore(self, *_: int) -> None:
        self.store.transfer.restore_records(self.kept)

    def roll(self, limit: int, trend_by: Sequence[str] | None) -> None:
        self.store.rollups.update(limit, breakdowns=trend_by)


@given(steps=operations, looks=windows, eager=st.booleans())
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_rolled_up_and_what_is_not_add_up_to_the_rows(
    store: TrackingStore, make: Make, clock: Any, steps: list[tuple[str, Any, Any]], looks: list[Any], eager: bool
) -> None:
    """After every operation, for any window, bucket, dimension and choice: sums, spreads, counts and proxies.

    The eager roll up after each, so that whatever an operation forgets to mark is seen.
    """
    run, looks = Run(store, make, clock), [EVERYTHING, *looks]
    for number, (name, first, second) in enumerate(steps):
        getattr(run, name)(first, second)
        if eager and number % 2:
            store.rollups.update()
        check(store, *looks[number % len(looks)])
        if eager:
            store.rollups.update()
    for look in looks:
        check(store, *look)


@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize(
    "steps",
    [
        [("add", 4, 400)],
        [("assign", 4, 1.0)],
        [("weigh", 4, 1)],
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
def test_each_change_is_marked(
    store: TrackingStore, make: Make, clock: Any, steps: list[tuple[str, Any, Any]], rolled: bool
) -> None:
    """Of what was rolled up just before nothing is read any more that has changed."""
    run = Run(store, make, clock)
    for name, first, second in steps:
        store.rollups.update()
        getattr(run, name)(first, second)
    store.rollups.update() if rolled else None

    check(store, *EVERYTHING)


def check(
    store: TrackingStore, first: int, second: int, bucket: int | None, dimension: str, equal: Mapping[str, str]
) -> None:
    since, until = (BEGINNING + timedelta(minutes=minute) for minute in sorted((first, second)))
    asked = TrendRequest(since=since, until=until, bucket=bucket, equal=equal, dimension=dimension)
    names = ("service", "route", "scorer")
    with store._database.read(snapshot=True) as connection:
        reading = TrendQuery(connection, asked)
        scores, counts = reading.scores((*names, "fingerprint")), reading.counts(names)
        proxies = reading.proxies(names[:2])
        rows = [dict(row) for row in connection.execute(text(RAW)).mappings()]
        of_proxies = [dict(row) for row in connection.execute(text(RAW_PROXIES)).mappings()]
        minutes = [dict(row) for row in connection.execute(text(RAW_COUNTS)).mappings()]
    assert {key: group.sums for key, group in scores.items()} == near(true_sums(rows, asked))
    spreads = {key: list(group.histogram.weights) for key, group in scores.items() if group.histogram is not None}
    assert spreads == near(true_bins(rows, asked))
    assert {key: group.latest for key, group in scores.items()} == true_latest(rows, asked)
    assert proxies == near(true_proxies(of_proxies, asked))
    assert {key: +Counter(found) for key, found in counts.items() if any(found.values())} == true_counts(minutes, asked)


def near(expected: dict[Any, Any]) -> dict[Any, Any]:
    return {key: pytest.approx(value, rel=1e-9, abs=1e-12) for key, value in expected.items()}


RAW = "SELECT score.*, exchange.model, exchange.attributes FROM score LEFT JOIN exchange ON exchange.id = exchange_id"
RAW_PROXIES = "SELECT * FROM exchange WHERE proxy IS NOT NULL"
RAW_COUNTS = "SELECT minute AS started_at, tally.* FROM tally"


def within(rows: list[dict[str, Any]], asked: TrendRequest, *, by_minute: bool = False) -> list[dict[str, Any]]:
    since = asked.since.replace(second=0, microsecond=0) if by_minute else asked.since
    return [
        row
        for row in rows
        if since <= moment(row) < asked.until
        and all(row[name] == value for name, value in asked.equal.items() if name in row)
    ]


def moment(row: dict[str, Any]) -> datetime:
    started_at = row["started_at"]
    if isinstance(started_at, str):
        return datetime.fromisoformat(started_at).replace(tzinfo=UTC)
    return started_at.astimezone(UTC)  # type: ignore[no-any-return]


def start(row: dict[str, Any], asked: TrendRequest) -> tuple[int, ...]:
    if asked.bucket is None:
        return ()
    seconds = int(moment(row).timestamp())
    return (seconds - seconds % asked.bucket,)


def key_of(row: dict[str, Any], asked: TrendRequest) -> tuple[Any, ...]:
    names = (row["service"], row["route"], row["scorer"], row["fingerprint"])
    return (*start(row, asked), *names, *([label(row, asked.dimension)] if asked.dimension else []))


def label(row: dict[str, Any], dimension: str) -> str:
    if dimension == "model":
        return row["model"] or ""
    found = row["attributes"] or "{}"
    return "free" if "free" in str(found) else "true" if "rue" in str(found) else ""


def true_sums(rows: list[dict[str, Any]], asked: TrendRequest) -> dict[Any, dict[str, float]]:
    found: dict[Any, dict[str, float]] = {}
    for row in within(rows, asked):
        sums = found.setdefault(key_of(row, asked), dict.fromkeys(SCORES, 0.0))
        y, x, w = row["value"], row["proxy"], 1 / (row["sampling_probability"] or 1.0)
        known = x is not None
        x = x or 0.0
        each = {
            "n": 1, "n_zero": y == 0, "sum_w": w, "sum_w_zero": w * (y == 0), "sum_w2": w * w, "sum_w2_zero": w * w * (y == 0),
            "sum_wy": w * y, "sum_wy2": w * y * y, "sum_w2y": w * w * y, "sum_w2y2": w * w * y * y, "sum_w_low": w * (y < 0.5),
            "sum_w_noncommittal": w * (row["label"] == "noncommittal"),
            "n_with_x": known, "sum_w_with_x": w * known, "sum_w2_with_x": w * w * known, "sum_wx": w * x, "sum_wy_with_x": w * y * known,
            "sum_wx2": w * x * x, "sum_wxy": w * x * y, "sum_wy2_with_x": w * y * y * known, "sum_w2x": w * w * x,
            "sum_w2y_with_x": w * w * y * known, "sum_w2x2": w * w * x * x, "sum_w2xy": w * w * x * y,
        }  # fmt: skip
        for name, value in each.items():
            sums[name] += value
    return found


def true_bins(rows: list[dict[str, Any]], asked: TrendRequest) -> dict[Any, list[float]]:
    found: dict[Any, list[float]] = {}
    for row in within(rows, asked):
        number = min(BINS - 1, max(0, int(row["value"] * BINS)))
        weights = found.setdefault(key_of(row, asked), [0.0] * BINS)
        weights[number] += 1 / (row["sampling_probability"] or 1.0)
    return found


def true_latest(rows: list[dict[str, Any]], asked: TrendRequest) -> dict[Any, datetime]:
    found: dict[Any, datetime] = {}
    for row in within(rows, asked):
        found[key_of(row, asked)] = max(moment(row), found.get(key_of(row, asked), BEGINNING))
    return found


def true_proxies(rows: list[dict[str, Any]], asked: TrendRequest) -> dict[Any, dict[str, float]]:
    found: dict[Any, dict[str, float]] = {}
    for row in within(rows, asked):
        sums = found.setdefault((*start(row, asked), row["service"], row["route"]), dict.fromkeys(PROXIES, 0.0))
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


def true_counts(rows: list[dict[str, Any]], asked: TrendRequest) -> dict[Any, Counter[Any]]:
    found: dict[Any, Counter[Any]] = {}
    for row in within(rows, asked, by_minute=True):
        key = (*start(row, asked), row["service"], row["route"], row["scorer"])
        found.setdefault(key, Counter())[row["outcome"], row["reason"]] += row["count"]
    return {key: +counts for key, counts in found.items() if any(counts.values())}


@given(steps=operations)
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_identity_holds_in_what_is_rolled_up(
    store: TrackingStore, make: Make, clock: Any, steps: list[tuple[str, Any, Any]]
) -> None:
    """seen = scored + skipped + failed + pending, of the counts of each bucket."""
    run = Run(store, make, clock)
    for name, first, second in steps:
        getattr(run, name)(first, second)
    store.rollups.update()

    assert store.rollups.count_dirty_hours() == 0
    for scorer in (*SCORERS, "mine"):
        covered = store.trends.coverage_over_time(
            scorer=scorer, bucket=timedelta(days=1), since=BEGINNING - timedelta(days=1), until=clock.now
        )
        assert all(adds_up(one) for one in covered)


def adds_up(one: Coverage) -> bool:
    return one.seen == one.scored + one.pending + sum(one.skipped.values()) + sum(one.failed.values())
