"""SQL functions on all databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import duckdb
import psycopg
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import literal, select
from sqlalchemy.engine import make_url

from germane.storage import TrackingStore
from germane.storage.archive.dialect import URL
from germane.storage.db.functions import EpochSeconds, array_literal
from germane.storage.db.types import UtcDateTime
from germane.testing import transaction

MOMENTS = st.builds(
    lambda second, microsecond, offset: (
        datetime(1971, 1, 1, tzinfo=UTC) + timedelta(seconds=second, microseconds=microsecond)
    ).astimezone(timezone(timedelta(minutes=offset))),
    st.integers(0, 4_000_000_000) | st.integers(0, 1_000_000).map(lambda hour: 3600 * hour + 3599),
    st.integers(0, 999_999) | st.integers(999_000, 999_999) | st.sampled_from([0, 499_999, 500_000]),
    st.integers(-14 * 60, 14 * 60),
)
"""Times in any zone, many of them in the last millisecond of an hour."""


def test_times_are_cut_to_whole_seconds_on_all_databases(store: TrackingStore) -> None:
    """An answer belongs to the hour and the day in which it was given, however shortly before their end."""
    duck = make_url(URL).get_dialect()()
    with transaction(store) as connection, duckdb.connect() as archive:

        @given(moment=MOMENTS)
        def check(moment: datetime) -> None:
            seconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)

            assert connection.execute(select(EpochSeconds(literal(moment, UtcDateTime())))).scalar_one() == seconds
            naive = moment.astimezone(UTC).replace(tzinfo=None)
            query = select(EpochSeconds(literal(naive))).compile(dialect=duck, compile_kwargs={"literal_binds": False})
            assert archive.execute(str(query), [naive]).fetchall() == [(seconds,)]

        check()


@given(values=st.lists(st.none() | st.text('a",\\{} ')))
@example(values=['a","b'])
@example(values=['"', "a"])
@example(values=["a", None])
def test_an_array_for_postgresql_has_the_given_texts(postgresql: Any, values: list[str | None]) -> None:
    """Quotes, commas and backslashes are common in answers, and must not move texts to other rows."""
    with psycopg.connect(postgresql.url("postgres")) as connection:
        assert connection.execute("SELECT %s::text[]", [array_literal(values)]).fetchone() == (values,)
