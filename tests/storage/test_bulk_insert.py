"""Rows are stored in batches, whatever types and lengths their values have."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, StrEnum
from typing import Any

import pytest
from sqlalchemy import event

from germane.annotation import RecordedScore
from germane.exchange import Exchange
from germane.storage import TrackingStore
from germane.storage.db import mappers
from germane.testing import transaction

Make = Callable[..., Exchange]


class Plan(StrEnum):
    """A name that an application also uses as text."""

    BASIC = "basic"


class Role(str, Enum):  # noqa: UP042 - the older form is the case
    """The same, as applications wrote it before Python 3.11. Its text form is not its value."""

    GUEST = "guest"


def test_whole_numbers_fractions_and_enums_are_stored_in_one_batch(store: TrackingStore, make: Make) -> None:
    """An application may return 1 where it usually returns 0.5, or an enum where it usually returns text."""
    numbers: list[Any] = [1, 0.5, True, 0]
    names: list[Any] = [Plan.BASIC, "basic", None, Role.GUEST]
    exchanges = [
        make(minute, duration=number, user=name, model=name)
        for minute, (number, name) in enumerate(zip(numbers, names, strict=True))
    ]

    store.exchanges.add(exchanges)
    store.exchanges.record_scores(
        [
            RecordedScore(exchange_id=one.id, name="rated", value=value, label=name, recorded_at=one.started_at)
            for one, value, name in zip(exchanges, numbers, names, strict=True)
        ]
    )

    found = store.answers.get_exchanges([one.id for one in exchanges])
    assert [(found[one.id].duration, found[one.id].user, found[one.id].model) for one in exchanges] == [
        (1.0, "basic", "basic"),
        (0.5, "basic", "basic"),
        (1.0, None, None),
        (0.0, "guest", "guest"),
    ]
    scores = store.answers.get_scores([one.id for one in exchanges])
    assert [(scores[one.id][0].value, scores[one.id][0].label) for one in exchanges] == [
        (1.0, "basic"),
        (0.5, "basic"),
        (1.0, None),
        (0.0, "guest"),
    ]


@pytest.mark.parametrize("limit", [0, 1_000, 10**9])
def test_long_rows_are_stored_in_several_statements(
    store: TrackingStore, make: Make, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Otherwise, a batch of long answers could exceed the length of a statement and would be retried forever."""
    monkeypatch.setattr(mappers, "MAX_CHARACTERS_PER_STATEMENT", limit)
    exchanges = [make(minute, answer=f"{minute} " * 300) for minute in range(7)]

    store.exchanges.add(exchanges)
    store.exchanges.add(exchanges)

    assert store.answers.get_exchanges([one.id for one in exchanges]) == {one.id: one for one in exchanges}


def test_sqlite_gets_many_rows_with_a_statement_and_no_parameters_for_nulls(
    sqlite_store: TrackingStore, make: Make
) -> None:
    """The threads that serve users wait less for the GIL if the writer needs it less often."""
    exchanges = [make(minute, model="m" if minute % 3 else None) for minute in range(300)]
    rows = [mappers.EXCHANGES.encode(one, mappers.timestamp_encoder("sqlite")) for one in exchanges]
    statements: list[Any] = []

    with transaction(sqlite_store) as connection:
        event.listen(connection, "before_cursor_execute", lambda *call: statements.append(call[3]))
        mappers.bulk_insert(connection, mappers.exchange, mappers.EXCHANGES.columns, rows)

    sets = [parameters for group in statements for parameters in (group if isinstance(group, list) else [group])]
    assert len(sets) <= 30
    nulls = sum(value is None for parameters in sets for value in parameters)
    assert nulls == sum(one.model is None for one in exchanges)
    assert sqlite_store.answers.get_exchanges([one.id for one in exchanges]) == {one.id: one for one in exchanges}


def test_sqlite_gets_small_batches_with_one_statement(sqlite_store: TrackingStore, make: Make) -> None:
    """Preparing a statement for each number of rows would take longer than writing them."""
    statements: list[str] = []
    encode = mappers.timestamp_encoder("sqlite")

    with transaction(sqlite_store) as connection:
        event.listen(connection, "before_cursor_execute", lambda *call: statements.append(call[2]))
        for count in range(1, 20):
            made = [make(60 * count + number, model="m" if number else None) for number in range(count)]
            rows = [mappers.EXCHANGES.encode(one, encode) for one in made]
            mappers.bulk_insert(connection, mappers.exchange, mappers.EXCHANGES.columns, rows)

    assert len(statements) == 19
    assert len(set(statements)) == 1
