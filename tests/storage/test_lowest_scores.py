"""The lowest scores are those that a plain sort gives, whichever way leads to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert

from germane.exchange import Exchange
from germane.score import Score
from germane.storage import TrackingStore
from germane.storage.answers.lowest_scores import (
    STRATEGIES,
    ScoreFilter,
    find_lowest,
    scan_by_value,
    scan_route,
    scan_small_window,
    scan_window,
)
from germane.storage.db.tables import exchange, score

Make = Callable[..., Exchange]
ROUTES, SERVICES, SCORERS, FINGERPRINTS = ("ask", "find"), ("shop", "help"), ("a", "b"), ("f1", "f2")
LABELS = (None, "relevant", "irrelevant", "noncommittal")
rows = st.lists(
    st.tuples(
        st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0, -0.1]), st.floats(0, 1)),
        st.integers(0, 20),
        *map(st.sampled_from, (SCORERS, SERVICES, ROUTES, FINGERPRINTS, LABELS)),
    ),
    max_size=60,
)
narrowed = st.fixed_dictionaries(
    {},
    optional={
        "since": st.integers(0, 20),
        "until": st.integers(0, 20),
        "scorer": st.sampled_from([*SCORERS, "nobody"]),
        "service": st.sampled_from(SERVICES),
        "route": st.sampled_from([*ROUTES, "nowhere"]),
        "fingerprint": st.sampled_from(FINGERPRINTS),
        "label": st.sampled_from(["irrelevant", "noncommittal"]),
        "low": st.booleans(),
    },
)
ways: Any = st.sampled_from(
    [
        STRATEGIES,
        (scan_window,),
        (partial(scan_by_value, steps=(None,)),),
        (partial(scan_by_value, steps=(1, 4, 0)), scan_window),
        (partial(scan_small_window, few=3), partial(scan_route, few=3), partial(scan_by_value, steps=(0, None))),
        (scan_route, partial(scan_by_value, steps=()), scan_window),
    ]
)


@dataclass(frozen=True)
class Written:
    """What was written to one database."""

    store: TrackingStore
    make: Make

    def write(self, given_rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
        """Replace all scores by these, in a random order of their ids."""
        start = self.make().started_at
        values = [
            {
                "exchange_id": f"{number:032x}", "scorer": scorer, "fingerprint": fingerprint, "service": service,
                "route": route, "started_at": start + timedelta(minutes=minute), "value": value, "label": label,
                "details": {}, "id": number + 1,
            }
            for number, (value, minute, scorer, service, route, fingerprint, label) in enumerate(given_rows)
        ]  # fmt: skip
        with self.store._database.write() as connection:
            connection.execute(delete(score))
            connection.execute(delete(exchange))
            if values:
                connection.execute(insert(score), values)
                connection.execute(insert(exchange), [self._exchange(row) for row in values])
        return values

    def _exchange(self, row: dict[str, Any]) -> dict[str, Any]:
        same = {name: row[name] for name in ("service", "route", "started_at")}
        return {
            "id": row["exchange_id"], "trace_id": "", "span_id": "", "contexts": [], "history": [], "attributes": {},
            "status": "ok", "duration": 0.0, "sampling_key": 1.0, "traced": True, **same,
        }  # fmt: skip


@pytest.fixture
def written(store: TrackingStore, make: Make) -> Written:
    """Writes scores past the store, which would take longer."""
    return Written(store, make)


def sorted_plainly(given_rows: list[dict[str, Any]], chosen: ScoreFilter) -> list[int]:
    """Return the ids of the scores that are wanted, lowest and then newest first."""
    names = ("scorer", "service", "route", "fingerprint", "label")
    found = [
        row
        for row in given_rows
        if chosen.since is None or row["started_at"] >= chosen.since
        if chosen.until is None or row["started_at"] < chosen.until
        if all(getattr(chosen, name) in (None, row[name]) for name in names)
        if not chosen.low or Score(scorer="a", value=row["value"], label=row["label"]).is_low
    ]
    ordered = sorted(found, key=lambda row: (row["value"], -row["started_at"].timestamp(), -row["id"]))
    return [row["id"] for row in ordered]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=rows, narrowed=narrowed, ways=ways, limit=st.integers(1, 12))
def test_every_way_leads_to_the_same(
    written: Written, rows: list[tuple[Any, ...]], narrowed: dict[str, Any], ways: Any, limit: int
) -> None:
    """Whatever the window, the names, the ties and the limit: the first ones of a plain sort."""
    there = written.write(rows)
    start = written.make().started_at
    moments = {name: start + timedelta(minutes=narrowed[name]) for name in ("since", "until") if name in narrowed}
    chosen = ScoreFilter(**{**narrowed, **moments})

    with written.store._database.read() as connection:
        found = find_lowest(connection, chosen, limit, ways)

    assert [row["id"] for row in found] == sorted_plainly(there, chosen)[:limit]


def test_a_way_that_would_take_long_gives_up(written: Written) -> None:
    """Then the next one is taken."""
    written.write([(number / 100, number % 20, "a", "shop", "ask", "f1", None) for number in range(60)])
    chosen = ScoreFilter(scorer="a", route="ask")
    unlikely = ScoreFilter(scorer="a", fingerprint="f2")

    with written.store._database.read() as connection:
        assert scan_small_window(connection, chosen, 5, few=59) is None
        assert scan_small_window(connection, chosen, 5, few=60) is not None
        assert scan_route(connection, chosen, 5, few=59) is None
        assert scan_route(connection, chosen, 5, few=60) is not None
        assert scan_route(connection, unlikely, 5, few=60) is None
        assert scan_by_value(connection, unlikely, 5, steps=(30, 20)) is None
        assert scan_by_value(connection, unlikely, 5, steps=(30, 30)) == []


def test_the_newest_of_many_refusals_come_first(written: Written) -> None:
    """Of a hundred that are all 0, a person sees the latest."""
    there = written.write([(0.0, number, "a", "shop", "ask", "f1", "noncommittal") for number in range(100)])

    found = written.store.answers.worst(limit=3, low=True)

    assert [one.exchange.id for one in found] == [row["exchange_id"] for row in reversed(there[-3:])]
    assert written.store.answers.worst(label="irrelevant") == []
    assert written.store.answers.worst(service="help") == []
