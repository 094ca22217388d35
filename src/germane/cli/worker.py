"""A process that does nothing but score."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any, Literal

import click
from starlette.applications import Starlette

from germane import runtime
from germane.cli.core.output import harmless
from germane.cli.core.params import Address
from germane.cli.core.signals import Ending
from germane.dashboard.app import create_metrics_app
from germane.dashboard.metrics import exposition_of
from germane.dashboard.server import Server
from germane.dashboard.web.hosts import is_loopback
from germane.errors import GermaneError, SettingsError, StorageError
from germane.runtime import Runtime
from germane.sanitize import counted
from germane.settings import Settings, load
from germane.storage import OpenTasks, Outstanding
from germane.tracer import expose


@contextmanager
def showing(settings: Settings, address: Address, say: Callable[[str], None]) -> Iterator[None]:
    """Show gauges of the database and what this process measures, until the block ends. To begin before the work does.

    Raises:
        CannotListen: the address is taken, or is none of this machine.
        UsageError: others could read it there, and there is no token.
    """
    if settings.token is None and not is_loopback(address.host):
        raise click.UsageError(
            f"on {address.host} others can read what is measured: set GERMANE_TOKEN, to 16 characters or more"
        )
    app = create_metrics_app(settings)
    server = Server(app, host=address.host, port=address.port)
    with exposing(app), server.running():
        say(f"metrics are shown at {server.address}/metrics")
        yield


@contextmanager
def exposing(app: Starlette) -> Iterator[None]:
    """Have an application show at ``/metrics`` what this process measures, too. To begin before it measures."""
    expose(exposition_of(app).registry)
    try:
        yield
    finally:
        expose(None)


LOOK = 0.5
"""Seconds between two looks at what is left, at most."""
Duration = Literal["once", "until empty", "for ever"]


class Unfinished(GermaneError):
    """The one round that was asked for did not go well."""


class Worker:
    """Scores with the settings of this process, and those given, until it is told to stop or there is no more to do.

    Args:
        given: Settings that win over all others; modules in ``imports`` come after those of the settings.
        ending: Says when to stop.
        grace: Seconds that a stop may take.
        metrics: Where to show what is measured; None for nowhere.

    Raises:
        SettingsError: a setting is wrong, or there is nothing to score with.
    """

    def __init__(
        self, given: Mapping[str, Any], ending: Ending, *, grace: float, metrics: Address | None = None
    ) -> None:
        self._settings = _settings(given)
        self._ending = ending
        self._grace = grace
        self._metrics = metrics
        self._runtime = Runtime(self._settings, redact=None, on_alert=None, tracer_provider=None)
        workbench, monitor = self._runtime.workbench, self._runtime.monitor
        if workbench is None or monitor is None or not workbench.scorers:
            raise SettingsError(self._runtime.problem or "nothing will be scored")
        self._workbench, self._monitor = workbench, monitor
        self._said: set[str] = set()

    def run(self, duration: Duration) -> int:
        """Work; return the exit code.

        Raises:
            StorageError: the database is away or not migrated, and this is not to go on for ever.
            Unfinished: the one round did not go well.
            CannotListen: metrics cannot be shown where they were asked for.
            UsageError: others could read them there, and there is no token.
        """
        with nullcontext() if self._metrics is None else self._showing(self._metrics):
            return self._run(duration)

    def _showing(self, address: Address) -> AbstractContextManager[None]:

        return showing(self._settings, address, _say)

    def _run(self, duration: Duration) -> int:
        with closing(self._runtime.store):  # it opens again for what follows
            if not self._database_is_ready(patient=duration == "for ever"):
                return self._ending.code
        _say(f"germane worker {self._described()}")
        runtime.install(self._runtime)
        try:
            self._wait(duration)
        finally:
            finished = runtime.stop(self._grace)
        if not finished:
            _say(f"not all was finished in time; others take it up within {self._settings.lease:g} s")
        return self._ending.code if finished else 1

    def _database_is_ready(self, *, patient: bool) -> bool:
        """Return whether it is; wait for it if need be, and False when told to stop meanwhile."""
        while not self._ending.told:
            try:
                runtime.make_ready(self._runtime.store, self._settings)
            except StorageError as error:
                if not patient:
                    raise
                self._say_once(f"waiting for the database: {error}")
            else:
                return True
            self._ending.wait(self._settings.tick)
        return False

    def _described(self) -> str:
        workbench, settings = self._workbench, self._settings
        names = ", ".join(scorer.name for scorer in workbench.scorers)
        models = [part.model for part in (workbench.judge, workbench.embedder) if part is not None]
        by = f" with {' and '.join(models)}" if models else ""
        return f"scores {names}{by}, {settings.concurrency} requests at a time, in {self._runtime.store.name}"

    def _wait(self, duration: Duration) -> None:
        if duration == "for ever":
            self._ending.wait()
        elif duration == "once":
            self._wait_for_a_round()
        else:
            self._wait_until_empty()

    def _wait_for_a_round(self) -> None:
        began, was_over = datetime.now(UTC), False
        for left in self._looks():
            over = self._had_its_round(left, began)
            if over and was_over:  # seen once only, it may have claimed tasks and not begun with them
                return
            was_over = over

    def _wait_until_empty(self) -> None:
        before = ""
        for left in self._looks():
            if not left:
                return
            waits = self._waits_for(left)
            if waits and waits == before:  # it lasts
                self._say_once(waits, about=_without_numbers(waits))
            before = waits

    def _looks(self) -> Iterator[Outstanding]:
        """Look again and again at what is left, until told to stop."""
        while not self._ending.wait(min(LOOK, self._settings.tick)):
            yield self._runtime.store.outstanding()

    def _had_its_round(self, left: Outstanding, began: datetime) -> bool:
        """Whether all jobs ran once, and of what was ready nothing is left that can be scored now.

        Raises:
            Unfinished: a job failed.
        """
        status = self._monitor.status()
        jobs = [status.jobs[name] for name in ("sample", "watch")]
        if problem := next((job.problem for job in status.jobs.values() if job.problem), None):
            raise Unfinished(problem)
        if any(job.last_run is None or job.last_run < began for job in jobs):
            return False
        ready = sum(tasks.ready for tasks in self._own(left))
        return not (status.in_flight or status.unsaved) and (not ready or status.judge_problem is not None)

    def _waits_for(self, left: Outstanding) -> str:
        """Say what keeps it from ending, when it is nothing of its own doing; else nothing."""
        status, own = self._monitor.status(), self._own(left)
        if status.in_flight or status.unsaved or (sum(tasks.ready for tasks in own) and not status.judge_problem):
            return ""
        others = sum(tasks.ready + tasks.postponed for tasks in left.tasks if tasks not in own)
        counts = {
            # Before its first round they are its own to decide on.
            ("exchange", "that nobody has decided on"): left.undecided if status.jobs["sample"].last_run else 0,
            ("task", "that a budget may pick at the end of its interval"): sum(
                tasks.candidates for tasks in left.tasks
            ),
            ("task", "of scorers that this worker does not have"): others,
            ("task", "to be tried again later"): sum(tasks.postponed for tasks in own),
            ("task", "that others are at work on"): sum(tasks.running for tasks in left.tasks),
            ("task", f"of a judge that is left alone ({status.judge_problem})"): sum(tasks.ready for tasks in own),
        }
        told = ", ".join(f"{counted(count, noun)} {which}" for (noun, which), count in counts.items() if count)
        return f"waiting for {told}" if told else ""

    def _own(self, left: Outstanding) -> Sequence[OpenTasks]:
        """Return what this process can score."""
        return left.of([(scorer.name, scorer.fingerprint) for scorer in self._workbench.scorers])

    def _say_once(self, line: str, about: str | None = None) -> None:
        about = about or line
        if about not in self._said:
            self._said.add(about)
            _say(line)


def _settings(given: Mapping[str, Any]) -> Settings:
    settings = load(**given)
    if "imports" not in given:
        return settings
    configured = load(**{name: value for name, value in given.items() if name != "imports"}).imports
    return settings.model_copy(update={"imports": tuple(dict.fromkeys([*configured, *settings.imports]))})


def _without_numbers(line: str) -> str:
    """Return what is said of counts, whichever they are: one task is no news after two tasks."""
    return re.sub(r"\d+|(?<=task)s\b|(?<=exchange)s\b", "", line)


def _say(line: str) -> None:
    click.echo(harmless(line, 1000), err=True)
