"""Records are converted to rows and back by the names of their fields and the types of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import BigInteger, Boolean, Column, Float, MetaData, Table, Text, insert, select

from germane.exchange import Exchange
from germane.score import Score
from germane.storage import TrackingStore
from germane.storage.db.mappers import EXCHANGES, SCORE_COLUMNS, SCORES, RecordMapper, timestamp_encoder
from germane.storage.db.tables import score
from germane.storage.db.types import Json, Key, UtcDateTime
from germane.testing import transaction


@dataclass(frozen=True, kw_only=True)
class Part:
    """An item of a tuple, which is stored as JSON."""

    text: str
    place: int | None = None


@dataclass(frozen=True, kw_only=True)
class Visit:
    """A record with a field for every type of column, and one without a column."""

    name: str
    region: str | None = None
    seconds: float
    price: float | None = None
    pages: int
    is_new: bool
    at: datetime
    left_at: datetime | None = None
    parts: tuple[Part, ...] = ()
    labels: Mapping[str, Any] = field(default_factory=dict)
    note: str = "not stored"


VISIT = Table(
    "visit",
    MetaData(),
    Column("id", Key, primary_key=True),
    Column("name", Text, nullable=False),
    Column("region", Text),
    Column("seconds", Float, nullable=False),
    Column("price", Float),
    Column("pages", BigInteger, nullable=False),
    Column("is_new", Boolean, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("left_at", UtcDateTime),
    Column("parts", Json, nullable=False),
    Column("labels", Json, nullable=False),
)
VISITS = RecordMapper(VISIT, Visit)
AT = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=1)))
SHORT = Visit(name="a\0b", seconds=3, pages=1, is_new=False, at=AT)
LONG = Visit(
    name="b", region="eu", seconds=0.5, price=1, pages=2, is_new=True, at=AT, left_at=AT,
    parts=(Part(text="c", place=1),), labels={"d": [1]},
)  # fmt: skip


def test_values_are_encoded_by_the_types_of_their_columns() -> None:
    """Text is cleaned, times are in UTC, numbers have the type of the column, and JSON is text."""
    names = ("name", "region", "seconds", "price", "pages", "is_new", "at", "left_at", "parts", "labels")
    at = "2026-03-01 11:00:00.000000"
    stamp = timestamp_encoder("sqlite")

    assert VISITS.columns == names
    assert VISITS.encode(SHORT, stamp) == ("a\ufffdb", None, 3.0, None, 1, False, at, None, "[]", "{}")
    json = ('[{"text":"c","place":1}]', '{"d":[1]}')
    assert VISITS.encode(LONG, stamp) == ("b", "eu", 0.5, 1.0, 2, True, at, at, *json)


@pytest.mark.parametrize("method", ["insert", "values"])
def test_inserted_records_are_read_back(store: TrackingStore, method: str) -> None:
    """Both ways of inserting records give the same rows. Fields without a column get their default."""
    with transaction(store, migrating=True) as connection:
        VISIT.create(connection)
        if method == "insert":
            VISITS.insert(connection, [SHORT, LONG])
        else:
            connection.execute(insert(VISIT), [VISITS.values(SHORT), VISITS.values(LONG)])
        rows = connection.execute(select(VISIT).order_by(VISIT.c.id)).mappings().all()
        VISIT.drop(connection)

    found = [VISITS.decode(row) for row in rows]
    assert [visit.name for visit in found] == ["a\ufffdb", "b"]
    assert found[1] == LONG
    assert found[0].at == AT
    assert found[0].at.tzinfo is UTC


def test_stored_items_may_have_other_keys() -> None:
    """Imported items may have more keys than fields, and lack those with a default."""
    row = dict.fromkeys(VISITS.columns) | {"parts": [{"text": "c", "more": 1}]}

    assert VISITS.decode(row).parts == (Part(text="c"),)


def test_every_field_of_exchanges_and_scores_is_stored() -> None:
    """The reason of a score without a value is stored in its task. Scores repeat some columns of their exchange."""
    assert set(EXCHANGES.columns) == {field.name for field in fields(Exchange)}
    assert set(SCORES.columns) == {field.name for field in fields(Score)} - {"reason"}
    assert set(SCORE_COLUMNS) == set(score.columns.keys()) - {"id"}
