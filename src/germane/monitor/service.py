"""The background of one process."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime

from germane.alerting import rules
from germane.alerting.channels import Channel, Log, build
from germane.monitor.jobs.retention import Rhythm
from germane.monitor.loop.backoff import Backoff
from germane.monitor.loop.scheduler import Scheduler
from germane.monitor.sampling import eligibility
from germane.monitor.supervisor import Attach, Background, Parts, Quiet, Status
from germane.scorers import Scorer
from germane.settings import Settings
from germane.storage import Store
from germane.tracer import Waiting


async def _nothing() -> None:
    """Close nothing."""


def _now() -> datetime:
    return datetime.now(UTC)


class Monitor:
    """Samples, scores and watches in the background, in one daemon thread.

    Args:
        store: where exchanges wait and scores go.
        scorers: which run; with none only the rules are watched.
        attach: called with an exchange and its scores, once they are saved.
        suppressed: a context in which nothing is traced or captured; all but ``attach`` is done in it.
        channels: where alerts go beside the log and the channels of the settings, by name.
        close: closes the scorers' clients, on their own event loop, when the monitor stops.
        give_up: called when it begins to stop: judge requests that have not had their turn are not made.
        spent_until: says until when the budget is spent, for :meth:`status`.
        backoff: waits between tries of a task, and of a judge that refused.
        rhythm: when old text, old exchanges and the like are cleared away.

    Raises:
        SettingsError: a predicate cannot be imported.
    """

    def __init__(
        self,
        store: Store,
        scorers: Sequence[Scorer],
        settings: Settings,
        *,
        attach: Attach,
        suppressed: Quiet = contextlib.nullcontext,
        channels: Mapping[str, Channel] | None = None,
        clock: Callable[[], datetime] = _now,
        close: Callable[[], Awaitable[None]] = _nothing,
        give_up: Callable[[], object] = lambda: None,
        spent_until: Callable[[], datetime | None] = lambda: None,
        backoff: Backoff | None = None,
        rhythm: Rhythm | None = None,
    ) -> None:
        rules.tell_unfed(settings.rules, [scorer.name for scorer in scorers])
        eligibility.tell_unused(settings.filters, [scorer.name for scorer in scorers])
        parts = Parts(
            store=store,
            scorers=tuple(scorers),
            settings=settings,
            fitness=eligibility.Fitness(scorers, filters=settings.filters, always=settings.always),
            attach=attach,
            suppressed=suppressed,
            channels={"log": Log(), **build(settings), **(channels or {})},
            clock=clock,
            close=close,
            give_up=give_up,
            spent_until=spent_until,
            backoff=backoff or Backoff(),
            rhythm=rhythm or Rhythm(),
        )
        self._scheduler = Scheduler(lambda: Background(parts), tick=settings.tick)

    def start(self) -> None:
        """Start the thread, unless it runs. A forked child has none until it is started there."""
        self._scheduler.start()

    def stop(self, timeout: float = 10.0) -> bool:
        """Take no more work, finish or hand back what is held, close the clients and end the thread.

        Returns:
            Whether all of that was done within ``timeout`` seconds. What was cut short is handed back as well, or its
            lease runs out: another process or a later start scores it.
        """
        return self._scheduler.stop(timeout)

    @property
    def waiting(self) -> Waiting | None:
        """What waits in the database, where this process reads it for gauges; may be read from any thread."""
        work = self._scheduler.work
        return work.waiting if isinstance(work, Background) else None

    def status(self) -> Status:
        """Return how the background is doing; may be called from any thread."""
        work = self._scheduler.work
        return work.status() if isinstance(work, Background) else Status(running=self._scheduler.running)
