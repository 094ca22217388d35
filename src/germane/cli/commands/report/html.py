"""A report as one file of HTML with its pictures: no script, and nothing in it asks for anything outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from germane.cli.commands.report.data import CORRECTED, HEADINGS, cells
from germane.cli.render import baseline, comparison, coverage
from germane.cli.render.baseline import usual_mean
from germane.dashboard.web.templates import environment, version
from germane.insights.charts import ChartMark, Trend, points_of, trend_figure
from germane.insights.context import Desk
from germane.insights.defaults import scorer_on_show, service_on_show
from germane.insights.events import chart_marks, concerns
from germane.insights.overview import read
from germane.insights.text import plain
from germane.insights.verdict import Verdict
from germane.insights.window import SPANS, USUAL, View
from germane.insights.worst_answers import NONCOMMITTAL, REFUSALS, Worst, worst_of
from germane.sanitize import tame
from germane.score import LOWEST

if TYPE_CHECKING:
    from germane.alert import Alert
    from germane.cli.commands.report.data import Found
    from germane.settings import Settings
    from germane.storage import RouteSummary, Scored, Store


WORST: Final = 10
CHARTS: Final = 8
_MARKS: Final = 50
_SHORTEST: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictured:
    """What is read for it."""

    verdict: Verdict
    """That of the overview as one opens it: of the last 24 hours of the window."""
    scorer: str | None
    """Whose worst answers these are."""
    trends: Sequence[Trend]
    """One for each service and scorer, that of the overview first."""
    worst: Sequence[Worst]
    alerts: Sequence[Alert]
    """Open ones, the oldest first."""

    @property
    def sentence(self) -> str:
        """The verdict, without links, which lead nowhere in a file."""
        pieces = [piece.text for piece in self.verdict.pieces if piece.kind != "link"]
        return "".join(pieces).removesuffix(" or ").strip()


def look(store: Store, settings: Settings, found: Found) -> Pictured:
    """Read it."""
    newest = [one for one in found.summaries if one.newest]
    scorer = scorer_on_show(newest)
    service = service_on_show([one for one in newest if one.scorer == scorer], found.of.service)
    view = View(
        span="", since=min(found.since, found.until - _SHORTEST), until=found.until, scorer=scorer, service=service
    )
    desk = Desk(store=store, settings=settings, now=lambda: found.until, read_only=True)
    first = (service, scorer)
    pairs = {(one.service, one.scorer) for one in newest}
    ordered = sorted(pairs, key=lambda one: (one != first, one[0] != service, one))
    return Pictured(
        verdict=read(desk, replace(view, since=found.until - SPANS[USUAL])).verdict,
        scorer=scorer,
        trends=[trend for pair in ordered[:CHARTS] for trend in _trend(store, found, view, *pair)],
        worst=_worst(store, found, newest, scorer),
        alerts=[one for one in store.open_alerts() if found.of.service in {None, one.service}],
    )


def _trend(store: Store, found: Found, view: View, service: str, scorer: str) -> Iterator[Trend]:
    """Return the trend of one scorer and service; nothing where it has no score in the window."""
    window: dict[str, Any] = {"since": view.since, "until": view.until}
    names: dict[str, Any] = {"scorer": scorer, "service": service, "route": found.of.route}
    buckets = store.trend(**names, **window, bucket=view.bucket, histograms=False)
    if not buckets:
        return
    fingerprint = max(buckets, key=lambda one: one.start).fingerprint
    alerts = [
        one
        for one in store.alerts(since=view.since, limit=_MARKS)
        if one.service == service and one.scorer in {None, scorer}
        if found.of.route is None or concerns(one, service, found.of.route)
    ]
    marks = chart_marks(alerts, store.marks(**window, service=service, limit=_MARKS), route=found.of.route)
    title = f"{plain(scorer)} of {service}"
    yield Trend(
        points=points_of(buckets),
        **window,
        bucket=view.bucket,
        title=title if found.of.route is None else f"{title}, route {found.of.route}",
        name=f"trend-{service}-{scorer}",
        baseline=usual_mean(store, scorer, fingerprint, service=service, route=found.of.route),
        marks=[_without_link(one) for one in marks if view.since <= one.at < view.until],
    )


def _without_link(mark: ChartMark) -> ChartMark:
    return replace(mark, href="")


def _worst(store: Store, found: Found, newest: Sequence[RouteSummary], scorer: str | None) -> list[Worst]:
    """Return the lowest of the newest fingerprints: as in the overview a few refusals, which all have 0, and others."""
    fingerprints = sorted({one.fingerprint for one in newest if one.scorer == scorer})
    of: dict[str, Any] = {"scorer": scorer, "service": found.of.service, "route": found.of.route}
    of |= {"since": found.since, "until": found.until}

    def lowest(label: str | None) -> list[Scored]:
        return [
            one for print_ in fingerprints for one in store.worst(fingerprint=print_, label=label, limit=WORST, **of)
        ]

    scored = sorted(lowest(None), key=_value)
    refusals = [one for one in scored if one.score.label == NONCOMMITTAL][:REFUSALS]
    others = [one for one in scored if one.score.label != NONCOMMITTAL] or sorted(lowest(LOWEST), key=_value)
    return worst_of(sorted([*refusals, *others[: WORST - len(refusals)]], key=_value))


def _value(one: Scored) -> float:
    return one.score.value or 0.0


def page(found: Found, pictured: Pictured) -> str:
    """Return the report; all of it is escaped but the pictures, which escape what they show."""
    missing = [*filter(None, map(coverage.line, found.coverage)), *coverage.undecided(found.left)]
    page = environment().get_template("report.html")
    text = page.render(
        style=_style(),
        version=version(),
        found=found,
        pictured=pictured,
        headings=HEADINGS,
        corrected=CORRECTED,
        rows=[cells(one, found.summaries) for one in found.summaries],
        charts=[(trend.title, trend_figure(trend)) for trend in pictured.trends],
        compared=comparison,
        missing=[line.strip() for line in missing],
        learning=[baseline.line(one, found.now) for one in found.learning],
        now=found.now,
        view=None,
        root="",
    )
    return tame(text)  # it may be printed


def _style() -> Markup:
    text = (files("germane.dashboard") / "static" / "style.css").read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 - our own file
