"""The archive on an S3-compatible server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.storage.archive_templates import Copy
from tests.storage.archiving import FIRST_DAY, archive, write_as_older_revision
from tests.storage.s3_server import SECRET, client, s3_server
from tests.storage.test_archive import archived_counts, assert_same_trends, counts

from germane.errors import ArchiveError
from germane.storage import AnswerFilter, ExportSelection, TrackingStore

BUCKET = "history"
LOCATION = f"s3://{BUCKET}/germane/shop"
FILES = 2 * 9 + 1
"""Files of two days, and germane-archive.json, which names the archive."""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    with s3_server() as environment:
        yield environment


@pytest.fixture
def s3(server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client for an empty bucket, which germane finds through environment variables."""
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    s3 = client(server)
    s3.create_bucket(Bucket=BUCKET)
    yield s3
    for item in s3.list_objects_v2(Bucket=BUCKET).get("Contents", []):
        s3.delete_object(Bucket=BUCKET, Key=item["Key"])
    s3.delete_bucket(Bucket=BUCKET)


def keys(s3: Any) -> list[str]:
    listed = s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
    return [item["Key"] for item in listed if not item["Key"].endswith("/")]  # without markers of folders


def key_of(s3: Any, day: int, table: str) -> str:
    folder = f"germane/shop/day={FIRST_DAY + timedelta(days=day):%Y-%m-%d}/{table}-"
    return next(key for key in keys(s3) if key.startswith(folder))


def content(s3: Any, key: str) -> bytes:
    return s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()  # type: ignore[no-any-return]


def test_an_archive_on_s3_is_read_like_the_database(sqlite_filled: Copy, s3: Any) -> None:
    """All rows move; trends, answers and details stay the same; nothing is left over."""
    store = sqlite_filled.store
    before, rows = windows(store), counts(store)
    found = [answer.score for answer in store.answers.search(AnswerFilter(), limit=30).answers]

    archive(store, LOCATION)

    assert not any(counts(store).values())
    assert archived_counts(store) == rows
    assert_same_trends(before, windows(store))
    assert [
        answer.score.value for answer in store.answers.search(AnswerFilter(), limit=30).answers if answer.score
    ] == [score.value for score in found if score]
    assert store.answers.load_detail(sqlite_filled.exchanges[0].id) is not None
    assert store.archive.verify() == {}
    assert len(keys(s3)) == FILES


def windows(store: TrackingStore) -> dict[Any, Any]:
    """Return trends of the whole archive, from rollups, and of a part of a day, from its scores."""
    ragged = {"since": FIRST_DAY + timedelta(hours=5, minutes=7), "until": FIRST_DAY + timedelta(days=1, minutes=3)}
    return {
        "summary": store.trends.summary(),
        "window": store.trends.window_summary(**ragged),
        "hours": store.trends.over_time(scorer="relevancy", bucket=timedelta(hours=1), by="model", **ragged),
    }


def test_verification_finds_truncated_and_swapped_objects(sqlite_filled: Copy, s3: Any) -> None:
    store = sqlite_filled.store
    archive(store, LOCATION)
    first, second = (key_of(s3, day, "score") for day in (0, 1))
    original = content(s3, first)
    s3.put_object(Bucket=BUCKET, Key=first, Body=original[:-1])
    s3.put_object(Bucket=BUCKET, Key=second, Body=original)

    problems = store.archive.verify()

    assert list(problems) == [FIRST_DAY, FIRST_DAY + timedelta(days=1)]
    with pytest.raises(ArchiveError, match=r"1 day of the archive could not be read: 2026-02-01: score-"):
        store.trends.summary(since=FIRST_DAY + timedelta(minutes=7), until=FIRST_DAY + timedelta(hours=20))


def test_forgetting_a_user_rewrites_objects(sqlite_filled: Copy, s3: Any) -> None:
    store = sqlite_filled.store
    archive(store, LOCATION)
    before = set(keys(s3))

    removed = store.retention.forget(user="u1")

    assert removed.exchanges
    assert store.archive.verify() == {}
    assert len(keys(s3)) == FILES
    assert not before & set(keys(s3)) - {
        key for key in before if key.endswith(("manifest.json", "germane-archive.json"))
    }
    assert not store.retention.forget(user="u1")


def test_objects_of_an_older_revision_are_read_like_the_database(sqlite_filled: Copy, s3: Any) -> None:
    """Missing columns have their default in the database."""
    store = sqlite_filled.store
    archive(store, LOCATION)
    before, exported = windows(store), store.transfer.load_stored(ExportSelection(), limit=100)

    write_as_older_revision(store, FIRST_DAY, {"exchange": ["capture_probability"], "scoring_task": ["retries"]})

    assert_same_trends(before, windows(store))
    assert store.transfer.load_stored(ExportSelection(), limit=100) == exported
    assert store.archive.verify() == {}
    assert len(keys(s3)) == FILES


def test_an_unreachable_server_is_named_without_credentials(sqlite_filled: Copy, s3: Any) -> None:
    """Nothing is removed, and the error tells what is wrong."""
    rows = counts(sqlite_filled.store)
    with pytest.raises(ArchiveError, match="the archive s3://missing/x cannot be accessed") as caught:
        archive(sqlite_filled.store, "s3://missing/x")

    assert counts(sqlite_filled.store) == rows
    assert SECRET not in str(caught.value) + repr(caught.value)
