"""The scoring process that ``germane worker`` and ``germane serve --with-worker`` run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import click
from starlette.applications import Starlette

from germane import dashboard, sanitize
from germane.cli.core.absent import describe_absence
from germane.cli.core.output import log_line
from germane.cli.core.params import ListenAddress
from germane.cli.core.signals import ShutdownSignal
from germane.cli.core.store import wait_for_database
from germane.dashboard import (
    create_metrics_app,
    is_loopback,
    is_prometheus_installed,
    missing_extra,
)
from germane.errors import GermaneError, SettingsError
from germane.process import Runtime, install_runtime, stop_runtime
from germane.settings import Settings, load_settings
from germane.storage import OutstandingWork
from germane.tracer import expose_registry
from germane.web_server import WebServer

if TYPE_CHECKING:
    from germane.receiver import ReceiverOptions

MAX_POLL_INTERVAL: Final = 0.5
"""Maximum interval between backlog checks, in seconds."""
RunMode = Literal["once", "drain", "forever"]


class RunFailed(GermaneError):
    """A job failed during ``germane worker --once``."""


@contextmanager
def serve_metrics(settings: Settings, address: ListenAddress, log: Callable[[str], None]) -> Iterator[None]:
    """Serve the metrics of the database and of this process until the block ends. Enter the block before work starts.

    Raises:
        ListenError: The address is in use, or does not belong to this machine.
        UsageError: The address is reachable from other machines but no token is set, or an extra is not installed.
    """
    if not is_prometheus_installed():
        raise click.UsageError(missing_extra())
    if settings.dashboard_token is None and not is_loopback(address.host):
        raise click.UsageError(
            f"metrics on {address.host} are readable from other machines; set GERMANE_DASHBOARD_TOKEN to a token of at "
            "least 16 characters"
        )
    app = create_metrics_app(settings)
    server = WebServer(app, host=address.host, port=address.port)
    with include_process_metrics(app), server.running():
        log(f"serving metrics on {server.address}/metrics")
        yield


@contextmanager
def include_process_metrics(app: Starlette) -> Iterator[None]:
    """Include this process's metrics in an application's ``/metrics`` until the block ends.

    Enter the block before work starts.
    """
    if not is_prometheus_installed():
        yield
        return
    expose_registry(dashboard.metrics_exposition(app).registry)
    try:
        yield
    finally:
        expose_registry(None)


class Worker:
    """Scores until a shutdown signal arrives, or until the backlog is empty.

    Args:
        overrides: Settings that override all others. Modules in ``imports`` are added to the configured ones.
        shutdown: The source of shutdown signals.
        shutdown_timeout: Maximum duration of a graceful shutdown, in seconds.
        metrics_address: Address to serve metrics on, or None to serve no metrics.
        otlp: Options of the receiver, or None to receive nothing.

    Raises:
        SettingsError: A setting is invalid, or no scorer is configured.
    """

    def __init__(
        self,
        overrides: Mapping[str, Any],
        shutdown: ShutdownSignal,
        *,
        shutdown_timeout: float,
        metrics_address: ListenAddress | None = None,
        otlp: ReceiverOptions | None = None,
    ) -> None:
        self._settings = load_settings(**overrides)
        if "imports" in overrides:
            configured = load_settings(
                **{name: value for name, value in overrides.items() if name != "imports"}
            ).imports
            imports = tuple(dict.fromkeys([*configured, *self._settings.imports]))
            self._settings = self._settings.model_copy(update={"imports": imports})
        self._shutdown = shutdown
        self._shutdown_timeout = shutdown_timeout
        self._metrics_address = metrics_address
        self._otlp = otlp
        self._runtime = Runtime(self._settings, redact=None, on_alert=None, tracer_provider=None)
        scorer_set, monitor = self._runtime.scorer_set, self._runtime.monitor
        if scorer_set is None or monitor is None or not scorer_set.scorers:
            raise SettingsError(self._runtime.scoring_problem or "no scorer is configured")
        self._scorer_set, self._monitor = scorer_set, monitor

    def run(self, mode: RunMode) -> int:
        """Run the worker in the given mode, and return the exit code.

        Raises:
            StorageError: The database is unreachable or not migrated, and the mode is not ``forever``.
            RunFailed: A job failed, and the mode is ``once``.
            ListenError: Metrics cannot be served on ``metrics_address``, or OTLP cannot be received.
            UsageError: Metrics would be readable from other machines but no token is set, or an extra is not installed.
        """
        receiver = None
        if self._otlp is not None:
            from germane.receiver import Receiver

            names = [scorer.name for scorer in self._scorer_set.scorers]
            receiver = Receiver(self._runtime.store, self._settings, self._otlp, scorers=names)
        wait_for_tables = partial(
            wait_for_database, self._runtime.store, self._settings, self._shutdown, retry=mode == "forever"
        )
        with ExitStack() as serving, ExitStack() as receiving:
            if self._metrics_address is not None:
                serving.enter_context(serve_metrics(self._settings, self._metrics_address, log_line))
            with closing(self._runtime.store) as store:  # reopened when scoring starts
                if store.is_absent and store.path is not None:
                    log_line(str(describe_absence(store.path)))
                if receiver is None:
                    wait_for_tables()
                else:
                    receiving.enter_context(receiver.running(log_line, wait_for_tables=wait_for_tables))
                if self._shutdown.received:
                    receiving.close()  # before the store, which the receiver still writes to while it stops
                    return self._shutdown.exit_code
            log_line(f"germane worker: {self._describe()}")
            install_runtime(self._runtime)
            try:
                # The receiver stops first: it still stores exchanges while it stops.
                with receiving:
                    if mode == "forever":
                        self._shutdown.wait()
                    elif mode == "once":
                        self._run_once()
                    else:
                        self._drain()
            finally:
                finished = stop_runtime(self._shutdown_timeout)
            if not finished:
                log_line(
                    f"shutdown timed out after {self._shutdown_timeout:g} s; other workers claim tasks that were not "
                    f"released within {self._settings.task_lease:g} s"
                )
            return self._shutdown.exit_code if finished else 1

    def _describe(self) -> str:
        scorers = ", ".join(scorer.name for scorer in self._scorer_set.scorers)
        models = [part.model for part in (self._scorer_set.judge, self._scorer_set.embedder) if part is not None]
        with_models = f" with {' and '.join(models)}" if models else ""
        requests = f"{self._settings.concurrency} concurrent requests"
        return f"scorers {scorers}{with_models}, {requests}, database {self._runtime.store.name}"

    def _poll_backlog(self) -> Iterator[OutstandingWork]:
        """Yield the backlog periodically until a shutdown signal arrives."""
        while not self._shutdown.wait(min(MAX_POLL_INTERVAL, self._settings.poll_interval)):
            yield self._runtime.store.backlog.load_outstanding()

    def _run_once(self) -> None:
        """Run each periodic job once, and process ready tasks until none are left or the judge is unavailable."""
        started_at, was_done = datetime.now(UTC), False
        for backlog in self._poll_backlog():
            status = self._monitor.status()
            if problem := next((job.problem for job in status.jobs.values() if job.problem), None):
                raise RunFailed(problem)
            jobs = [status.jobs[name] for name in ("sample", "evaluate")]
            have_run = all(job.last_run is not None and job.last_run >= started_at for job in jobs)
            ready = sum(tasks.ready for tasks in backlog.for_scorers(self._fingerprints))
            is_idle = not (status.in_flight or status.unsaved) and (not ready or status.judge_problem is not None)
            is_done = have_run and is_idle
            if is_done and was_done:  # a single check may fall between claiming tasks and starting them
                return
            was_done = is_done

    def _drain(self) -> None:
        """Run until the backlog is empty. If it stops shrinking, log the reason."""
        previous, logged = "", set[str]()
        for backlog in self._poll_backlog():
            if not backlog:
                return
            reason = self._describe_wait(backlog)
            if reason and reason == previous and strip_counts(reason) not in logged:
                logged.add(strip_counts(reason))
                log_line(reason)
            previous = reason

    def _describe_wait(self, backlog: OutstandingWork) -> str:
        """Describe why the backlog is not shrinking. Return an empty string while this process makes progress."""
        status, own = self._monitor.status(), backlog.for_scorers(self._fingerprints)
        if status.in_flight or status.unsaved or (sum(tasks.ready for tasks in own) and not status.judge_problem):
            return ""
        others = sum(tasks.ready + tasks.postponed for tasks in backlog.tasks if tasks not in own)
        counts = {
            # Before its first sampling run, this process is about to sample the exchanges itself.
            ("exchange", "to be sampled"): backlog.undecided if status.jobs["sample"].last_run else 0,
            ("candidate", "to be selected within the budget at the end of the interval"): sum(
                tasks.candidates for tasks in backlog.tasks
            ),
            ("task", "for scorers that this worker does not run"): others,
            ("task", "to be retried later"): sum(tasks.postponed for tasks in own),
            ("task", "in progress in other processes"): sum(tasks.running for tasks in backlog.tasks),
            ("task", f"blocked by an unavailable judge ({status.judge_problem})"): sum(tasks.ready for tasks in own),
        }
        parts = [f"{sanitize.count_noun(count, noun)} {what}" for (noun, what), count in counts.items() if count]
        return f"waiting for {', '.join(parts)}" if parts else ""

    @property
    def _fingerprints(self) -> list[tuple[str, str]]:
        return [(scorer.name, scorer.fingerprint) for scorer in self._scorer_set.scorers]


def strip_counts(line: str) -> str:
    """Remove counts and plural endings, so that lines that differ only in these compare equal."""
    return re.sub(r"\d+|(?<=task)s\b|(?<=exchange)s\b|(?<=candidate)s\b", "", line)
