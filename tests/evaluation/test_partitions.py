"""The driver of partitions, and the errors of engines."""

from __future__ import annotations

import re
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from germane.errors import DatabaseUnreachable, SettingsError, UsageError
from germane.evaluation import open_engine, partitions
from germane.evaluation.engines import Engine, WorkerLost
from germane.evaluation.partitions import (
    MAX_FAILURES,
    MAX_OUTAGE,
    PARTITIONS_PER_WORKER,
    Held,
    PartitionFailed,
    RunStopped,
    run_partitions,
    settings_for_workers,
    settings_of_worker,
)
from germane.installation import install_command
from germane.settings import load_settings


@dataclass(frozen=True)
class Part:
    """A partition."""

    number: int


class ThreadEngine(Engine):
    """An engine of threads."""

    def __init__(self, workers: int = 2) -> None:
        self.workers = workers
        self.most_in_flight = 0
        self._in_flight: set[Future[Any]] = set()
        self._pool = ThreadPoolExecutor(workers)

    def start(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        future = self._pool.submit(function, *args)
        self._in_flight.add(future)
        future.add_done_callback(self._in_flight.discard)
        self.most_in_flight = max(self.most_in_flight, len(self._in_flight))
        return future

    def close(self, *, abandon: bool) -> None:
        self._pool.shutdown(cancel_futures=abandon)


@pytest.fixture
def engine() -> Iterator[ThreadEngine]:
    """An engine with two threads."""
    opened = ThreadEngine()
    yield opened
    opened.close(abandon=True)


def run(
    engine: Engine, function: Callable[[Any, Part], Any], count: int = 10, *, was_started: bool = True
) -> tuple[list[int], list[int]]:
    """Run partitions; return the numbers of done partitions, and of partitions that lost their process."""
    done: list[int] = []
    lost: list[int] = []
    run_partitions(
        engine,
        function,
        None,
        (Part(number) for number in range(count)),
        on_done=lambda part, _: done.append(part.number),
        on_lost=lambda part: lost.append(part.number) or was_started,  # type: ignore[func-returns-value]
    )
    return done, lost


def test_partitions_are_read_as_they_are_submitted(engine: ThreadEngine) -> None:
    """Two per worker are in flight, so a data set of any size fits into memory."""
    done, _ = run(engine, lambda _, part: part.number, count=50)
    assert sorted(done) == list(range(50))
    assert engine.most_in_flight <= PARTITIONS_PER_WORKER * engine.workers


def test_a_partition_whose_process_died_is_retried_at_once(engine: ThreadEngine) -> None:
    """Its lease is released before."""
    calls: Counter[int] = Counter()

    def die_once(_: Any, part: Part) -> int:
        calls[part.number] += 1
        if part.number == 3 and calls[3] < MAX_FAILURES:
            raise WorkerLost("killed")
        return part.number

    done, lost = run(engine, die_once)
    assert (sorted(done), lost) == (list(range(10)), [3] * (MAX_FAILURES - 1))


def test_a_partition_that_fails_again_and_again_stops_the_run(engine: ThreadEngine) -> None:
    """The error names the partition and its cause, without text that may come from users."""

    def always_die(_: Any, part: Part) -> int:
        if part.number == 3:
            raise WorkerLost("the system has no memory")
        return part.number

    with pytest.raises(PartitionFailed, match=r"^partition 3 failed 5 times: the system has no memory$"):
        run(engine, always_die)


def test_processes_that_end_before_they_work_do_not_count_against_a_partition(engine: ThreadEngine) -> None:
    """Unless no partition is ever done."""
    calls: Counter[int] = Counter()

    def die_at_start(_: Any, part: Part) -> int:
        calls[part.number] += 1
        if calls[part.number] <= 2 * MAX_FAILURES and part.number == 3:
            raise WorkerLost("killed")
        return part.number

    assert sorted(run(engine, die_at_start, was_started=False)[0]) == list(range(10))

    def always_die(_: Any, part: Part) -> int:
        raise WorkerLost("killed")

    with pytest.raises(PartitionFailed, match="killed"):
        run(engine, always_die, was_started=False)


@pytest.mark.parametrize("error", [RunStopped("the budget is exhausted"), SettingsError("no"), UsageError("no")])
def test_an_error_that_concerns_all_partitions_stops_the_run_at_once(engine: ThreadEngine, error: Exception) -> None:
    """Partitions in flight are given back."""

    def stop(_: Any, part: Part) -> int:
        raise error

    with pytest.raises(type(error)):
        run(engine, stop)


def test_a_partition_that_another_process_holds_is_tried_later(engine: ThreadEngine) -> None:
    """Other partitions are scored in the meantime."""
    calls: list[int] = []

    def hold(_: Any, part: Part) -> int | Held:
        calls.append(part.number)
        return Held(0.01) if part.number == 0 and calls.count(0) < 3 else part.number

    done, lost = run(engine, hold)
    assert (sorted(done), done[-1], lost) == (list(range(10)), 0, [])


@pytest.mark.parametrize(("failures", "stops"), [(10, False), (200, True)])
def test_only_an_outage_of_ten_minutes_stops_the_run(
    engine: ThreadEngine, monkeypatch: pytest.MonkeyPatch, failures: int, stops: bool
) -> None:
    """It starts with the first error of the database, not with the last finished partition: that may be long ago."""
    now, calls = [0.0], [0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(partitions, "time", clock)

    def lose_the_database(_: Any, part: Part) -> int:
        calls[0] += 1
        if calls[0] == 1:
            now[0] += 2 * MAX_OUTAGE  # the partition takes long
        if calls[0] <= failures:
            raise DatabaseUnreachable("the database is unreachable")
        return part.number

    if stops:
        with pytest.raises(DatabaseUnreachable):
            run(engine, lose_the_database, count=1)
        assert now[0] > 3 * MAX_OUTAGE
    else:
        assert run(engine, lose_the_database, count=1)[0] == [0]


def test_processes_that_are_still_starting_end_when_the_run_is_abandoned() -> None:
    """Ctrl-C does not wait for the functions that were submitted to them."""
    submitted = []

    def interrupt() -> None:
        with open_engine("local", workers=2) as opened:
            submitted.extend(opened.submit(time.sleep, 20) for _ in range(2))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert [type(future.exception()) for future in submitted] == [WorkerLost, WorkerLost]


@pytest.mark.parametrize(("name", "module"), [("dask", "distributed"), ("ray", "ray")])
def test_an_engine_that_is_not_installed_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, name: Any, module: str
) -> None:
    """The error contains the command that installs it."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=re.escape(install_command(name))), open_engine(name):
        pass


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("local", {"scheduler": "tcp://host:1"}, "the engine is local"),
        ("dask", {"scheduler": "tcp://host:1", "workers": 2}, "its cluster has its own workers"),
        ("local", {"workers": 0}, "workers must be at least 1, not 0"),
    ],
)
def test_contradictory_arguments_are_rejected(name: Any, options: dict[str, Any], message: str) -> None:
    """Before a process starts."""
    with pytest.raises(UsageError, match=message), open_engine(name, **options):
        pass


def test_secrets_are_not_sent_to_a_remote_engine(bare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its workers have their own. No engine gets secrets that scoring does not need."""
    settings = load_settings(
        database="postgresql://user:hidden@host/db",
        api_key="hidden-key",
        base_url="http://user:hidden@judge/v1",
        dashboard_token="hidden-token-of-the-dashboard",
    )
    engine = ThreadEngine()
    local = settings_for_workers(settings, engine)
    assert (local.api_key, local.dashboard_token) == (settings.api_key, None)
    engine.is_remote = True
    sent = settings_for_workers(settings, engine)
    assert "hidden" not in str([getattr(sent, name) for name in type(sent).model_fields])
    assert (sent.api_key, sent.base_url) == (None, None)

    monkeypatch.setenv("GERMANE_DATABASE", "postgresql://worker@host/db")
    assert settings_of_worker(sent, has_own_secrets=True).database == "postgresql://worker@host/db"
    engine.close(abandon=True)


@pytest.mark.slow
def test_dask_starts_while_another_program_uses_its_default_port() -> None:
    """Two rescorings on one machine do not warn about each other's HTTP server."""
    pytest.importorskip("distributed")
    with socket.socket() as server:
        with suppress(OSError):  # another program listens there already
            server.bind(("127.0.0.1", 8787))
            server.listen()
        with open_engine("dask", workers=1) as engine:
            assert engine.submit(sum, (2, 3)).result(60) == 5
