"""``germane archive``, and what other commands say about the archive."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.storage.archiving import FIRST_DAY, fill
from tests.storage.conftest import an_exchange

from germane.storage import TrackingStore

Call = Callable[..., Any]


@pytest.fixture
def folder(bare: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty archive, and a database with three days of scores."""
    store = TrackingStore("sqlite:///germane.db")
    store.migrate()
    fill(store, an_exchange)
    store.close()
    monkeypatch.setenv("GERMANE_ARCHIVE__LOCATION", "history")
    return bare / "history"


def test_days_are_archived_and_verified(folder: Path, call: Call) -> None:
    preview = call("archive", "--dry-run")
    done = call("archive")
    again = call("archive")
    verified = call("archive", "--verify")

    assert "2026-02-01  would be archived" in preview.out
    assert "2026-02-01  " in done.out
    assert "The archive contains 3 days with 60 scores in " in done.out
    assert "no day is ready to be archived" in again.out
    assert verified.out.endswith("all files of 3 archived days match their checksums\n")
    assert [done.code, again.code, verified.code] == [0, 0, 0]


def test_json_output_contains_days_and_totals(folder: Path, call: Call) -> None:
    content = call("archive", "--json").content

    assert [day["day"] for day in content["days"]] == ["2026-02-01", "2026-02-02", "2026-02-03"]
    assert content["archive"]["scores"] == 60
    assert call("archive", "--verify", "--json").content["problems"] == []


def test_a_damaged_archive_is_reported(folder: Path, call: Call) -> None:
    """Verification and doctor name the file, and reports fail instead of showing lower numbers."""
    call("archive")
    (path,) = folder.glob(f"day={FIRST_DAY:%Y-%m-%d}/score-*.parquet")
    os.truncate(path, 10)

    verified = call("archive", "--verify")
    report = call("report", "--since", "2026-02-01T05:07:00Z", "--until", "2026-02-03T00:00:00Z")
    findings = call("doctor", "--offline", "--json").content["findings"]

    assert verified.code == 1
    assert f"2026-02-01: {path.name} has 10 bytes instead of" in verified.out
    assert report.code == 1
    assert "1 day of the archive could not be read: 2026-02-01" in report.err
    finding = next(finding for finding in findings if finding["subject"] == "archive")
    assert finding["level"] == "error"
    assert path.name in finding["message"]


def test_doctor_describes_an_intact_archive(folder: Path, call: Call) -> None:
    call("archive")

    findings = call("doctor", "--offline", "--json").content["findings"]

    assert [
        (finding["level"], finding["message"].rpartition(" in ")[0])
        for finding in findings
        if finding["subject"] == "archive"
    ] == [("ok", "3 days with 60 scores")]


def test_the_archive_setting_is_required(bare: Path, call: Call) -> None:
    result = call("archive")

    assert result.code == 2
    assert "no archive is configured: set GERMANE_ARCHIVE__LOCATION" in result.err
