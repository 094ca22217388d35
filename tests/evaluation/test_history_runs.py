"""Rescoring on every engine: identical rows, and each partition is written once whatever dies."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import pytest
from tests.conftest import migrated_file
from tests.databases import POSTGRESQL_IS_THOROUGH, SQLITE_IS_THOROUGH

from germane.evaluation import open_engine, rescoring, run_rescoring
from germane.evaluation.partitions import Held, RunStopped
from germane.exchange import Exchange
from germane.scorers import build_scorers
from germane.settings import Settings, load_settings
from germane.storage import HistoryRun, HistorySelection, PartitionKey, SamplingDecision, TrackingStore
from germane.storage.history.results import score_checksum
from germane.testing import FakeJudge, Fault

pytestmark = pytest.mark.slow
MODULES = {"local": "germane", "dask": "distributed", "ray": "ray"}
USUAL = {("postgresql", "local"), ("sqlite", "dask"), ("sqlite", "ray")}
ENGINES = [
    pytest.param(
        database,
        engine,
        marks=[
            pytest.mark.skipif(find_spec(module) is None, reason=f"{module} is not installed"),
            *([] if (database, engine) in USUAL else [pytest.mark.thorough]),
        ],
    )
    for database in ("sqlite", "postgresql")
    for engine, module in MODULES.items()
]
START = datetime(2026, 3, 1, tzinfo=UTC)
NUMBER = "answer_number"
EMBEDDED = "question_answer_similarity"
ROWS = 120


@pytest.fixture
def store(migrated_url: str) -> Iterator[TrackingStore]:
    """A migrated store."""
    opened = TrackingStore(migrated_url)
    yield opened
    opened.close()


@pytest.fixture
def configure(migrated_url: str, monkeypatch: pytest.MonkeyPatch, bare: Path) -> Callable[..., Settings]:
    """A function that loads settings for this process and the processes of an engine."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *sys.path]))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))

    def load(**given: object) -> Settings:
        defaults = {"database": migrated_url, "imports": ["history_scorers"], "scorers": [NUMBER]}
        return load_settings(**defaults | given)  # type: ignore[arg-type]  # the settings of a test

    return load


def fill(store: TrackingStore, count: int) -> list[Exchange]:
    """Write exchanges whose answers are numbers, and sample none of them."""
    made = [
        Exchange(
            id=uuid4().hex,
            trace_id=uuid4().hex,
            span_id=uuid4().hex[:16],
            service="shop",
            route="ask",
            question=f"How much is item {number}?",
            answer=f"{number / count}",
            started_at=START + timedelta(seconds=number // 3),
        )
        for number in range(count)
    ]
    for start in range(0, count, 1000):
        batch = made[start : start + 1000]
        store.exchanges.add(batch)
        store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "uniform") for one in batch], {})
    return made


def plan(store: TrackingStore, settings: Settings, size: int) -> HistoryRun:
    """Create a run over everything."""
    fingerprints = {scorer.name: scorer.fingerprint for scorer in build_scorers(settings).scorers}
    selection = HistorySelection(since=START, until=START + timedelta(days=1), scorers=fingerprints, everything=True)
    return store.history.create_run(selection, partition_size=size)


def assert_scored_once(store: TrackingStore, run: HistoryRun, made: list[Exchange], scorers: int = 1) -> None:
    """Check by count and by checksum that each exchange has one score per scorer, and that the counts add up."""
    fingerprint = run.selection.scorers[NUMBER]
    expected = {score_checksum(one.id, NUMBER, fingerprint, float(one.answer or "")) for one in made}
    assert (run.scored, run.failed, run.skipped) == (len(made) * scorers, 0, 0)
    stored = store.answers.get_scores([one.id for one in made])
    rows = [(key, score) for key, scores in stored.items() for score in scores]
    assert len(rows) == len(made) * scorers
    found = [score_checksum(key, one.scorer, one.fingerprint, one.value or 0.0) for key, one in rows]
    assert expected <= set(found)
    assert run.checksum == sum(found) % 2**64
    [coverage] = [one for one in store.trends.coverage() if one.scorer == NUMBER]
    assert (coverage.seen, coverage.scored, coverage.pending) == (len(made), len(made), 0)


@pytest.fixture(scope="module")
def local_scores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float | None]:
    """The embedder's score of each answer, computed by local processes."""
    pytest.importorskip("onnxruntime")
    url = f"sqlite:///{shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path_factory.mktemp('local'))}"
    with closing(TrackingStore(url)) as store:
        made = fill(store, ROWS)
        score_everything(store, load_settings(database=url, scorers=[EMBEDDED], embedder="local"), "local")
        return embedded_scores(store, made)


def score_everything(store: TrackingStore, settings: Settings, engine: str) -> HistoryRun:
    """Run all scorers in the settings over all answers, in partitions of 25."""
    with open_engine(engine, workers=2) as opened:  # type: ignore[arg-type]  # one of the names
        finished, _ = run_rescoring(store, plan(store, settings, size=25), settings, opened)
    return finished


def embedded_scores(store: TrackingStore, made: list[Exchange]) -> dict[str, float | None]:
    """Return the embedder's score of each answer."""
    answers = {one.id: one.answer or "" for one in made}
    scores = store.answers.get_scores(list(answers))
    return {answers[key]: one.value for key, each in scores.items() for one in each if one.scorer == EMBEDDED}


@pytest.mark.parametrize(("migrated_url", "engine"), ENGINES, indirect=["migrated_url"])
def test_every_engine_scores_each_exchange_once(
    store: TrackingStore, configure: Callable[..., Settings], engine: str, local_scores: dict[str, float | None]
) -> None:
    """The rows do not depend on the engine.

    Partitions give the embedder the same batches on every engine, so that even roundings are equal.
    """
    made = fill(store, ROWS)
    finished = score_everything(store, configure(scorers=[NUMBER, EMBEDDED], embedder="local"), engine)

    assert finished.finished_at is not None
    assert_scored_once(store, finished, made, scorers=2)
    assert embedded_scores(store, made) == local_scores
    assert len(local_scores) == len(made)


def test_killed_processes_lose_and_repeat_nothing(store: TrackingStore, configure: Callable[..., Settings]) -> None:
    """Their partitions are scored again at once, and a partition that was written is not written again."""
    made = fill(store, 3000)
    settings = configure()
    run = plan(store, settings, size=100)
    finished = threading.Event()
    killed = []

    def kill() -> None:
        while len(killed) < 2 and not finished.wait(random.Random(len(killed)).uniform(0.1, 0.5)):
            victims = [child.pid for child in multiprocessing.active_children() if child.pid]
            if victims:
                killed.append(random.Random(len(killed)).choice(victims))
                os.kill(killed[-1], signal.SIGKILL)

    with open_engine("local", workers=2) as opened:
        killer = threading.Thread(target=kill)
        killer.start()
        done, _ = run_rescoring(store, run, settings, opened)
        finished.set()
        killer.join()
    assert killed
    assert_scored_once(store, done, made)


@SQLITE_IS_THOROUGH
def test_a_killed_run_is_continued(
    store: TrackingStore, configure: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its processes end with it. The next run scores only the partitions that are not done."""
    made = fill(store, 1000)
    settings = configure(concurrency=1)
    run = plan(store, settings, size=50)
    monkeypatch.setenv("GERMANE_DATABASE", settings.database)
    monkeypatch.setenv("GERMANE_SCORERS", NUMBER)
    monkeypatch.setenv("GERMANE_IMPORTS", "history_scorers")
    monkeypatch.setenv("GERMANE_CONCURRENCY", "1")
    monkeypatch.setenv("HISTORY_SCORER_DELAY", "0.02")
    command = [sys.executable, "-m", "germane", "rescore", "--resume", run.id, "--engine", "local:2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as driver:
        while store.history.get_run(run.id).done_partitions < 3:
            assert driver.poll() is None
            time.sleep(0.05)
        driver.kill()
    halfway = store.history.get_run(run.id)
    assert 0 < halfway.done_partitions < halfway.partitions

    monkeypatch.setenv("HISTORY_SCORER_DELAY", "0")
    with open_engine("local", workers=2) as opened:
        done, _ = run_rescoring(store, run, settings, opened)
    assert_scored_once(store, done, made)


def test_a_process_that_lost_its_lease_stops_scoring(
    store: TrackingStore, configure: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its scores would be discarded, and each request costs money."""
    fill(store, 4)
    settings = configure()
    run = plan(store, settings, size=4)
    monkeypatch.setattr(sys.modules["history_scorers"], "DELAY", 60.0)
    monkeypatch.setattr(rescoring, "LEASE", timedelta(seconds=1))
    key = PartitionKey(run.id, 0)

    def take_over() -> None:
        while not store.history.release_partition(key, owner_prefix="first"):
            time.sleep(0.01)
        store.history.claim_partition(key, "second", lease=timedelta(minutes=5))

    thread = threading.Thread(target=take_over)
    thread.start()
    outcome = rescoring.rescore_partition(
        rescoring.RescoreJob(run.id, "first", settings, has_own_secrets=False), rescoring.PartitionPart(0, 4)
    )
    thread.join()

    assert outcome == Held(0.0)
    assert store.history.get_run(run.id).done_partitions == 0


@POSTGRESQL_IS_THOROUGH
def test_a_budget_that_ends_within_a_partition_wastes_no_request(
    store: TrackingStore, configure: Callable[..., Settings]
) -> None:
    """The scores up to then are written, and the next run scores only the rest, even if its processes are killed."""
    made = fill(store, 90)
    with FakeJudge(latency=0.05) as judge:

        def run_with(requests_per_day: int) -> HistoryRun:
            budget = {"requests_per_day": requests_per_day}
            settings = configure(scorers=["direct_relevancy"], imports=[], budget=budget, **judge.settings())
            with open_engine("local", workers=2) as opened:
                finished, _ = run_rescoring(store, run, settings, opened)
            return finished

        # This scorer sends one request for each answer.
        settings = configure(scorers=["direct_relevancy"], imports=[], **judge.settings())
        run = plan(store, settings, size=60)
        with pytest.raises(RunStopped, match="the budget is exhausted until"):
            run_with(25)
        stopped = store.history.get_run(run.id)
        assert len(judge.chat_requests) == 25
        assert (stopped.scored, stopped.failed, stopped.skipped) == (25, 0, 0)
        killer = threading.Thread(target=kill_one_that_scores, args=[judge])
        killer.start()
        done = run_with(1000)
        killer.join()

    assert (done.done_partitions, done.scored, done.failed, done.skipped) == (2, 90, 0, 0)
    stored = store.answers.get_scores([one.id for one in made])
    rows = [(key, score) for key, scores in stored.items() for score in scores]
    assert len(rows) == len(made)
    checksums = [score_checksum(key, one.scorer, one.fingerprint, one.value or 0.0) for key, one in rows]
    assert done.checksum == sum(checksums) % 2**64


def kill_one_that_scores(judge: FakeJudge) -> None:
    """Kill a process once requests of this run have arrived."""
    before = len(judge.requests)
    while len(judge.requests) < before + 5:
        time.sleep(0.01)
    victims = [child.pid for child in multiprocessing.active_children() if child.pid]
    os.kill(random.Random(1).choice(victims), signal.SIGKILL)


@POSTGRESQL_IS_THOROUGH
def test_an_outage_of_the_judge_stops_the_run_without_failed_scores(
    store: TrackingStore, configure: Callable[..., Settings]
) -> None:
    """A rejected key stops it at once. When the judge works again, the run continues."""
    made = fill(store, 60)
    with FakeJudge() as judge:
        settings = configure(scorers=["answer_relevancy"], imports=[], **judge.settings())
        run = plan(store, settings, size=30)
        judge.outage = Fault("status", status=401)
        with open_engine("local", workers=1) as opened, pytest.raises(RunStopped, match="judge_rejected"):
            run_rescoring(store, run, settings, opened)
        stopped = store.history.get_run(run.id)
        assert (stopped.done_partitions, stopped.scored, stopped.failed) == (0, 0, 0)
        judge.outage = None
        with open_engine("local", workers=1) as opened:
            started = time.perf_counter()
            done, usage = run_rescoring(store, run, settings, opened)
            assert 0 < usage.seconds <= time.perf_counter() - started
    assert (done.scored, done.failed) == (len(made), 0)
    assert usage.requests >= len(made)
