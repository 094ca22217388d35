"""The pages for answers: filtered lists with their mean, and details about one answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from germane.annotation import EXTERNAL_FINGERPRINT, Feedback
from germane.exchange import Context, Exchange
from germane.insights.context import RELEVANCY, SIMILARITY, InsightContext, ViewParams, choose_scorer, from_one_snapshot
from germane.insights.explanation import Explanation, explain_score, finite_number, is_refusal, low_below
from germane.insights.last_good import LastGoodAnswer, load_last_good
from germane.score import Score, UnscoredReason
from germane.statistics import Estimate
from germane.storage import (
    Answer,
    AnswerCursor,
    AnswerDetail,
    AnswerFilter,
    AnswerNeighbors,
    AnswerPage,
    AnswerSort,
    Disagreement,
    MatchCount,
    QuestionGroups,
    QuestionSort,
    RescoreResult,
    RouteMean,
    ServiceSummary,
    TaskStatus,
    TrackingStore,
    WindowSummary,
)

PAGE_SIZE: Final = 50
MAX_EXPORTED: Final = 10_000
"""Maximum number of answers in an exported file."""
EXPORT_BATCH: Final = 500
WEEK: Final = timedelta(days=7)
RECENTLY_SEEN: Final = timedelta(minutes=2)
"""Maximum age of the last heartbeat of a worker that counts as running."""
OPEN_STATES: Final = frozenset({"pending", "running"})
_NOT_SELECTED: Final = frozenset({UnscoredReason.NOT_SAMPLED.value, UnscoredReason.BUDGET.value})
_SAMPLING: Final[Mapping[str | None, str]] = {
    None: "Not decided yet.",
    "sampled": "Sampled",
    "uniform": "Selected uniformly within the budget",
    "route_floor": "Selected within the budget to cover its route",
    "suspicion": "Selected within the budget for its low proxy score",
    "always": "Scored regardless of sampling, because of a rule or a label",
    "candidate": "Candidate: to be selected or skipped at the end of the interval.",
    "not_sampled": "Not sampled",
    "budget": "Skipped: the budget was exhausted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSearch:
    """A search for answers: the filter, the sort order and the position of the page."""

    view: ViewParams
    filter: AnswerFilter
    sort: AnswerSort
    after: AnswerCursor | None = None

    grouped: bool = False
    """Whether answers to the same question form a group."""
    order: QuestionSort = "answers"
    """The order of the groups."""

    def with_scorer(self, scorer: str | None) -> AnswerSearch:
        """Return this search restricted to one scorer."""
        return replace(self, filter=replace(self.filter, scorer=scorer))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerList:
    """One page of answers, with totals over all matching answers."""

    answers: Sequence[Answer]
    after: AnswerCursor | None
    looked_back_to: datetime | None
    """Time of the oldest answer that was searched, if the search stopped early."""
    total: MatchCount
    mean: Estimate | None
    """Mean score of all matching answers, or None if it would be misleading."""
    scorer: str | None
    """The scorer whose scores are shown, if any."""
    scorers: Sequence[str]
    routes: Sequence[str]
    services: Sequence[str]
    labeled: MatchCount
    """Number of answers with human labels that match the other conditions."""
    groups: QuestionGroups | None = None
    """The answers grouped by question, if requested; then ``answers`` is empty."""
    refusals: MatchCount | None = None
    """Number of refusals among the matching answers, or None if the filter is about refusals or unscored answers."""

    can_follow: bool = False
    """Whether the list begins with the newest answers at the time of the request, so that new ones can be added."""


@from_one_snapshot
def load_answer_list(context: InsightContext, search: AnswerSearch) -> AnswerList:
    """Load one page of matching answers, with totals over all of them."""
    overall = context.store.trends.window_summary(since=search.view.since, until=search.view.until)
    scorer = choose_scorer(overall.services, search.view.scorer)
    search = search.with_scorer(scorer)
    groups, page = None, AnswerPage(answers=(), next_cursor=None)
    if search.grouped:
        groups = context.store.questions.group_by_question(search.filter, sort=search.order)
    else:
        page = context.store.answers.search(search.filter, sort=search.sort, after=search.after, limit=PAGE_SIZE)
    mean = None
    if scorer is not None and not search.filter.selects_by_result:
        if search.filter.question is not None:
            summary = context.store.answers.summarize_matches(search.filter)
            is_whole = summary.estimate is not None and summary.searched_back_to is None
            mean = summary.estimate if is_whole else None
        else:
            estimates = _matching_estimates(context, search, overall, scorer)
            mean = estimates[0] if len(estimates) == 1 else None
    return AnswerList(
        answers=page.answers,
        after=page.next_cursor,
        looked_back_to=groups.searched_back_to if groups else page.searched_back_to,
        groups=groups,
        total=context.store.answers.count_matches(search.filter),
        mean=mean,
        scorer=scorer,
        scorers=sorted({counts.scorer for counts in overall.coverage if counts.scorer}),
        routes=sorted({counts.route for counts in overall.coverage if counts.route}),
        services=sorted({counts.service for counts in overall.coverage if counts.service}),
        refusals=context.store.answers.count_matches(replace(search.filter, refusals=True))
        if (search.filter.state, search.filter.refusals, search.filter.label) == ("scored", None, None)
        else None,
        labeled=context.store.answers.count_matches(replace(search.filter, labeled=True)),
        can_follow=search.sort == "newest"
        and bool(search.view.window)
        and search.after is None
        and search.filter.ids is None
        and not search.grouped,
    )


def load_newest_rows(context: InsightContext, search: AnswerSearch) -> Sequence[Answer]:
    """Return the newest matching answers, at most one page, without totals. Called every few seconds by open pages."""
    return context.store.answers.search(search.filter, sort="newest", limit=PAGE_SIZE).answers


def _matching_estimates(
    context: InsightContext, search: AnswerSearch, overall: WindowSummary, scorer: str
) -> Sequence[Estimate]:
    """Return the estimates that cover exactly the answers selected by the filter."""
    wanted = search.filter
    if any((wanted.user, wanted.session, wanted.attributes, wanted.ids is not None)):
        return []

    def is_matching(group: RouteMean | ServiceSummary) -> bool:
        is_fingerprint = group.newest if wanted.fingerprint is None else group.fingerprint == wanted.fingerprint
        return is_fingerprint and group.scorer == scorer and wanted.service in {None, group.service}

    dimensions = {name: value for name in ("model", "prompt_version") if (value := getattr(wanted, name))}
    if len(dimensions) > 1:
        return []
    if dimensions:
        ((by, label),) = dimensions.items()
        means = context.store.trends.means(
            scorer=scorer,
            route=wanted.route,
            service=wanted.service,
            by=by,
            histograms=False,
            since=search.view.since,
            until=search.view.until,
        )
        return [group for group in means if group.label == label and is_matching(group)]
    if wanted.route is None:
        return [group for group in overall.services if is_matching(group)]
    return [group for group in overall.routes if group.route == wanted.route and is_matching(group)]


class AnswerExport:
    """Iterates over the matching answers, up to a maximum, and records in ``complete`` whether all were included."""

    def __init__(self, context: InsightContext, search: AnswerSearch, limit: int | None = None) -> None:
        self.search = search
        self._limit = MAX_EXPORTED if limit is None else limit
        if not search.view.scorer:
            overall = context.store.trends.window_summary(since=search.view.since, until=search.view.until)
            self.search = search.with_scorer(choose_scorer(overall.services))
        self.complete = True
        self._context = context

    def __iter__(self) -> Iterator[Answer]:
        remaining, after = self._limit, self.search.after
        while remaining > 0:
            page = self._context.store.answers.search(
                self.search.filter, sort=self.search.sort, after=after, limit=min(EXPORT_BATCH, remaining)
            )
            yield from page.answers
            remaining -= max(len(page.answers), 1)
            after = page.next_cursor
            if after is None:
                self.complete = page.searched_back_to is None
                return
        self.complete = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedScore:
    """One score with its explanation."""

    score: Score
    explanation: Explanation
    task: TaskStatus | None
    """The task that rescores the answer, if it has not finished or has failed."""

    @property
    def is_refusal(self) -> bool:
        """Whether the answer is noncommittal according to this score."""
        return is_refusal(self.score)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """A score's rank among the scores with the same route and fingerprint, in the week around the answer."""

    mean: RouteMean
    below: float
    """Share of answers whose scores are certainly lower, in [0, 1]."""
    above: float
    """Share of answers whose scores are certainly higher, in [0, 1]."""

    @property
    def text(self) -> str:
        """The rank in words, rounded down."""
        if self.above >= self.below:
            return f"lower than {int(self.above * 100 + 1e-9)}% of answers"
        return f"higher than {int(self.below * 100 + 1e-9)}% of answers"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedText:
    """A retrieved context, with the scorers' results for it."""

    context: Context
    relevance: float | None
    is_low: bool
    """Whether the relevance is low. For cosines, the limit follows from the calibration."""
    quoted: bool | None
    """Whether the judge quotes the context as evidence for a claim, or None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLink:
    """A link to an answer's trace."""

    host: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerInsight:
    """The content of an answer's page."""

    detail: AnswerDetail
    main: ExplainedScore | None
    others: Sequence[ExplainedScore]
    unscored: Sequence[TaskStatus]
    """Failed, skipped and open tasks of scorers without a score."""
    rank: Rank | None
    last_good: LastGoodAnswer | None
    """The last good answer to the same question, if the score is low."""
    texts: Sequence[RetrievedText]
    trace: TraceLink | None
    neighbors: AnswerNeighbors
    total: MatchCount
    """Number of answers in the list that ``neighbors`` refers to."""
    disagreement: Disagreement | None
    sampling: str
    replaced_labels: frozenset[str]
    """Ids of labels that were replaced by a later label from the same user."""

    @property
    def rescoring(self) -> Sequence[TaskStatus]:
        """Tasks that rescore the answer while its existing score is kept."""
        return [task for task in self.detail.tasks if _is_rescoring(self.detail, task)]


def load_answer(context: InsightContext, search: AnswerSearch, detail: AnswerDetail) -> AnswerInsight:
    """Load the content of an answer's page."""
    rescores = {
        (task.scorer, task.fingerprint): task for task in reversed(detail.tasks) if task.is_rescore or task.error
    }
    scores = [
        ExplainedScore(
            score=score, explanation=explain_score(score), task=rescores.get((score.scorer, score.fingerprint))
        )
        for score in detail.scores
    ]
    main = _choose_main_score(scores, detail.tasks, search.view.scorer)
    wanted = search.with_scorer(main.score.scorer if main else search.view.scorer).filter
    disagreement = None
    if main is not None and main.score.fingerprint != EXTERNAL_FINGERPRINT:
        disagreements = context.store.labels.count_disagreements(
            scorer=main.score.scorer, fingerprint=main.score.fingerprint
        )
        disagreement = disagreements[0] if disagreements else None
    return AnswerInsight(
        detail=detail,
        main=main,
        others=[explained for explained in scores if explained is not main],
        unscored=[
            task
            for task in detail.tasks
            if task.state in {"failed", "skipped", *OPEN_STATES} and not _is_rescoring(detail, task)
        ],
        rank=_load_rank(context, detail.exchange, main.score) if main else None,
        last_good=load_last_good(context, detail.exchange, main.score) if main else None,
        texts=_retrieved_texts(detail),
        trace=build_trace_link(context.settings.trace_url, detail.exchange),
        neighbors=context.store.answers.find_neighbors(wanted, detail.exchange.id, sort=search.sort),
        total=context.store.answers.count_matches(wanted),
        disagreement=disagreement,
        sampling=describe_answer_sampling(detail),
        replaced_labels=_replaced_labels(detail.feedback),
    )


def _replaced_labels(labels: Sequence[Feedback]) -> frozenset[str]:
    """Return the ids of labels that were replaced by a later label from the same user."""
    latest = {label.user: label.id for label in labels}
    return frozenset(label.id for label in labels if label.user and latest[label.user] != label.id)


def _choose_main_score(
    scores: Sequence[ExplainedScore], tasks: Sequence[TaskStatus], requested: str | None
) -> ExplainedScore | None:
    """Return the newest score of the requested or a default scorer; None if it failed or has not finished."""
    missing = {task.scorer for task in tasks if task.state in {"failed", *OPEN_STATES}}
    for name in (requested, RELEVANCY, SIMILARITY, *sorted({explained.score.scorer for explained in scores})):
        by_scorer = [explained for explained in scores if explained.score.scorer == name]
        if by_scorer:
            return max(by_scorer, key=lambda explained: explained.score.scored_at or datetime.min.replace(tzinfo=UTC))
        if name in missing:
            return None
    return None


def _is_rescoring(detail: AnswerDetail, task: TaskStatus) -> bool:
    """Return whether a task rescores an answer that its scorer has already scored."""
    return task.is_rescore and any(score.scorer == task.scorer for score in detail.scores)


def _load_rank(context: InsightContext, exchange: Exchange, score: Score) -> Rank | None:
    # Query whole days, which is fastest because they can use rollups.
    day = exchange.started_at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    since = day - WEEK / 2 + timedelta(hours=12)
    means = context.store.trends.means(
        since=since, until=since + WEEK, scorer=score.scorer, route=exchange.route, service=exchange.service
    )
    mean = next((group for group in means if group.fingerprint == score.fingerprint), None)
    shares = None if mean is None or mean.histogram is None else mean.histogram.shares_around(score.value or 0.0)
    return None if mean is None or shares is None else Rank(mean=mean, below=shares[0], above=shares[1])


def _retrieved_texts(detail: AnswerDetail) -> list[RetrievedText]:
    relevances, limit = _text_relevances(detail.scores)
    quotes: list[str] | None = None
    for score in detail.scores:
        claims = score.details.get("claims") if score.scorer == "faithfulness" else None
        if isinstance(claims, list):
            supported = [claim for claim in claims if isinstance(claim, Mapping) and claim.get("supported") is True]
            evidence = [claim.get("evidence") for claim in supported]
            quotes = [_normalize(quote) for quote in evidence if isinstance(quote, str) and quote]
            break
    return [
        RetrievedText(
            context=text,
            relevance=relevances[index] if index < len(relevances) else None,
            is_low=index < len(relevances) and limit is not None and relevances[index] < limit,
            quoted=None if quotes is None else any(quote in _normalize(text.text) for quote in quotes),
        )
        for index, text in enumerate(detail.exchange.contexts)
    ]


def _text_relevances(scores: Sequence[Score]) -> tuple[list[float], float | None]:
    """Return the relevance of each context, if a scorer stored it for all, and the value below which it is low."""
    for name in ("context_relevance", "context_similarity"):
        for score in scores:
            chunks = score.details.get("chunks") if score.scorer == name else None
            values = [finite_number(value) for value in chunks] if isinstance(chunks, list) else []
            if values and None not in values:
                return [value for value in values if value is not None], low_below(score)
    return [], None


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split())


def build_trace_link(template: str | None, exchange: Exchange) -> TraceLink | None:
    """Return a link to the trace, or None if there is none. Only ids are inserted into the template."""
    if template is None or not exchange.traced:
        return None
    ids = {"trace_id": exchange.trace_id, "span_id": exchange.span_id}
    if not all(value.isalnum() and value.isascii() for value in ids.values()):
        return None
    url = template
    for name, value in ids.items():
        url = url.replace(f"{{{name}}}", value)
    return TraceLink(host=urlsplit(template).hostname or "", url=url)


def describe_answer_sampling(detail: AnswerDetail) -> str:
    """Return a sentence that states why an answer was or was not sampled, with the sampling probability."""
    reason, probability = detail.sampling_reason, detail.sampling_probability
    words = _SAMPLING.get(reason, str(reason).replace("_", " ")[:60])
    if probability is None or words.endswith("."):
        return words if words.endswith(".") else f"{words}."
    shown = f"{probability:.2f}" if probability >= 0.01 else f"{probability:.1g}"
    represents = probability < 1 and detail.scores
    weight = f": stands for {1 / probability:.3g} captured answers (1 / {shown})" if represents else ""
    return f"{words}, with probability {shown}{weight}."


def available_scorers(store: TrackingStore) -> dict[str, str]:
    """Return fingerprints by scorer name. If workers differ, the most recently seen worker takes precedence."""
    fingerprints: dict[str, str] = {}
    for worker in store.workers.list_workers():
        for name, fingerprint in worker.scorers.items():
            fingerprints.setdefault(name, fingerprint)
    return fingerprints


def rescore_answer(context: InsightContext, detail: AnswerDetail, scorer: str | None) -> str:
    """Queue an answer to be rescored by one scorer, or by all scorers that have already scored it.

    Returns:
        ``ready``, ``no_worker``, ``waiting``, ``erased``, ``not_sampled`` or ``unknown``.
    """
    known = {task.scorer: task.fingerprint for task in detail.tasks if task.fingerprint != EXTERNAL_FINGERPRINT}
    # Without a worker, assume that the previous scorers will be available again.
    fingerprints = {**known, **available_scorers(context.store)}
    names = [scorer] if scorer else sorted(known or fingerprints)
    reasons = {task.reason.value if task.reason else "" for task in detail.tasks}
    if detail.tasks and not detail.scores and reasons <= _NOT_SELECTED:
        wanted = {name: fingerprints[name] for name in names if name in fingerprints}
        result = "ready" if context.store.sampling.apply_feedback([], [detail.exchange.id], wanted) else "not_sampled"
    else:
        pairs = [(detail.exchange.id, name) for name in names]
        budgeted = context.settings.budget is not None
        rescored = context.store.queue.rescore(pairs, fingerprints, budgeted=budgeted)
        outcomes = ("ready", "waiting", "erased", "not_sampled")
        result = next((name for name in outcomes if getattr(rescored, name)), "unknown")
    has_worker = bool(context.store.workers.list_workers(within=RECENTLY_SEEN))
    return "no_worker" if result == "ready" and not has_worker else result


def rescore_matching(
    context: InsightContext, wanted: AnswerFilter, fingerprints: Mapping[str, str], *, limit: int
) -> RescoreResult:
    """Queue up to ``limit`` matching answers to be rescored, newest first, in several transactions."""
    total, ids, after = RescoreResult(), list[str](), None
    while len(ids) < limit:
        page = context.store.answers.search(wanted, sort="newest", after=after, limit=EXPORT_BATCH)
        ids += [answer.exchange.id for answer in page.answers]
        after = page.next_cursor
        if after is None:
            break
    for start in range(0, len(ids), EXPORT_BATCH):
        pairs = [(id_, wanted.scorer or "") for id_ in ids[start : start + EXPORT_BATCH]]
        total += context.store.queue.rescore(pairs, fingerprints, budgeted=context.settings.budget is not None)
    return total
