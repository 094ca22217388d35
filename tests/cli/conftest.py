"""Fixtures that run commands in this process, and a database with scores."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.conftest import migrated_file
from tests.schemas import check, schema_of

from germane.cli import main
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason, band_of
from germane.storage import SamplingDecision, TrackingStore


@pytest.fixture(autouse=True)
def alone(bare: Path) -> None:
    """Provide an environment with only the settings that the test creates."""


@dataclass(frozen=True)
class Ended:
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def content(self) -> dict[str, Any]:
        """The only JSON object on stdout."""
        content: dict[str, Any] = json.loads(self.out)
        assert content["schema_version"] == 1
        return content


Call = Callable[..., Ended]


def silent(exchange: Exchange, number: int, **fields: Any) -> Exchange:
    """Return a copy of an exchange with another id, on the route ``silent``."""
    return replace(exchange, id=f"{number:032x}", route="silent", **fields)


def about(ended: Ended, subject: str) -> dict[str, Any]:
    """Return the finding of ``germane doctor`` about a subject."""
    (finding,) = [finding for finding in ended.content["findings"] if finding["subject"] == subject]
    assert (ended.code == 4) is any(finding["level"] == "error" for finding in ended.content["findings"])
    return dict(finding)


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """A function that runs a command with arguments. JSON must match the documented schema."""

    thresholds = gc.get_threshold()
    # Frozen objects would never be collected, so that unclosed files in them would not be reported.
    monkeypatch.setattr(gc, "freeze", lambda: None)

    def germane(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["germane", *arguments])
        monkeypatch.setattr(sys, "path", list(sys.path))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        if "--json" in arguments and out:
            content = json.loads(out)
            check(content, "cli/error" if content.keys() == {"schema_version", "error"} else schema_of([*arguments]))
        return Ended(ended.value.code, out, err)

    yield germane
    gc.set_threshold(*thresholds)


@pytest.fixture
def database(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an SQLite file with tables, to which the settings refer."""
    url = f"sqlite:///{shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path / 'germane.db')}"
    monkeypatch.setenv("GERMANE_DATABASE", url)
    return url


@pytest.fixture
def store(database: str) -> Iterator[TrackingStore]:
    """A store on this database."""
    opened = TrackingStore(database)
    yield opened
    opened.close()


def an_exchange(**given: Any) -> Exchange:
    """Return an exchange at the current time."""
    defaults: dict[str, Any] = {
        "id": uuid4().hex,
        "trace_id": uuid4().hex,
        "span_id": uuid4().hex[:16],
        "service": "shop",
        "route": "ask",
        "question": "How do I pay?",
        "answer": "By card.",
        "started_at": datetime.now(UTC) - timedelta(minutes=1),
    }
    return Exchange(**defaults | given)


def write(
    store: TrackingStore,
    values: Sequence[float | UnscoredReason],
    *,
    fingerprint: str = "f1",
    scorer: str = "answer_relevancy",
    details: dict[str, Any] | None = None,
    embedder: str | None = None,
    **given: Any,
) -> list[Exchange]:
    """Write exchanges on one route, each with a score or a failure."""
    exchanges = [an_exchange(**given) for _ in values]
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, 1.0, "sampled") for exchange in exchanges], {scorer: fingerprint}
    )
    by_id = dict(zip([exchange.id for exchange in exchanges], values, strict=True))
    claims = store.queue.claim_tasks("test", {scorer: fingerprint}, limit=len(values), lease=timedelta(minutes=1))
    results = [
        (task, replace(_score(task.scorer, fingerprint, by_id[task.exchange_id], details), embedder=embedder))
        for c in claims
        for task in c.tasks
    ]
    store.queue.complete_tasks("test", results)
    return exchanges


def _score(scorer: str, fingerprint: str, value: float | UnscoredReason, details: dict[str, Any] | None) -> Score:
    now = datetime.now(UTC)
    if isinstance(value, UnscoredReason):
        return Score(scorer=scorer, fingerprint=fingerprint, reason=value, explanation="no", scored_at=now)
    return Score(
        scorer=scorer, fingerprint=fingerprint, value=value, label=band_of(value), details=details or {}, scored_at=now
    )


@pytest.fixture
def scored() -> Callable[..., list[Exchange]]:
    """A function that writes exchanges on one route, each with a score or a failure."""
    return write


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment of a process."""
    return dict(os.environ)
