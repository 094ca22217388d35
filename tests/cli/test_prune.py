"""Tests of `germane prune`, `germane forget` and `germane db vacuum`."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from germane.annotation import Feedback
from germane.storage import TrackingStore

Call = Callable[..., Any]
Scored = Callable[..., Any]
NONE = dict.fromkeys(
    [
        *("texts", "exchanges", "scores", "expired", "feedback", "comments", "counts", "workers", "markers", "alerts"),
        *("traces", "requests"),
    ],
    0,
)


def ago(days: float) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


def texts(store: TrackingStore) -> list[bool]:
    return [one.question is not None for one in store.answers.list_exchanges()]


def test_retention_ages_default_to_the_settings(
    call: Call, store: TrackingStore, scored: Scored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default is 30 days for texts and 400 days for exchanges, unless the setting differs."""
    for days in (1, 31, 401):
        scored(store, [0.5], started_at=ago(days))

    ended = call("prune")

    assert ended.code == 0
    assert "removed: 1 text erased, 1 exchange deleted, 1 score deleted" in ended.out
    assert texts(store) == [True, False]
    monkeypatch.setenv("GERMANE_RETENTION__TEXT_DAYS", "0.5")
    assert call("prune", "--json").content["removed"] == NONE | {"texts": 1}
    assert "removed: nothing\n" in call("prune").out


def test_retention_ages_and_size_can_be_specified(call: Call, store: TrackingStore, scored: Scored) -> None:
    """Ages are durations or times. To reach a size, the oldest exchanges are deleted first."""
    for days in (1, 5, 9):
        scored(store, [0.5], started_at=ago(days))

    assert call("prune", "--text-older-than", "8d", "--json").content["removed"] == NONE | {"texts": 1}
    removed = call("prune", "--older-than", ago(3).isoformat(), "--json").content["removed"]
    assert (removed["exchanges"], removed["scores"], removed["texts"]) == (2, 2, 0)
    small = call("prune", "--max-size", "1kB", "--json").content
    assert (small["removed"]["texts"], small["removed"]["exchanges"], small["max_size"]) == (1, 1, 1000)
    assert small["size"] > 1000
    assert "exchanges younger than an hour are not deleted" in call("prune", "--max-size", "1kB").out


def test_prune_dry_run_changes_nothing(call: Call, store: TrackingStore, scored: Scored) -> None:
    """The output shows what would be removed."""
    scored(store, [0.5, 0.6], started_at=ago(31))

    ended = call("prune", "--dry-run", "--max-size", "1B")

    assert "would remove: 2 texts erased\n" in ended.out
    assert ended.out.endswith("the oldest exchanges would be deleted too\n")
    assert texts(store) == [True, True]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--older-than", "soon"),
        ("--older-than", "3m"),
        ("--older-than", "9999-01-01"),
        ("--text-older-than", "5 moons"),
        ("--max-size", "large"),
        ("--max-size", "0"),
    ],
)
def test_invalid_retention_ages_are_rejected(
    call: Call, store: TrackingStore, scored: Scored, arguments: tuple[str, str]
) -> None:
    """Minutes, which may mean months, and times in the future are rejected before anything changes."""
    scored(store, [0.5], started_at=ago(0.5))
    assert call("prune", *arguments).code == 2
    assert texts(store) == [True]


def test_forget_deletes_the_data_of_a_user(call: Call, store: TrackingStore, scored: Scored) -> None:
    """The output lists what is not deleted."""
    [exchange] = scored(store, [0.5], user="u1")
    [other] = scored(store, [0.5], user="u2")
    store.labels.add_feedback([Feedback(id="1", exchange_id=exchange.id, score=1.0, created_at=ago(0))])

    ended = call("forget", "--user", "u1", "--yes")

    assert ended.code == 0
    assert "1 exchange, 1 score, 1 label.\nNot deleted: counts, which do not identify anyone; exported" in ended.out
    assert store.answers.list_exchanges() == [other]
    assert "contains no data for user u1." in call("forget", "--user", "u1", "--yes").out


def test_forget_deletes_the_data_of_a_session_or_an_attribute_value(
    call: Call, store: TrackingStore, scored: Scored
) -> None:
    """A value may contain an equals sign."""
    scored(store, [0.5], session="s1")
    scored(store, [0.5], attributes={"tenant": "a=b"})
    kept = scored(store, [0.5], attributes={"tenant": "a"})

    assert call("forget", "--session", "s1", "--yes", "--json").content["removed"] == NONE | {
        "exchanges": 1,
        "scores": 1,
    }
    dry = call("forget", "--attribute", "tenant=a=b", "--dry-run", "--json").content
    assert (dry["dry_run"], dry["removed"]["exchanges"]) == (True, 1)
    assert "Deleted from " in call("forget", "--attribute", "tenant=a=b", "--yes").out
    assert store.answers.list_exchanges() == kept


@pytest.mark.parametrize(
    "arguments",
    [
        ("--user", "u1"),
        ("--user", "u1", "--json"),
        ("--yes",),
        ("--user", "u1", "--session", "s1", "--yes"),
        ("--user", "", "--yes"),
        ("--attribute", "tenant", "--yes"),
        ("--attribute", "=acme", "--yes"),
    ],
)
def test_forget_requires_confirmation_and_one_selector(
    call: Call, store: TrackingStore, scored: Scored, arguments: tuple[str, ...]
) -> None:
    """Nothing is deleted without a terminal, without a selector, or with two selectors."""
    scored(store, [0.5], user="u1", session="s1", attributes={"tenant": "acme"})

    ended = call("forget", *arguments)

    assert ended.code == 2
    assert store.answers.counts().captured == 1


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "left", "code"), [(b"n\n", 1, 1), (b"y\n", 0, 0)])
def test_forget_asks_for_confirmation_on_a_terminal(
    store: TrackingStore, scored: Scored, answer: bytes, left: int, code: int
) -> None:
    """It first shows the stored data."""
    scored(store, [0.5], user="u1")
    near, far = pty.openpty()
    command = [sys.executable, "-c", "from germane.cli import main; main()", "forget", "--user", "u1"]
    with subprocess.Popen(command, stdin=far, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        os.write(near, answer)
        out, _ = process.communicate(timeout=60)
    os.close(near)
    os.close(far)

    assert process.returncode == code
    assert b"contains data for user u1: 1 exchange, 1 score" in out
    assert b"Delete permanently?" in out
    assert store.answers.counts().captured == left


def test_user_names_in_the_output_of_forget_are_sanitized(call: Call, database: str) -> None:
    """An attacker may have chosen the name in a request."""
    assert "\x1b" not in call("forget", "--user", "\x1b[31mred", "--yes").out


def test_vacuum_reports_the_size_before_and_after(
    call: Call, store: TrackingStore, scored: Scored, tmp_path: Path
) -> None:
    """On SQLite, the file is smaller afterwards."""
    scored(store, [0.5] * 50, started_at=ago(500), answer="x" * 20_000)
    store.close()  # otherwise the rows are still in the write-ahead log
    before = (tmp_path / "germane.db").stat().st_size
    call("prune")

    ended = call("db", "vacuum")

    assert ended.out.endswith(" MB now.\n")
    assert (tmp_path / "germane.db").stat().st_size < before / 3
    sizes = call("db", "vacuum", "--json").content
    assert sizes["size"] <= sizes["size_before"]


def test_sqlite_and_postgresql_databases_can_be_vacuumed(call: Call, migrated_url: str) -> None:
    """PostgreSQL runs VACUUM on germane's tables."""
    assert call("db", "vacuum", "--database", migrated_url).code == 0
