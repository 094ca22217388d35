"""Pulling of past traces from a trace backend, which are recognized, stored and counted like received ones."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final, NamedTuple

from germane.errors import ContentRefused, StorageError
from germane.exchange import Exchange
from germane.receiver.exchanges import ExchangeBuilder
from germane.receiver.finishing import TraceCounts, uncaptured
from germane.receiver.requests import JSON, InvalidRequest, parse_request
from germane.receiver.sources import PullError, TraceSource, as_request
from germane.receiver.spans import Waits, read_request
from germane.storage import MAX_TRACE_SPANS, ReceivedItem, ReceivedTrace, TraceOutcome, TrackingStore, new_worker_id

TRACES_PER_REQUEST: Final = 50
"""Number of traces whose spans are fetched, and stored in one transaction."""
LEASE: Final = timedelta(seconds=10)
SAMPLE_SIZE: Final = 20
"""Number of exchanges from which the cost of scoring is estimated."""


class PullState(NamedTuple):
    """The progress of a pull, which is saved in each transaction. Times are in seconds since 1970."""

    since: float
    until: float
    counted: tuple[float, float] = (0.0, 0.0)
    """The window of earlier pulls, in which traces without an exchange are counted already."""
    token: str | None = None
    """The token of the current page; None for the first."""
    done: int = 0
    """Number of traces of the page that are stored or counted."""
    is_finished: bool = False


@dataclass(slots=True)
class TracePull:
    """Pulls the traces of a source, and counts them."""

    store: TrackingStore
    source: TraceSource
    builder: ExchangeBuilder
    """Recognizes the exchanges. It must not limit their rate."""
    service: str
    """The service of spans that come without one."""
    log: Callable[[str], object]
    """Called with each line about the progress."""
    is_dry: bool = False
    """Whether to write nothing."""
    counts: TraceCounts = field(default_factory=TraceCounts)
    stored_before: int = 0
    """Number of exchanges that were stored before, by a pull or otherwise."""
    rejected: int = 0
    """Number of invalid spans."""
    sample: list[Exchange] = field(default_factory=list)
    _owner: str = field(default_factory=new_worker_id)

    @property
    def lease(self) -> str:
        """The name of the lease of this project."""
        project = f"{self.source.url}\n{self.source.project}"
        return f"pull:{self.source.name}:{sha256(project.encode()).hexdigest()[:16]}"

    def run(self, since: datetime) -> None:
        """Pull the traces since a time. An interrupted pull that began at the same time or earlier is continued first.

        Raises:
            PullError: The source fails, or another process pulls from it.
        """
        first, state = since.timestamp(), None if self.is_dry else self._acquire()
        try:
            if state is not None and not state.is_finished and state.since <= first:
                self.log(f"continuing the pull of traces until {_moment(state.until):%Y-%m-%d %H:%M} UTC")
                state = self._pull(state)
                first = state.until
            until = datetime.now(UTC).timestamp()
            self._pull(PullState(first, until) if state is None else PullState(first, until, state.counted))
        finally:
            if not self.is_dry:
                with suppress(StorageError):  # the lease expires
                    self._renew(timedelta())

    def _acquire(self) -> PullState | None:
        """Acquire the lease, once that of a killed process has expired, and return the saved state."""
        deadline = time.monotonic() + 2 * LEASE.total_seconds()
        while not self._renew():
            if time.monotonic() > deadline:
                raise PullError(f"another process is pulling from this project of {self.source.name}")
            time.sleep(0.2)
        text = self.store.pool.load_cursor(self.lease)
        return PullState(**json.loads(text)) if text else None

    def _renew(self, ttl: timedelta = LEASE) -> bool:
        return self.store.workers.acquire_lease(self.lease, self._owner, ttl=ttl)

    def _pull(self, state: PullState) -> PullState:
        while True:
            with self._expecting():
                ids, token = self.source.list_traces(_moment(state.since), _moment(state.until), state.token)
            while chunk := ids[state.done : state.done + TRACES_PER_REQUEST]:
                with self._expecting():
                    outcomes = self._recognize(chunk)
                state = state._replace(done=state.done + len(chunk))
                self._save(self._count(outcomes, state.counted), state)
            if not token:
                first, end = state.counted
                is_joined = first <= state.until and state.since <= end
                window = (min(first, state.since), max(end, state.until)) if is_joined else (state.since, state.until)
                self._save([], state := state._replace(is_finished=True, counted=window))
                return state
            if token == state.token:
                raise PullError(f"{self.source.name} repeats a page")
            self.log(f"{self.counts.seen:,} traces read")
            state = state._replace(token=token, done=0)

    @contextmanager
    def _expecting(self) -> Iterator[None]:
        """Raise PullError if a response lacks a field, or has one of another type."""
        try:
            yield
        except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise PullError(f"{self.source.name} sent an unexpected response ({type(error).__name__})") from None

    def _recognize(self, trace_ids: Sequence[str]) -> list[TraceOutcome]:
        """Return the outcomes of traces."""
        traces, dropped = dict[str, dict[str, ReceivedItem]](), Counter[str]()
        for spans, service in self.source.fetch_spans(trace_ids):
            body = json.dumps(as_request(spans, service or self.service)).encode()
            try:
                request, invalid = parse_request("traces", body, JSON)
            except InvalidRequest:  # no span is valid
                self.rejected += len(spans)
                continue
            batch = read_request(request, Waits(), keeps_all=True)
            self.rejected += invalid + batch.rejected
            for item in batch.items:
                items = traces.setdefault(item.trace_id, {})
                if len(items) < MAX_TRACE_SPANS:
                    items[item.key] = item
                else:
                    dropped[item.trace_id] += 1
        found = (ReceivedTrace(id_, tuple(items.values()), len(items), dropped[id_]) for id_, items in traces.items())
        return [part for trace in found for part in self.builder.build(trace).parts]

    def _count(self, parts: Sequence[TraceOutcome], counted: tuple[float, float]) -> list[TraceOutcome]:
        """Count outcomes, and return those that were not stored or counted before."""
        stored = self.store.received.find_stored([part.result for part in parts if isinstance(part.result, Exchange)])
        new = []
        for part in parts:
            self.counts.add(part)
            if isinstance(part.result, Exchange):
                is_known = (part.result.trace_id, part.result.span_id) in stored
                self.stored_before += is_known
                self.sample += [part.result] if len(self.sample) < SAMPLE_SIZE and not is_known else []
            else:
                is_known = counted[0] <= min(item.started for item in part.trace.items) < counted[1]
            new += [] if is_known else [part]
        return new

    def _save(self, parts: Sequence[TraceOutcome], state: PullState) -> None:
        """Write outcomes and the state. A row that the database rejects does not block the others."""
        if self.is_dry:
            return
        cursor = json.dumps(state._asdict())
        try:
            is_held = self._renew() and self.store.received.add(parts, self.lease, self._owner, cursor)
        except ContentRefused:
            self.store.exchanges.check_accepts_rows()
            if len(parts) > 1:
                for part in parts:
                    self._save([part], state)
            else:
                self._save([uncaptured(part) for part in parts], state)
            return
        if not is_held:
            raise PullError(f"another process has begun to pull from this project of {self.source.name}")


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
