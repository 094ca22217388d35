"""Processes on one database, of which any may be killed at any moment."""

from __future__ import annotations

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

from accounts import held_by
from nursery import Nursery

from germane.storage import Store
from germane.testing import FakeJudge, Fault
from germane.testing.judge_request import Request

PATIENCE = 180.0
"""Seconds after which what should happen soon is taken not to happen."""
Role = Literal["worker", "capture"]


@dataclass(frozen=True)
class Kill:
    """One SIGKILL."""

    role: Role
    held: tuple[str, ...] = ()
    """The answers, each of one exchange, that the process had claimed and not finished."""
    asked: int = 0
    """How many of these the judge was being asked about."""


class Witness(FakeJudge):
    """A judge that knows what it is being asked about."""

    def __init__(self, *, latency: float = 0.3, embedding_latency: float = 0.02) -> None:
        self.asked: Counter[str] = Counter()
        self._counting = threading.Lock()
        super().__init__(latency=latency, embedding_latency=embedding_latency)

    @contextmanager
    def serving(self, request: Request) -> Iterator[Fault | None]:
        """Count a chat request in and out."""
        chats = request.path.endswith("/chat/completions")
        self._count_asked(request.answer, int(chats))
        try:
            with super().serving(request) as fault:
                yield fault
        finally:
            self._count_asked(request.answer, -int(chats))

    def _count_asked(self, answer: str, by: int) -> None:
        with self._counting:
            self.asked[answer] += by


@dataclass
class Member:
    """One process, and those that had its place before it."""

    role: Role
    number: int
    pid: int
    born: float = field(default_factory=time.monotonic)


@dataclass
class Fleet:
    """Workers, capturing applications, and a judge. Whatever happens, none of them outlives the ``with`` block."""

    url: str
    folder: Path
    workers: int = 4
    captures: int = 2
    concurrency: int = 4
    lease: float = 5.0
    """Seconds."""
    pause: float = 0.3
    """Seconds between two rounds of captures."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Further ones, by the names of their variables."""
    judge: Witness = field(default_factory=Witness)
    members: list[Member] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._store, self._nursery = Store(self.url), Nursery()

    def __enter__(self) -> Self:
        self._store.migrate()
        for role, count in (("worker", self.workers), ("capture", self.captures)):
            self.members += [Member(role, number, self._started(role, number)) for number in range(count)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._nursery.__exit__(kind, error, traceback)
        self._store.close()
        self.judge.close()

    def until_at_work(self) -> None:
        """Wait until something was captured by each application, and something scored."""
        self._until(lambda: all(self._printed(number) for number in range(self.captures)), "captures nothing")
        self._until(lambda: self._store.counts().rows, "scores nothing")

    def kill(self, member: Member) -> None:
        """Kill a process without warning, note what it held, and start another in its place."""
        self._nursery.kill(member.pid)
        asked = {answer for answer, count in self.judge.asked.copy().items() if count > 0}
        held = held_by(self.url, member.pid) if member.role == "worker" else ()
        self.kills.append(Kill(member.role, held, len(asked & set(held))))
        member.pid, member.born = self._started(member.role, member.number), time.monotonic()

    def drain(self) -> None:
        """End the applications at once and the workers by request; others score what is left meanwhile."""
        for member in self.members:
            if member.role == "capture":
                self._nursery.kill(member.pid)
        last = [self._started("worker", self.workers + number, "--until-empty") for number in range(2)]
        workers = [member.pid for member in self.members if member.role == "worker"]
        for pid in workers:
            os.kill(pid, signal.SIGTERM)
        self._all_end(workers, {0, -signal.SIGTERM})  # one that has just begun does not listen yet
        self._all_end(last, {0})

    def committed(self) -> set[str]:
        """Return the ids of exchanges that an application knew to be in the database."""
        return {line for number in range(self.captures) for line in self._printed(number)}

    def log(self, role: Role) -> str:
        """Return what the processes of a role have logged."""
        return "\n".join(path.read_text() for path in sorted(self.folder.glob(f"{role}-*.log")))

    def _printed(self, number: int) -> list[str]:
        path = self.folder / f"capture-{number}.out"
        return path.read_text().splitlines() if path.exists() else []

    def _started(self, role: Role, number: int, *more: str) -> int:
        arguments = {
            "worker": ["germane", "worker", "--concurrency", str(self.concurrency), *more],
            "capture": ["capturing", f"{number}", str(self.pause)],
        }[role]
        return self._nursery.start(arguments, self._environment(), self.folder / f"{role}-{number}")

    def _all_end(self, pids: list[int], well: set[int]) -> None:
        self._until(lambda: all(self._nursery.ended(pid) is not None for pid in pids), "has no end")
        if codes := {code for pid in pids if (code := self._nursery.ended(pid)) not in well}:
            raise RuntimeError(f"processes ended with {codes}:\n{self.log('worker')}")

    def _environment(self) -> dict[str, str]:
        foreign = ("GERMANE_", "OPENAI_", "OTEL_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        judge = {f"GERMANE_{name.upper()}": str(value) for name, value in self.judge.settings().items()}
        ours = {"DATABASE": self.url, "SERVICE": "post", "LEASE": str(self.lease), "TICK": "0.2"}
        scorers = {"GERMANE_SCORERS": "answer_relevancy"}
        return kept | judge | scorers | {f"GERMANE_{name}": value for name, value in (ours | {**self.settings}).items()}

    def _until(self, condition: Callable[[], object], otherwise: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise RuntimeError(f"the fleet {otherwise}:\n{self.log('worker')}\n{self.log('capture')}")
            time.sleep(0.02)


def failures(fleet: Fleet) -> Iterator[str]:
    """Yield lines of the logs that tell of an error nobody expected."""
    for role in ("worker", "capture"):
        yield from (line for line in fleet.log(role).splitlines() if "Traceback" in line or "Error" in line)
