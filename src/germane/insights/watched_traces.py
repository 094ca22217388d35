"""Watched and received traces: the number that was recognized, and the fixes for the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from germane.recognizers import RECOGNIZED, WITHOUT_EXCHANGE, UnreadableReason
from germane.storage import TrackingStore
from germane.trace_outline import UnreadableTrace

NOTABLE_SHARE: Final = 0.01
"""Minimum share of unreadable traces at which the overview mentions them."""
_UNKNOWN_FIX: Final = "upgrade germane, because this version does not know the reason"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableTraces:
    """The unreadable traces of one service and instrumentation scope with one reason."""

    service: str
    scope: str
    reason: str
    count: int
    samples: Sequence[UnreadableTrace] = ()
    """Some of the traces without their spans, newest first."""

    @property
    def meaning(self) -> str:
        """A clause, beginning with a lowercase letter, that describes the traces."""
        return describe_reason(self.reason)

    @property
    def fix(self) -> str:
        """A clause, beginning with a lowercase letter, that says how to fix the traces."""
        return fix_reason(self.reason, self.scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeTraces:
    """The traces of one service and instrumentation scope: seen = recognized + without an exchange + unreadable."""

    service: str
    scope: str
    recognized: int
    without_exchange: int
    """Number of traces that contain no exchange, such as health checks."""
    reasons: Sequence[UnreadableTraces]
    """Most common first."""

    @property
    def seen(self) -> int:
        """Total number of traces."""
        return self.recognized + self.without_exchange + self.unreadable

    @property
    def unreadable(self) -> int:
        """Number of traces that should contain an exchange, but could not be read."""
        return sum(traces.count for traces in self.reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedSummary:
    """The traces of all services and instrumentation scopes."""

    scopes: Sequence[ScopeTraces]
    """Sorted by service and scope."""

    @property
    def seen(self) -> int:
        """Total number of traces."""
        return sum(scope.seen for scope in self.scopes)

    @property
    def recognized(self) -> int:
        """Number of traces whose exchange was recognized."""
        return sum(scope.recognized for scope in self.scopes)

    @property
    def unreadable(self) -> int:
        """Number of traces that should contain an exchange, but could not be read."""
        return sum(scope.unreadable for scope in self.scopes)

    @property
    def reasons(self) -> Sequence[UnreadableTraces]:
        """The unreadable traces by service, scope and reason, most common first."""
        reasons = [traces for scope in self.scopes for traces in scope.reasons]
        return sorted(reasons, key=lambda traces: -traces.count)

    @property
    def is_notable(self) -> bool:
        """Whether a notable share of the traces is unreadable."""
        return self.unreadable > 0 and self.unreadable >= NOTABLE_SHARE * self.seen

    @property
    def headline(self) -> str:
        """The number of unreadable traces and their most common reason, or the number of recognized traces."""
        seen = f"{self.seen:,} {'trace' if self.seen == 1 else 'traces'}"
        if not self.unreadable:
            return f"{self.recognized:,} of {seen} {'was' if self.recognized == 1 else 'were'} recognized"
        by_meaning: dict[str, int] = {}
        for traces in self.reasons:
            by_meaning[traces.meaning] = by_meaning.get(traces.meaning, 0) + traces.count
        most_common = max(by_meaning, key=lambda meaning: by_meaning[meaning])
        link = ", mostly because " if len(by_meaning) > 1 else ": "
        return f"{self.unreadable:,} of {seen} could not be read{link}{most_common}"


def describe_reason(reason: str) -> str:
    """Return a clause, beginning with a lowercase letter, that describes traces with this reason."""
    known = _known_reason(reason)
    text = reason.replace("_", " ") if known is None else known.meaning
    return f"{text[:1].lower()}{text[1:]}"


def fix_reason(reason: str, scope: str) -> str:
    """Return a clause, beginning with a lowercase letter, that says how to fix a scope's traces with this reason."""
    known = _known_reason(reason)
    if known is None:
        return _UNKNOWN_FIX
    from germane.recognizers import fix_for  # with the conventions of all instrumentations, which are rarely needed

    return fix_for(known, scope)


def load_watched_traces(
    store: TrackingStore,
    *,
    since: datetime,
    until: datetime | None = None,
    service: str | None = None,
    with_samples: bool = False,
) -> WatchedSummary:
    """Load the number of traces watched or received in a window, in whole hours.

    The first hour contains ``since``. With ``with_samples``, load the sampled traces of each reason, too.
    """
    outcomes: dict[tuple[str, str], dict[str, int]] = {}
    for traces in store.exchanges.list_watched(since=since, until=until):
        if service is None or traces.service == service:
            outcomes.setdefault((traces.service, traces.scope), {})[traces.outcome] = traces.count
    samples: dict[tuple[str, str, str], list[UnreadableTrace]] = {}
    for trace in store.unreadable.list_traces() if with_samples else ():
        samples.setdefault((trace.service, trace.scope, trace.reason), []).append(trace)
    return WatchedSummary(scopes=[_summarize(*names, counts, samples) for names, counts in sorted(outcomes.items())])


def _summarize(
    service: str,
    scope: str,
    counts: Mapping[str, int],
    samples: Mapping[tuple[str, str, str], Sequence[UnreadableTrace]],
) -> ScopeTraces:
    unreadable = {
        reason: count for reason, count in counts.items() if reason != RECOGNIZED and reason not in WITHOUT_EXCHANGE
    }
    return ScopeTraces(
        service=service,
        scope=scope,
        recognized=counts.get(RECOGNIZED, 0),
        without_exchange=sum(counts.get(reason, 0) for reason in WITHOUT_EXCHANGE),
        reasons=[
            UnreadableTraces(
                service=service,
                scope=scope,
                reason=reason,
                count=count,
                samples=samples.get((service, scope, reason), ()),
            )
            for reason, count in sorted(unreadable.items(), key=lambda item: (-item[1], item[0]))
        ],
    )


def _known_reason(name: str) -> UnreadableReason | None:
    """Return the reason with a name, or None if this version of germane does not know it."""
    return next((reason for reason in UnreadableReason if reason.value == name), None)
