"""The comparison page: two periods, prompt versions or models, and the routes and questions with the largest change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from markupsafe import Markup

from germane.annotation import EXTERNAL_FINGERPRINT
from germane.errors import GermaneError
from germane.insights.charts import Level, Split
from germane.insights.compared_questions import QuestionChange, group_questions
from germane.insights.comparison_context import VersionContext, explain_versions
from germane.insights.comparison_verdict import (
    COMPARED_BY,
    ComparedBy,
    ComparedSide,
    ComparisonState,
    ComparisonVerdict,
    build_comparison_verdict,
)
from germane.insights.context import (
    InsightContext,
    ViewParams,
    choose_scorer,
    choose_service,
    existing_or_none,
    from_one_snapshot,
)
from germane.insights.formatting import DateFormatter, humanize, shorten
from germane.insights.last_day import find_min_drop
from germane.insights.score_chart import draw_score_chart
from germane.insights.situation import chart_markers, first_scored
from germane.statistics import Comparison, Comparisons, TimeWindow
from germane.storage import Coverage, RouteSummary, ServiceSummary, compare_summaries

MAX_ROUTES: Final = 20
"""Maximum number of listed routes."""
MAX_QUESTIONS: Final = 15
"""Maximum number of listed questions."""
MAX_LABEL_LENGTH: Final = 199
"""Longer values are truncated in the database, so that their answers cannot be selected."""
MAX_LABELS_SHOWN: Final = 200
"""Maximum number of values in a menu."""


class UnknownLabel(GermaneError):
    """A requested prompt version or model has no scores in the window."""

    def __init__(self, given: str, known: Sequence[str]) -> None:
        super().__init__(f"no scores for {given!r} in this window")
        self.given = given
        self.known = known


class UnknownQuestion(GermaneError):
    """The selected question has no answer on either side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRequest:
    """The two sides to compare."""

    by: ComparedBy = "period"
    old: str | None = None
    """Prompt version or model of the old side. Defaults to the one that was in use before ``new``."""
    new: str | None = None
    """Prompt version or model of the new side. Defaults to the one with the latest answer."""
    old_window: TimeWindow | None = None
    """Period of the old side. Defaults to the period of the same length that ends where the view's window begins."""
    route: str | None = None
    question: str | None = None
    """Key of the question whose answers are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonInsight:
    """The content of the comparison page."""

    request: ComparisonRequest
    scorer: str | None
    service: str | None
    scorers: Sequence[str]
    services: Sequence[str]
    routes: Sequence[str]
    """Names of the service's routes."""
    labels: Sequence[str]
    """Prompt versions or models with scores in the window, the one with the latest answer first."""
    old: ComparedSide | None
    """None if the window has fewer than two prompt versions or models."""
    new: ComparedSide | None
    verdict: ComparisonVerdict
    context: VersionContext | None = None
    """What else explains a comparison of versions, such as a drop that began later than the new version."""
    is_split: bool = False
    """Whether the sides are the halves of the window's scores, because there are no scores before it."""
    fingerprint: str = ""
    """Fingerprint of the compared scores."""
    changes: Sequence[Comparison] = ()
    """The routes with enough scores on both sides, largest difference first."""
    hidden_routes: int = 0
    """Number of routes with enough scores that are not listed."""
    tested: int = 0
    """Number of routes and services that were tested for a drop, for which significance is corrected."""
    tested_questions: int = 0
    """Number of questions that were tested for a drop."""
    other_fingerprints: int = 0
    """Number of scores with other fingerprints, which are not compared."""
    questions: Sequence[QuestionChange] = ()
    """The questions that moved most, or the selected question."""
    searched_back_to: tuple[datetime | None, datetime | None] = (None, None)
    """Start of the part of each side that was searched for questions, if it was truncated."""

    @property
    def whole(self) -> Comparison | None:
        """The comparison of the service or, if only one route is compared, of that route."""
        return self.verdict.whole

    @property
    def difference_tone(self) -> str:
        """The color of the difference: ``bad``, ``good`` or empty. It never contradicts the verdict."""
        if self.whole is None or abs(self.whole.difference or 0.0) < self.verdict.min_drop:
            return ""
        finding = self.whole.finding
        return {("dropped", "worse"): "bad", ("higher", "better"): "good"}.get((finding, self.verdict.state), "")

    @property
    def is_weighted(self) -> bool:
        """Whether the means are weighted by the old side's traffic of each route."""
        return self.whole is not None and self.whole.route is None

    @property
    def labels_compared(self) -> dict[str, str]:
        """The prompt versions or models that are compared, as URL parameters. Empty for periods."""
        sides = {"old": self.old, "new": self.new}
        return {
            name: label
            for name, side in sides.items()
            if side is not None and (label := side.condition.get(self.request.by)) is not None
        }

    def answers_link(self, view: ViewParams, side: ComparedSide, route: str | None) -> str:
        """Return the URL of the answers behind one side's scores, lowest first."""
        return view.link(
            "/answers",
            window=None,
            bucket=None,
            since=side.window[0].isoformat(),
            until=side.window[1].isoformat(),
            scorer=self.scorer,
            service=self.service,
            fingerprint=self.fingerprint,
            route=route,
            **side.condition,
        )


@from_one_snapshot
def load_comparison(context: InsightContext, view: ViewParams, request: ComparisonRequest) -> ComparisonInsight:
    """Compare two sides. The windows, scorer and service come from the view.

    Raises:
        UnknownLabel: The request names a prompt version or a model without scores.
        UnknownQuestion: The request selects a question without answers.
    """
    trends = context.store.trends
    overall = trends.window_summary(since=view.since, until=view.until)
    groups: list[ServiceSummary | Coverage] = [*overall.services, *overall.coverage]
    services = {group.service for group in groups}
    service = choose_service(overall.services, existing_or_none(view.service, services))
    scorer = choose_scorer(
        (group for group in overall.services if group.service == service),
        existing_or_none(view.scorer, (group.scorer for group in groups)),
    )
    base = ComparisonInsight(
        request=request,
        scorer=scorer,
        service=service,
        scorers=sorted({group.scorer for group in overall.services if group.service == service}),
        services=sorted(services),
        routes=sorted({counts.route for counts in overall.coverage if service in {None, counts.service}}),
        labels=(),
        old=None,
        new=None,
        verdict=ComparisonVerdict(state="empty"),
    )
    if scorer is None or service is None:
        return base
    subject = _Subject(service, scorer, request.route)
    if request.by == "period":
        base, periods = _with_periods(context, view, base, subject, subject.select(overall.routes))
        return _compare(context, base, *periods)
    by_label = trends.summary_by_label(
        by=request.by, scorer=scorer, service=service, since=view.since, until=view.until
    )
    by_label = subject.select(by_label)
    base = replace(base, labels=_labels(by_label))
    chosen = _choose_labels(request, base.labels)
    if chosen is None:
        state: ComparisonState = "one_version" if base.labels else "no_version"
        return replace(base, verdict=ComparisonVerdict(state=state, by=request.by))
    old, new = (
        (_labeled_side(request.by, label, view), [group for group in by_label if group.label == label])
        for label in chosen
    )
    insight = _compare(context, base, old, new)
    if insight.fingerprint == "":
        return insight
    route = request.route or insight.verdict.route
    found = explain_versions(context, view, by=request.by, new=chosen[1], scorer=scorer, service=service, route=route)
    return replace(insight, context=found)


_ScoredSide = tuple[ComparedSide, list[RouteSummary]]
"""One side of a comparison, with its scores by route and fingerprint."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is compared."""

    service: str
    scorer: str
    route: str | None

    def select(self, groups: Iterable[RouteSummary]) -> list[RouteSummary]:
        """Return the summaries of the compared service, scorer and route."""
        wanted = (self.service, self.scorer)
        selected = [group for group in groups if (group.service, group.scorer) == wanted]
        return [group for group in selected if self.route in {None, group.route}]


def _with_periods(
    context: InsightContext, view: ViewParams, base: ComparisonInsight, subject: _Subject, later: list[RouteSummary]
) -> tuple[ComparisonInsight, tuple[_ScoredSide, _ScoredSide]]:
    """Return the scores of two periods.

    If only the later one has scores and the visitor has not chosen an earlier one, these are its two halves.
    """

    def load(side: ComparedSide) -> _ScoredSide:
        since, until = side.window
        summary = context.store.trends.window_summary(
            since=since, until=until, service=subject.service, scorer=subject.scorer
        )
        return side, subject.select(summary.routes)

    old, new = _periods(view, base.request)
    earlier = load(old)
    is_chosen = base.request.old_window is not None or not view.window
    if is_chosen or earlier[1] or not later:
        return base, (earlier, (new, later))
    first, second = _halves(context, view, base.request, subject)
    return replace(base, is_split=True), (load(first), load(second))


def _halves(
    context: InsightContext, view: ViewParams, request: ComparisonRequest, subject: _Subject
) -> tuple[ComparedSide, ...]:
    """Return the two halves of the period with scores."""
    buckets = context.store.trends.over_time(
        scorer=subject.scorer, service=subject.service, route=subject.route, bucket=view.bucket, since=view.since,
        until=view.until, histograms=False,
    )  # fmt: skip
    since = max(view.since, first_scored(buckets) or view.since)
    middle = since + (view.until - since) / 2
    return _periods(replace(view, since=middle), replace(request, old_window=(since, middle)))


def _periods(view: ViewParams, request: ComparisonRequest) -> tuple[ComparedSide, ...]:
    new = (view.since, view.until)
    dates = DateFormatter(view.until, view.zone)
    sides = []
    for window in (request.old_window or (view.since - (view.until - view.since), view.since), new):
        name = f"{dates.date_time(window[0])} to {dates.date_time(window[1])}"
        sides.append(ComparedSide(name=name, window=window))
    return tuple(sides)


def _labeled_side(by: ComparedBy, label: str, view: ViewParams) -> ComparedSide:
    name = f"{COMPARED_BY[by]} {shorten(label, 60)}"
    return ComparedSide(name=name, window=(view.since, view.until), condition={by: label})


def _labels(groups: Iterable[RouteSummary]) -> list[str]:
    """Return the labels, newest answer first."""
    latest: dict[str, datetime] = {}
    for group in groups:
        if group.label and len(group.label) <= MAX_LABEL_LENGTH:
            latest[group.label] = max(latest.get(group.label, group.latest), group.latest)
    return sorted(latest, key=lambda label: (latest[label], label), reverse=True)


def _choose_labels(request: ComparisonRequest, labels: Sequence[str]) -> tuple[str, str] | None:
    """Return the labels of the old and the new side, or None if there are not two."""
    for given in (request.old, request.new):
        if given is not None and given not in labels:
            raise UnknownLabel(given, labels)
    new = request.new or next((label for label in labels if label != request.old), None)
    if new is None:
        return None
    # The label that was in use before the new one, if there is one.
    others = [*labels[labels.index(new) + 1 :], *labels[: labels.index(new)]]
    old = request.old or next(iter(others), None)
    return None if old is None else (old, new)


def _compare(
    context: InsightContext, base: ComparisonInsight, old_side: _ScoredSide, new_side: _ScoredSide
) -> ComparisonInsight:
    (old, before), (new, after) = old_side, new_side
    old = replace(old, newest=max((group.latest for group in before), default=None))
    new = replace(new, newest=max((group.latest for group in after), default=None))
    comparisons = compare_summaries(before, after, (old.window, new.window), whole=base.request.route is None)
    base = replace(base, old=old, new=new)
    missing = tuple(side for side in (old, new) if side.newest is None)
    if missing:
        return replace(base, verdict=ComparisonVerdict(state="no_scores", sides=missing))
    fingerprint = _fingerprint(comparisons, [*before, *after])
    tested = sum(line.difference is not None for line in (*comparisons.services, *comparisons.routes))
    # Findings come from the tests across all lines, of which those of one fingerprint are shown.
    comparisons = replace(
        comparisons,
        services=[line for line in comparisons.services if line.fingerprint == fingerprint],
        routes=[line for line in comparisons.routes if line.fingerprint == fingerprint],
    )
    changes = [line for line in comparisons.routes if line.is_comparable]
    changes.sort(key=lambda line: (-abs(line.difference or 0.0), line.route or ""))
    min_drop = find_min_drop(context.settings, base.scorer)
    insight = replace(
        base,
        verdict=build_comparison_verdict(comparisons, (old, new), base.scorer or "", min_drop),
        fingerprint=fingerprint,
        changes=changes[:MAX_ROUTES],
        hidden_routes=max(0, len(changes) - MAX_ROUTES),
        tested=tested,
        other_fingerprints=sum(group.n for group in (*before, *after) if group.fingerprint != fingerprint),
    )
    return _with_questions(context, insight)


def draw_comparison(context: InsightContext, view: ViewParams, insight: ComparisonInsight, root: str) -> Markup | None:
    """Draw both sides on one chart, or return None if there is nothing to draw, or if the periods overlap."""
    old, new, scorer, line = insight.old, insight.new, insight.scorer, insight.whole
    if old is None or new is None or scorer is None or line is None:
        return None
    place = {"scorer": scorer, "service": insight.service, "route": insight.request.route}
    more: dict[str, Any] = {"title": f"{humanize(scorer)} over time, both sides", "name": "sides-chart", "root": root}
    shown = view
    if labels := insight.labels_compared:
        more |= {"versions": (insight.request.by, labels["old"], labels["new"]), "second_kind": "earlier"}
        more |= {"failing_name": old.name, "points_name": new.name}
    elif old.window[1] > new.window[0]:
        return None
    else:
        shown = replace(view, since=old.window[0], until=new.window[1], chosen_bucket=None)
        sides = {"earlier": line.before, "later": line.after}
        before, after = (side if side is None else Level(name, side.mean, side.n) for name, side in sides.items())
        interval, is_worse = (old.window[1], new.window[0]), insight.verdict.state == "worse"
        more["split"] = Split(at=new.window[0], interval=interval, before=before, since=after, is_worse=is_worse)
    markers = context.store.trends.list_markers(since=shown.since, until=shown.until, service=insight.service, limit=12)
    more |= {"markers": chart_markers([], markers, view=view), "answers": view.link_without_range("/answers", **place)}
    return draw_score_chart(context.store, shown, place, **more)


def _fingerprint(comparisons: Comparisons, groups: Sequence[RouteSummary]) -> str:
    """Return the newest fingerprint with enough scores on both sides, or else the newest one."""
    newest = sorted(
        groups,
        key=lambda group: (group.fingerprint != EXTERNAL_FINGERPRINT, group.latest, group.fingerprint),
        reverse=True,
    )
    lines = (*comparisons.services, *comparisons.routes)
    compared = {line.fingerprint for line in lines if line.is_comparable}
    return next((group.fingerprint for group in newest if group.fingerprint in compared), newest[0].fingerprint)


def _with_questions(context: InsightContext, insight: ComparisonInsight) -> ComparisonInsight:
    """Add the questions with the largest change, or the selected question."""
    selection: dict[str, Any] = {
        "service": insight.service or "",
        "route": insight.request.route,
        "scorer": insight.scorer or "",
        "fingerprint": insight.fingerprint,
    }
    scores = []
    for side in (insight.old, insight.new):
        assert side is not None  # noqa: S101 - both sides have scores
        chosen = side.filter(**selection)
        # Versions that are no longer in use have their newest answers far from the end of the window.
        until = side.window[1] if side.newest is None else min(side.window[1], side.newest + timedelta(microseconds=1))
        scores.append(context.store.questions.load_question_scores(replace(chosen, until=until)))
    wanted = insight.request.question
    questions = group_questions(scores[0], scores[1], wanted=wanted, **selection)
    tested = sum(question.comparison.difference is not None for question in questions)
    if wanted is None:
        questions = [question for question in questions if question.change_size > 0]
    else:
        questions = [question for question in questions if question.key == wanted]
        if not questions:
            raise UnknownQuestion("no answer to this question on either side")
    questions.sort(
        key=lambda question: (question.comparison.difference is None, -question.change_size, -sum(question.counts))
    )
    return replace(
        insight,
        questions=questions[:MAX_QUESTIONS],
        tested_questions=tested,
        searched_back_to=(scores[0].searched_back_to, scores[1].searched_back_to),
    )
