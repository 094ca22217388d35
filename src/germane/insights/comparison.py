"""The comparison page: two periods, prompt versions or models, and the routes and questions with the largest change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal, get_args

from germane.annotation import EXTERNAL_FINGERPRINT
from germane.errors import GermaneError
from germane.insights.compared_questions import QuestionChange, group_questions
from germane.insights.comparison_context import explain_versions
from germane.insights.comparison_verdict import ComparedSide, ComparisonVerdict, build_comparison_verdict
from germane.insights.context import (
    InsightContext,
    ViewParams,
    choose_scorer,
    choose_service,
    existing_or_none,
    from_one_snapshot,
)
from germane.insights.formatting import DateFormatter, shorten
from germane.insights.last_day import find_drop_rule
from germane.insights.situation import DEFAULT_MIN_DROP, Piece, first_scored, strong
from germane.storage import (
    Comparison,
    Comparisons,
    Coverage,
    RouteSummary,
    ServiceSummary,
    TimeWindow,
    compare_summaries,
)

ComparedBy = Literal["period", "prompt_version", "model"]
COMPARED_BY: Final[Mapping[ComparedBy, str]] = dict(
    zip(get_args(ComparedBy), ("period", "prompt version", "model"), strict=True)
)
"""What the two sides of a comparison can differ in, by its name in the URL."""
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
    context: Sequence[Piece] = ()
    """What else explains a comparison of versions, such as a drop that began later than the new version."""
    is_split: bool = False
    """Whether the sides are the halves of the window's scores, because there are no scores before it."""
    fingerprint: str = ""
    """Fingerprint of the compared scores."""
    min_drop: float = DEFAULT_MIN_DROP
    """Smaller differences are not reported."""
    whole: Comparison | None = None
    """The comparison of the service or, if only one route is compared, of that route."""
    changes: Sequence[Comparison] = ()
    """The routes with enough scores on both sides, largest difference first."""
    hidden_routes: int = 0
    """Number of routes with enough scores that are not listed."""
    tested: int = 0
    """Number of routes and services that were tested for a drop, for which significance is corrected."""
    tested_questions: int = 0
    """Number of questions that were tested for a drop."""
    small_routes: int = 0
    """Number of routes with too few scores on one of the sides."""
    other_fingerprints: int = 0
    """Number of scores with other fingerprints, which are not compared."""
    questions: Sequence[QuestionChange] = ()
    """The questions that moved most, or the selected question."""
    searched_back_to: tuple[datetime | None, datetime | None] = (None, None)
    """Start of the part of each side that was searched for questions, if it was truncated."""

    @property
    def difference_tone(self) -> str:
        """The color of the difference: ``bad``, ``good`` or empty. It never contradicts the verdict."""
        if self.whole is None or abs(self.whole.difference or 0.0) < self.min_drop:
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
        verdict=ComparisonVerdict("empty", (strong("No scores"), Piece(" in this window."))),
    )
    if scorer is None or service is None:
        return base
    if request.by == "period":
        sides = _periods(view, request)
        earlier = trends.window_summary(
            since=sides[0].window[0], until=sides[0].window[1], service=service, scorer=scorer
        )
        per_side = [_selected(summary.routes, service, scorer, request.route) for summary in (earlier, overall)]
        halves = _halves(context, view, request, scorer, service) if per_side[1] and not per_side[0] else None
        if halves is not None:
            base, sides = replace(base, is_split=True), halves
            selected: dict[str, Any] = {"service": service, "scorer": scorer}
            summaries = [
                trends.window_summary(since=side.window[0], until=side.window[1], **selected) for side in sides
            ]
            per_side = [_selected(summary.routes, service, scorer, request.route) for summary in summaries]
    else:
        by_label = trends.summary_by_label(
            by=request.by, scorer=scorer, service=service, since=view.since, until=view.until
        )
        by_label = _selected(by_label, service, scorer, request.route)
        labels = _labels(by_label)
        base = replace(base, labels=labels)
        chosen = _choose_labels(request, labels)
        if chosen is None:
            kind = COMPARED_BY[request.by]
            text = f" to compare: this window has scores of {'only one' if labels else 'no'} {kind}."
            return replace(base, verdict=ComparisonVerdict("few", (strong("Not enough data"), Piece(text))))
        per_side = [[group for group in by_label if group.label == label] for label in chosen]
        sides = tuple(_labeled_side(request.by, label, view) for label in chosen)
    sides = tuple(
        replace(side, newest=max((group.latest for group in of_side), default=None))
        for side, of_side in zip(sides, per_side, strict=True)
    )
    insight = _compare(context, base, sides, per_side)
    if request.by == "period" or insight.fingerprint == "":
        return insight
    route = request.route or insight.verdict.route
    new = sides[1].condition[request.by]
    pieces = explain_versions(context, view, by=request.by, new=new, scorer=scorer, service=service, route=route)
    return replace(insight, context=pieces)


def _halves(
    context: InsightContext, view: ViewParams, request: ComparisonRequest, scorer: str, service: str
) -> tuple[ComparedSide, ...] | None:
    """Return the two halves of the period with scores, or None if the visitor has chosen a period."""
    if request.old_window is not None or not view.window:
        return None
    buckets = context.store.trends.over_time(
        scorer=scorer, service=service, route=request.route, bucket=view.bucket, since=view.since, until=view.until,
        histograms=False,
    )  # fmt: skip
    since = max(view.since, first_scored(buckets) or view.since)
    middle = since + (view.until - since) / 2
    return _periods(replace(view, since=middle), replace(request, old_window=(since, middle)))


def _selected(groups: Iterable[RouteSummary], service: str, scorer: str, route: str | None) -> list[RouteSummary]:
    wanted = (service, scorer)
    return [group for group in groups if (group.service, group.scorer) == wanted and route in {None, group.route}]


def _periods(view: ViewParams, request: ComparisonRequest) -> tuple[ComparedSide, ...]:
    new = (view.since, view.until)
    dates = DateFormatter(view.until, view.zone)
    sides = []
    for window in (request.old_window or (view.since - (view.until - view.since), view.since), new):
        name = f"{dates.date_time(window[0])} to {dates.date_time(window[1])}"
        sides.append(ComparedSide(name=name, phrase=f"from {name}", window=window))
    return tuple(sides)


def _labeled_side(by: ComparedBy, label: str, view: ViewParams) -> ComparedSide:
    name = f"{COMPARED_BY[by]} {shorten(label, 60)}"
    return ComparedSide(name=name, phrase=f"with {name}", window=(view.since, view.until), condition={by: label})


def _labels(groups: Iterable[RouteSummary]) -> list[str]:
    """Return the labels, newest answer first."""
    latest: dict[str, datetime] = {}
    for group in groups:
        if group.label and len(group.label) <= MAX_LABEL_LENGTH:
            latest[group.label] = max(latest.get(group.label, group.latest), group.latest)
    return sorted(latest, key=lambda label: (latest[label], label), reverse=True)


def _choose_labels(request: ComparisonRequest, labels: Sequence[str]) -> tuple[str, str] | None:
    """Return the labels of the old and the new side, or None if there are not two.

    Raises:
        UnknownLabel: A requested label has no scores.
    """
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
    context: InsightContext,
    base: ComparisonInsight,
    sides: Sequence[ComparedSide],
    groups: Sequence[Sequence[RouteSummary]],
) -> ComparisonInsight:
    old, new = sides
    request = base.request
    comparisons = compare_summaries(groups[0], groups[1], (old.window, new.window), whole=request.route is None)
    base = replace(base, old=old, new=new)
    fingerprint = _fingerprint(comparisons, groups)
    if fingerprint is None:
        missing = [side.phrase for side, of_side in zip(sides, groups, strict=True) if not of_side]
        sentence = (strong("No scores"), Piece(f" {' or '.join(missing)}."))
        return replace(base, verdict=ComparisonVerdict("empty", sentence))
    rule = find_drop_rule(context.settings, base.scorer)
    tested = sum(line.difference is not None for line in (*comparisons.services, *comparisons.routes))
    # Findings come from the tests across all lines.
    comparisons = replace(
        comparisons,
        services=[line for line in comparisons.services if line.fingerprint == fingerprint],
        routes=[line for line in comparisons.routes if line.fingerprint == fingerprint],
    )
    comparable = [line for line in comparisons.routes if line.is_comparable]
    whole = comparisons.services[0] if comparisons.services else comparable[0] if len(comparable) == 1 else None
    whole = whole or (comparisons.routes[0] if len(comparisons.routes) == 1 else None)
    changes = sorted(comparable, key=lambda line: (-abs(line.difference or 0.0), line.route or ""))
    others = sum(group.n for of_side in groups for group in of_side if group.fingerprint != fingerprint)
    min_drop = DEFAULT_MIN_DROP if rule is None else rule.min_drop
    insight = replace(
        base,
        verdict=build_comparison_verdict(comparisons, whole, sides, base.scorer or "", min_drop),
        fingerprint=fingerprint,
        whole=whole,
        changes=changes[:MAX_ROUTES],
        hidden_routes=max(0, len(changes) - MAX_ROUTES),
        tested=tested,
        small_routes=len(comparisons.routes) - len(comparable),
        other_fingerprints=others,
        min_drop=min_drop,
    )
    return _with_questions(context, insight)


def _fingerprint(comparisons: Comparisons, groups: Sequence[Sequence[RouteSummary]]) -> str | None:
    """Return the newest fingerprint with enough scores on both sides, or the newest one; None without scores."""
    scored = [group for of_side in reversed(groups) for group in of_side]
    newest = sorted(
        scored,
        key=lambda group: (group.fingerprint != EXTERNAL_FINGERPRINT, group.latest, group.fingerprint),
        reverse=True,
    )
    if not all(groups):
        return None
    lines = (*comparisons.services, *comparisons.routes)
    compared = {line.fingerprint for line in lines if line.is_comparable}
    return next((group.fingerprint for group in newest if group.fingerprint in compared), newest[0].fingerprint)


def _with_questions(context: InsightContext, insight: ComparisonInsight) -> ComparisonInsight:
    """Add the questions with the largest change, or the selected question.

    Raises:
        UnknownQuestion: The selected question has no answers.
    """
    place: dict[str, Any] = {"service": insight.service or "", "route": insight.request.route}
    judged = {"scorer": insight.scorer or "", "fingerprint": insight.fingerprint}
    scores = []
    for side in (insight.old, insight.new):
        assert side is not None  # noqa: S101 - both sides have scores
        chosen = side.filter(**judged, **place)
        # Versions that are no longer in use have their newest answers far from the end of the window.
        until = side.window[1] if side.newest is None else min(side.window[1], side.newest + timedelta(microseconds=1))
        scores.append(context.store.answers.load_question_scores(replace(chosen, until=until)))
    questions = group_questions(scores[0], scores[1], **judged, **place)
    tested = sum(question.comparison.difference is not None for question in questions)
    if insight.request.question is not None:
        questions = [question for question in questions if question.key == insight.request.question]
        if not questions:
            raise UnknownQuestion("no answer to this question on either side")
    else:
        questions = [question for question in questions if all(question.counts) and question.moved > 0]
    questions.sort(
        key=lambda question: (question.comparison.difference is None, -question.moved, -sum(question.counts))
    )
    return replace(
        insight,
        questions=questions[:MAX_QUESTIONS],
        tested_questions=tested,
        searched_back_to=(scores[0].searched_back_to, scores[1].searched_back_to),
    )
