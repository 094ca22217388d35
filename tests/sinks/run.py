"""Write scores to Phoenix and MLflow through outages and kills: python tests/sinks/run.py [phoenix | mlflow].

Two applications capture 150 exchanges each and send their spans to the server, and two workers score them. Meanwhile,
the server is killed for 30 seconds, and a worker twice. At the end, all answers are rescored: first with other replies
of the same judge, then with another judge. Then the server has exactly one annotation for each score and label, on its
span, with the newest value, its label and its explanation.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from servers import BUILD, SERVERS, Server, Written, is_isolated, isolate

from germane.score import Score
from germane.storage import TrackingStore
from germane.testing import FakeJudge

EXCHANGES = 300
OUTAGE = 30.0
WAIT_TIMEOUT = 900.0
HEADER = f"{'':20}{'seconds':>9}" + "".join(
    f"{name:>10}" for name in ("expected", "exact", "missing", "doubled", "different", "given up")
)
APPLICATION = Path(__file__).with_name("application.py")
SETTINGS = """
database = "sqlite:///{folder}/germane.db"
scorers = ["answer_relevancy", "noncommittal"]
poll_interval = 0.5

[sinks.traces]
type = "{type}"
url = "{url}"
"""


@dataclass
class Fleet:
    """Applications, workers and a judge that share a database."""

    folder: Path
    server: Server
    judge: FakeJudge
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, *arguments: object, **variables: str) -> subprocess.Popen[bytes]:
        """Start a Python process in the folder, with the settings and the judge."""
        outer = {name: value for name, value in os.environ.items() if not name.startswith(("GERMANE_", "OTEL_"))}
        settings = {f"GERMANE_{name.upper()}": str(value) for name, value in self.judge.settings().items()}
        with (self.folder / "germane.log").open("ab") as log:
            command = [sys.executable, *map(str, arguments)]
            environment = {**outer, **settings, **variables}
            return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=log, stderr=log)

    def start_worker(self) -> None:
        """Start a worker."""
        self.workers.append(self.start("-m", "germane", "worker", "--concurrency", 4))

    def kill_worker(self) -> None:
        """Kill the worker that has run for the longest time, and start another."""
        self.workers[0].kill()
        self.workers.pop(0).wait()
        self.start_worker()

    def stop_workers(self) -> None:
        """Stop all workers."""
        for worker in self.workers:
            worker.send_signal(signal.SIGTERM)
        while self.workers:
            self.workers.pop().wait(timeout=60)


def questions_by(model: str, answer: str) -> list[str]:
    """Return other questions than those of the first scores."""
    return [f"According to {model}, where is {answer.rpartition(' waits')[0]}?"] * 3


@contextmanager
def fleet_for(server: Server, folder: Path) -> Iterator[Fleet]:
    """Yield a fleet whose sink is the server, and end all its processes."""
    (folder / "germane.toml").write_text(SETTINGS.format(folder=folder, type=server.name, url=server.url))
    with FakeJudge(model="judge-1", latency=0.4, embedding_latency=0.0) as judge:
        fleet = Fleet(folder, server, judge)
        try:
            yield fleet
        finally:
            for worker in fleet.workers:
                worker.kill()
                worker.wait()
            server.kill()


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + WAIT_TIMEOUT
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {WAIT_TIMEOUT:.0f} s, {what}")
        time.sleep(0.5)


def stored_in(store: TrackingStore) -> list[Written]:
    """Return what the server should have: the newest score of each scorer, and all labels."""
    exchanges = {each.id: each for each in store.answers.list_exchanges(limit=EXCHANGES + 1)}
    newest: dict[tuple[str, str], Score] = {}
    for id_, scores in store.answers.get_scores(list(exchanges)).items():
        for score in sorted(scores, key=lambda each: each.scored_at or datetime.min.replace(tzinfo=UTC)):
            newest[id_, score.scorer] = score
    written = [
        Written(
            exchanges[id_].span_id, score.scorer, score.fingerprint, "LLM" if score.judge else "CODE", score.value,
            score.label, score.explanation,
        )
        for (id_, _), score in newest.items()
    ]  # fmt: skip
    for each in store.labels.list_feedback(limit=EXCHANGES):
        label, span_id = each.feedback, exchanges[each.exchange.id].span_id
        written.append(
            Written(span_id, "human_label", label.user or label.id, "HUMAN", label.score, None, label.comment)
        )
    return written


@dataclass
class Result:
    """What a server had at one moment, compared with the database."""

    step: str
    seconds: float
    expected: int
    exact: int
    missing: int
    repeated: int
    different: int
    """Spans whose value, label, explanation, kind or key is not the newest one."""
    given_up: int

    def __str__(self) -> str:
        """Return a line of the table."""
        numbers = (self.expected, self.exact, self.missing, self.repeated, self.different, self.given_up)
        return f"{self.step:20}{self.seconds:9.0f}" + "".join(f"{number:10,}" for number in numbers)

    @property
    def is_right(self) -> bool:
        """Whether everything was written exactly once."""
        return self.exact == self.expected and not (self.repeated or self.given_up)


def compare(step: str, fleet: Fleet, store: TrackingStore, started: float) -> Result:
    """Wait until everything has been scored and written, and compare the server with the database."""
    wait_until(lambda: not store.backlog.load_outstanding(), f"{step}: not everything is scored")
    wait_until(lambda: status(fleet)["waiting"] == 0, f"{step}: not everything is written")
    seconds = time.monotonic() - started
    expected = {(each.span_id, each.name): each for each in stored_in(store)}
    spans = {each.span_id: each.trace_id for each in store.answers.list_exchanges(limit=EXCHANGES)}
    found = list(fleet.server.read([(trace_id, span_id) for span_id, trace_id in spans.items()]))
    counts = Counter((each.span_id, each.name) for each in found)
    exact = sum(1 for each in set(found) if expected.get((each.span_id, each.name)) == each)
    return Result(
        step=step,
        seconds=seconds,
        expected=len(expected),
        exact=exact,
        missing=len(expected.keys() - counts.keys()),
        repeated=counts.total() - len(counts),
        different=len(counts) - exact,
        given_up=status(fleet)["undelivered"],
    )


def have_registered(store: TrackingStore, pids: set[int]) -> bool:
    """Return whether workers have registered. Before, answers would be rescored as the previous workers scored them."""
    return pids <= {worker.pid for worker in store.workers.list_workers()}


def status(fleet: Fleet) -> dict[str, int]:
    """Return the state of the sink."""
    command = [sys.executable, "-m", "germane", "sinks", "status", "--json"]
    output = subprocess.run(command, cwd=fleet.folder, check=True, capture_output=True, text=True).stdout
    sinks: list[dict[str, int]] = json.loads(output)["sinks"]
    return sinks[0]


def run(server: Server, folder: Path) -> Iterator[Result]:
    """Capture, score and rescore, through an outage and kills. Yield a comparison after each step."""
    with fleet_for(server, folder) as fleet, closing(TrackingStore(f"sqlite:///{folder}/germane.db")) as store:
        store.migrate()
        server.start()
        started = time.monotonic()
        fleet.start_worker()
        fleet.start_worker()
        # The spans of the second application arrive after many of its scores.
        applications = [
            fleet.start(APPLICATION, name, EXCHANGES // 2, delay, **server.otlp, OTEL_EXPORTER_OTLP_TIMEOUT="60")
            for name, delay in (("north", 0), ("south", 10))
        ]
        if any(application.wait() for application in applications):
            raise RuntimeError(f"an application failed; see {folder}/germane.log")
        wait_until(lambda: server.count_traces() == EXCHANGES, "the server does not have all spans")
        server.kill()
        time.sleep(OUTAGE / 3)
        fleet.kill_worker()
        time.sleep(OUTAGE * 2 / 3)
        server.start()
        waiting = status(fleet)["waiting"]
        wait_until(lambda: status(fleet)["waiting"] < waiting, "nothing is written after the outage")
        fleet.kill_worker()
        yield compare("scores", fleet, store, started)
        fleet.judge.latency = 0.0
        for step, model in (("rescore, same judge", "judge-1"), ("rescore, new judge", "judge-2")):
            fleet.stop_workers()
            fleet.judge.model = model
            fleet.judge.questions = partial(questions_by, model)
            fleet.start_worker()
            fleet.start_worker()
            wait_until(
                partial(have_registered, store, {worker.pid for worker in fleet.workers}), "the workers do not start"
            )
            started = time.monotonic()
            rescore = fleet.start("-m", "germane", "rescore", "--yes")
            if rescore.wait():
                raise RuntimeError(f"rescoring failed; see {folder}/germane.log")
            yield compare(step, fleet, store, started)


def main() -> int:
    """Run the scenario on each server, print a table, and return 1 if anything is missing, doubled or wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="*", metavar="SERVER", help="phoenix, mlflow; default: both")
    options = parser.parse_args()
    names = options.servers or list(SERVERS)
    if not is_isolated():
        for name in names:
            SERVERS[name].install()
        isolate()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # end the processes first
    results = []
    for name in names:
        folder = BUILD / "runs" / name  # remains, so that the logs can be read
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        server = SERVERS[name](folder)
        sys.stdout.write(f"{name} {server.version}\n{HEADER}\n")
        for result in run(server, folder):
            results.append(result)
            sys.stdout.write(f"{result}\n")
            sys.stdout.flush()
    return 0 if all(result.is_right for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
