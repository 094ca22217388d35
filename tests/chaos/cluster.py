"""A cluster: workers and capturing applications that share a database. Any process may be killed at any moment."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from audit import answers_held_by
from fork_server import ForkServer

from germane.storage import TrackingStore
from germane.testing import FakeJudge, Fault, JudgeRequest

WAIT_TIMEOUT = 180.0
"""The number of seconds after which waiting fails."""
Role = Literal["worker", "capture"]


@dataclass(frozen=True)
class Kill:
    """One SIGKILL."""

    role: Role
    held: tuple[str, ...] = ()
    """The answers, each from one exchange, whose tasks the process had claimed but not finished."""
    in_flight: int = 0
    """The number of these answers for which a judge request was in progress."""


class RecordingJudge(FakeJudge):
    """A judge that records the answers that it is judging."""

    def __init__(self, *, latency: float = 0.3, embedding_latency: float = 0.02) -> None:
        self.answers_in_flight: Counter[str] = Counter()
        self._in_flight_lock = threading.Lock()
        super().__init__(latency=latency, embedding_latency=embedding_latency)

    @contextmanager
    def track_request(self, request: JudgeRequest) -> Iterator[Fault | None]:
        """Count a chat request while it is in progress."""
        is_chat = int(request.path.endswith("/chat/completions"))
        self._count_answer(request.answer, is_chat)
        try:
            with super().track_request(request) as fault:
                yield fault
        finally:
            self._count_answer(request.answer, -is_chat)

    def _count_answer(self, answer: str, change: int) -> None:
        with self._in_flight_lock:
            self.answers_in_flight[answer] += change


@dataclass
class ClusterProcess:
    """One process, which is replaced when it is killed."""

    role: Role
    number: int
    pid: int
    started: float = field(default_factory=time.monotonic)


@dataclass
class Cluster:
    """Workers, capturing applications and a judge, all of which end with the ``with`` block."""

    url: str
    folder: Path
    workers: int = 4
    captures: int = 2
    concurrency: int = 4
    task_lease: float = 5.0
    """Seconds."""
    pause: float = 0.3
    """Seconds between two rounds of captures."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Additional settings, by environment variable name without the prefix."""
    judge: RecordingJudge = field(default_factory=RecordingJudge)
    processes: list[ClusterProcess] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._store, self._fork_server = TrackingStore(self.url), ForkServer()

    def __enter__(self) -> Self:
        self._store.migrate()
        for role, count in (("worker", self.workers), ("capture", self.captures)):
            self.processes += [ClusterProcess(role, number, self._start(role, number)) for number in range(count)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._fork_server.__exit__(kind, error, traceback)
        self._store.close()
        self.judge.close()

    def wait_until_busy(self) -> None:
        """Wait until each application has captured an exchange, and at least one exchange has been scored."""
        self._wait_until(lambda: all(self._printed(number) for number in range(self.captures)), "captures nothing")
        self._wait_until(lambda: self._store.answers.counts().scores, "scores nothing")

    def kill(self, process: ClusterProcess) -> None:
        """Kill a process, record the tasks that it held, and start another process in its place."""
        self._fork_server.kill(process.pid)
        in_flight = {answer for answer, count in self.judge.answers_in_flight.copy().items() if count > 0}
        held = answers_held_by(self.url, process.pid) if process.role == "worker" else ()
        self.kills.append(Kill(process.role, held, len(in_flight & set(held))))
        process.pid, process.started = self._start(process.role, process.number), time.monotonic()

    def drain(self) -> None:
        """Kill the applications and stop the workers gracefully, while two more workers score the remaining tasks."""
        for process in self.processes:
            if process.role == "capture":
                self._fork_server.kill(process.pid)
        last = [self._start("worker", self.workers + number, "--drain") for number in range(2)]
        workers = [process.pid for process in self.processes if process.role == "worker"]
        for pid in workers:
            os.kill(pid, signal.SIGTERM)
        self._wait_for_exit(
            workers, {0, -signal.SIGTERM}
        )  # a worker that has just started does not have a signal handler yet
        self._wait_for_exit(last, {0})

    def committed(self) -> set[str]:
        """Return the ids of the exchanges that an application has confirmed as stored."""
        return {line for number in range(self.captures) for line in self._printed(number)}

    def log(self, role: Role) -> str:
        """Return the log output of the processes with the given role."""
        return "\n".join(path.read_text() for path in sorted(self.folder.glob(f"{role}-*.log")))

    def _printed(self, number: int) -> list[str]:
        path = self.folder / f"capture-{number}.out"
        return path.read_text().splitlines() if path.exists() else []

    def _start(self, role: Role, number: int, *more: str) -> int:
        arguments = {
            "worker": ["germane", "worker", "--concurrency", str(self.concurrency), *more],
            "capture": ["capture_app", f"{number}", str(self.pause)],
        }[role]
        return self._fork_server.start(arguments, self._environment(), self.folder / f"{role}-{number}")

    def _wait_for_exit(self, pids: list[int], accepted: set[int]) -> None:
        self._wait_until(lambda: all(self._fork_server.exit_code(pid) is not None for pid in pids), "does not end")
        if codes := {code for pid in pids if (code := self._fork_server.exit_code(pid)) not in accepted}:
            raise RuntimeError(f"processes ended with {codes}:\n{self.log('worker')}")

    def _environment(self) -> dict[str, str]:
        foreign = ("GERMANE_", "OPENAI_", "OTEL_")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        settings = {
            **self.judge.settings(),
            # One request per exchange, so that requests and scores can be compared.
            "scorer_options": json.dumps({"answer_relevancy": {"label_from": "answer"}}),
            "database": self.url,
            "service": "post",
            "scorers": "answer_relevancy",
            "task_lease": self.task_lease,
            "poll_interval": 0.2,
            **self.settings,
        }
        return inherited | {f"GERMANE_{name.upper()}": str(value) for name, value in settings.items()}

    def _wait_until(self, condition: Callable[[], object], problem: str) -> None:
        deadline = time.monotonic() + WAIT_TIMEOUT
        while not condition():
            if time.monotonic() > deadline:
                raise RuntimeError(f"the cluster {problem}:\n{self.log('worker')}\n{self.log('capture')}")
            time.sleep(0.02)


def log_errors(cluster: Cluster) -> Iterator[str]:
    """Yield log lines that report an unexpected error."""
    for role in ("worker", "capture"):
        yield from (line for line in cluster.log(role).splitlines() if "Traceback" in line or "Error" in line)
