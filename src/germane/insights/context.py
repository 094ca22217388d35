"""Inputs of all read models: the database, the settings, and the selected window, scorer and service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol, TypeVar
from urllib.parse import urlencode

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import Bucket, TrackingStore

_Parameters = ParamSpec("_Parameters")
_ReadModel = TypeVar("_ReadModel")

RELEVANCY: Final = "answer_relevancy"
SIMILARITY: Final = "question_answer_similarity"
FAITHFULNESS: Final = "faithfulness"
WINDOWS: Final[Mapping[str, timedelta]] = {
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "90d": timedelta(days=90),
}
"""Windows that can be selected on pages, by their name in the URL."""
DEFAULT_WINDOW: Final = "7d"
MAX_CHART_POINTS: Final = 40
MIN_CHART_POINTS: Final = 4
"""Minimum number of points in a chart, even if each has few scores."""
SCORES_PER_POINT: Final = 30
"""Target for the mean number of scores per point, so that most points have at least 20 although traffic varies."""
BUCKETS: Final[Mapping[str, timedelta]] = {
    "1h": timedelta(hours=1),
    "3h": timedelta(hours=3),
    "6h": timedelta(hours=6),
    "12h": timedelta(hours=12),
    "1d": timedelta(days=1),
    "3d": timedelta(days=3),
    "7d": timedelta(days=7),
}
"""Bucket lengths for charts, by their name in the URL: whole hours and days, because these can use rollups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InsightContext:
    """The database, the settings, and visitors' permissions."""

    store: TrackingStore
    settings: Settings
    now: Callable[[], datetime]
    read_only: bool = False
    """Whether pages reject all changes."""
    refresh_interval: timedelta = timedelta(seconds=30)
    """Time between updates of the live parts of an open page."""


def load_buckets(
    store: TrackingStore,
    view: ViewParams,
    *,
    scorer: str,
    service: str | None,
    route: str | None,
    bucket: timedelta | None = None,
    **more: Any,
) -> list[Bucket]:
    """Load the scores in the view's window over time. The bucket length defaults to the view's.

    ``more`` are other arguments of :meth:`~germane.storage.TrendReader.over_time`.
    """
    return store.trends.over_time(
        scorer=scorer,
        service=service,
        route=route,
        bucket=bucket or view.bucket,
        since=view.since,
        until=view.until,
        timezone=view.zone or UTC,
        histograms=False,
        **more,
    )


def from_one_snapshot(
    load: Callable[Concatenate[InsightContext, _Parameters], _ReadModel],
) -> Callable[Concatenate[InsightContext, _Parameters], _ReadModel]:
    """Let a function that loads a read model see one state of the database, so that its numbers agree."""

    @wraps(load)
    def load_in_transaction(
        context: InsightContext, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs
    ) -> _ReadModel:
        with context.store.snapshot():
            return load(context, *args, **kwargs)

    return load_in_transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewParams:
    """The selection in a page's URL. The window contains exchanges with ``since <= started_at < until``."""

    window: str
    """A key of ``WINDOWS``, or empty for a custom window."""
    since: datetime
    until: datetime
    scorer: str | None = None
    service: str | None = None
    zone: tzinfo | None = None
    """The visitor's time zone, or the time zone in the settings. None means the time zone of this machine."""
    query: Mapping[str, str] = field(default_factory=dict)
    """The URL's query parameters."""
    chosen_bucket: timedelta | None = None
    """The bucket length that the visitor has chosen, if any."""
    max_points: int = MAX_CHART_POINTS
    """Maximum number of points in a chart, unless the visitor has chosen a bucket length."""

    @property
    def bucket(self) -> timedelta:
        """Length of the bucket that each point of a chart covers. Charts with few scores have longer buckets."""
        if self.chosen_bucket is not None:
            return self.chosen_bucket
        length, widths = self.until - self.since, list(BUCKETS.values())
        return next((width for width in widths if length <= width * self.max_points), widths[-1])

    def bucket_for(self, n: int, period: timedelta) -> timedelta:
        """Return a bucket length at which most points have enough scores for a mean.

        ``n`` is the number of scores in the period; 0 if unknown.
        """
        if self.chosen_bucket is not None or not n:
            return self.bucket
        longest = max(self.bucket, (self.until - self.since) / MIN_CHART_POINTS)
        widths = [width for width in BUCKETS.values() if self.bucket <= width <= longest]
        return next((width for width in widths if n * (width / period) >= SCORES_PER_POINT), widths[-1])

    def link(self, path: str, **changes: str | None) -> str:
        """Return the URL of ``path`` with this selection and the given changes. None removes a parameter."""
        parameters = {**self.query, **changes}
        query = urlencode({name: value for name, value in parameters.items() if value})
        return f"{path}{'&' if '?' in path else '?'}{query}" if query else path

    def link_without_range(self, path: str, **changes: str | None) -> str:
        """Return the URL of ``path`` like :meth:`link`, but without a time range, which can be added to it."""
        return self.link(path, **changes, window=None, since=None, until=None, bucket=None)


class ScoredGroup(Protocol):
    """A group of scores, such as a summary of one route."""

    @property
    def n(self) -> int: ...
    @property
    def service(self) -> str: ...
    @property
    def scorer(self) -> str: ...


def choose_scorer(summaries: Iterable[ScoredGroup], requested: str | None = None) -> str | None:
    """Return the scorer to show: the requested one, relevancy, similarity, or the one with the most scores.

    Returns:
        The scorer's name, or None if there are no scores and no scorer was requested.
    """
    counts = _count((group.scorer, group.n) for group in summaries)
    default = next((name for name in (RELEVANCY, SIMILARITY) if counts[name]), None)
    return requested or default or _most_common(counts)


def choose_second_scorer(summaries: Iterable[ScoredGroup], first: str | None) -> str | None:
    """Return the scorer to show next to the first: faithfulness, or the one with the most scores, or None."""
    counts = _count((group.scorer, group.n) for group in summaries if group.scorer != first)
    return FAITHFULNESS if counts[FAITHFULNESS] else _most_common(counts)


def choose_service(summaries: Iterable[ScoredGroup], requested: str | None = None) -> str | None:
    """Return the requested service, or the one with the most scores; None if there are no scores."""
    return requested or _most_common(_count((group.service, group.n) for group in summaries))


def existing_or_none(requested: str | None, names: Iterable[str]) -> str | None:
    """Return the requested name if it exists. A URL may contain a scorer or service that does not exist."""
    return requested if requested in set(names) else None


def _count(pairs: Iterable[tuple[str, int]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for name, count in pairs:
        counts[name] += count
    return counts


def _most_common(counts: Counter[str]) -> str | None:
    """Return the name with the highest count. Ties are resolved alphabetically."""
    return min((name for name in counts if counts[name]), key=lambda name: (-counts[name], name), default=None)
