"""Who scores, what waits, what it cost and what failed; and having failures tried again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from germane.dashboard.pages.alerts.models import length, span_of
from germane.dashboard.pages.answers.rescore import in_force
from germane.dashboard.web.display_name import back_to
from germane.dashboard.web.forms import form
from germane.dashboard.web.http_error import Refusal
from germane.dashboard.web.templates import render
from germane.dashboard.web.urls import screen
from germane.insights.context import Desk
from germane.insights.health import Health, frame_of, health_of
from germane.insights.sampling_summary import in_fact, limits, sampling_told
from germane.insights.text import marked
from germane.insights.window import SPANS, View, view_of
from germane.score import Reason
from germane.settings import Budget
from germane.storage import (
    AnswerFilter,
    Coverage,
    JobRuns,
    Lane,
    LimitUse,
    Manner,
    OpenTasks,
    Posted,
    Rescored,
    Spent,
    Trouble,
    Worker,
    shares,
)
from germane.storage.queue.backlog import MANY

ROWS: Final = 80
"""Routes and scorers whose counts are shown."""
FAILURES: Final = 12
"""Kinds of failures of which the error is looked up."""
DEAD: Final = 20
DAYS: Final = 14
READ: Final = 20
"""Newest answers that are looked at for what redaction left."""
BEGINNING: Final = 20_000
"""Characters of each."""
BAR: Final = (4, 18)
"""Width and height of a run in a strip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One run in a strip."""

    x: int
    y: float
    height: float
    bad: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownJob:
    """A job, and its last runs."""

    job: JobRuns

    @property
    def failed(self) -> int:
        """How many of the runs that are known went wrong."""
        return sum(one.problem is not None for one in self.job.runs)

    @property
    def longest(self) -> float:
        """Seconds of the longest."""
        return max((one.seconds for one in self.job.runs), default=0.0)

    @property
    def bars(self) -> Sequence[Bar]:
        """The runs, oldest first, as high as the root of what they took; one that failed is as high as can be."""
        width, height = BAR
        found = []
        for place, run in enumerate(self.job.runs):
            share = (run.seconds / self.longest) ** 0.5 if self.longest else 0.0
            tall = height if run.problem else max(2.0, round(height * share, 1))
            found.append(Bar(x=place * width, y=height - tall, height=tall, bad=run.problem is not None))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Scores of one scorer that failed for one reason, within the window."""

    scorer: str
    reason: str
    n: int
    error: str | None
    """Of the newest, in the words of its server."""
    exchange_id: str | None
    """The newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """What judging took on one day."""

    spent: Spent
    share: float
    """Of the limit that is nearest, or without one of the dearest day's calls; at most 1 is drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the database holds, and how long."""

    name: str
    size: int
    """Bytes."""
    revision: str | None
    manner: Manner
    redacted: int
    """Of the newest answers that were read, how many have places that redaction left."""
    read: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPage:
    """All of it."""

    health: Health
    process: Worker | None
    """Whose jobs are shown."""
    jobs: Sequence[ShownJob]
    queue: Sequence[OpenTasks]
    troubles: Sequence[Trouble]
    failures: Sequence[Failure]
    """The most common first."""
    more_failures: int
    days: Sequence[Day]
    """The newest first."""
    limits: Sequence[LimitUse]
    coverage: Sequence[Coverage]
    more_coverage: int
    lanes: Sequence[Lane]
    dead: Sequence[Posted]
    kept: Kept


def read(desk: Desk, view: View, process: str | None) -> WorkerPage:
    """Read the page for a window, with the jobs of one process."""
    store, health = desk.store, health_of(desk)
    coverage = [one for one in store.coverage(since=view.since, until=view.until) if one.seen]
    failures = _failures(coverage)
    chosen = _process(health, process)
    return WorkerPage(
        health=health,
        process=chosen,
        jobs=[] if chosen is None else [ShownJob(job=one) for one in store.jobs(chosen.id)],
        queue=health.pulse.queue,
        troubles=store.troubles(),
        failures=[_failure(desk, view, *one) for one in failures[:FAILURES]],
        more_failures=max(0, len(failures) - FAILURES),
        days=_days(store.spending(DAYS), desk.settings.budget),
        limits=store.limit_uses(),
        coverage=sorted(coverage, key=lambda one: -one.seen)[:ROWS],
        more_coverage=max(0, len(coverage) - ROWS),
        lanes=store.lanes(),
        dead=store.notifications(status="dead", limit=DEAD),
        kept=_kept(desk),
    )


def _process(health: Health, asked: str | None) -> Worker | None:
    everybody = (*health.alive, *health.silent)
    return next((one for one in everybody if one.id == asked), everybody[0] if everybody else None)


def _failures(coverage: Sequence[Coverage]) -> list[tuple[str, str, int]]:
    """Return scorers and reasons with how much failed, the most common first."""
    found: dict[tuple[str, str], int] = {}
    for one in coverage:
        for reason, count in one.failed.items():
            found[one.scorer, reason] = found.get((one.scorer, reason), 0) + count
    return sorted(((*names, count) for names, count in found.items()), key=lambda one: (-one[2], one[:2]))


def _failure(desk: Desk, view: View, scorer: str, reason: str, count: int) -> Failure:
    chosen = AnswerFilter(since=view.since, until=view.until, scorer=scorer, state="failed", reason=reason)
    found = next(iter(desk.store.answers(chosen, sort="newest", limit=1).answers), None)
    error = None if found is None or found.work is None else found.work.error
    id_ = None if found is None else found.exchange.id
    return Failure(scorer=scorer, reason=reason, n=count, error=error, exchange_id=id_)


def _days(spending: Sequence[Spent], budget: Budget | None) -> list[Day]:
    most = max((one.calls for one in spending), default=0)
    return [Day(spent=one, share=_share(one, budget, most)) for one in reversed(spending)]


def _share(spent: Spent, budget: Budget | None, most: int) -> float:
    of_limits: Mapping[str, float] = {} if budget is None else shares(spent.expense, budget)
    return max(of_limits.values(), default=spent.calls / most if most else 0.0)


def _kept(desk: Desk) -> Kept:
    store = desk.store
    newest = store.exchanges(limit=READ)
    texts = [" ".join((one.question or "", one.answer or ""))[:BEGINNING] for one in newest]
    return Kept(
        name=store.name,
        size=store.size(),
        revision=store.revision(),
        manner=store.manner(),
        redacted=sum('class="redacted"' in marked(text) for text in texts),
        read=len(texts),
    )


def size_of(count: float) -> str:
    """Return "3.2 MB": bytes, in powers of a thousand."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1_000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1_000
    return f"{count:,.1f} TB"


def took(seconds: float) -> str:
    """Return "12 ms" or "3.4 s"."""
    if seconds < 0.9995:
        return f"{seconds * 1_000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{timedelta(seconds=round(seconds))}"


USUAL: Final = "24h"
AT_ONCE: Final = 500
MOST: Final = 2_000
"""Answers that one form has scored again."""
FAILED: Final = frozenset(reason.value for reason in Reason if reason.state == "failed")


def worker(request: Request, desk: Desk) -> Response:
    """Answer with the state of what scores."""
    view = view_of(request, desk.now(), USUAL)
    page = read(desk, view, request.query_params.get("process"))
    told: dict[str, Any] = {
        "page": page,
        "rule": sampling_told(desk.settings),
        "in_fact": in_fact(page.kept.manner),
        "limits_in_words": list(limits(desk.settings.budget)) if desk.settings.budget else [],
        "done": _done(request),
        "length": length,
        "span_of": span_of,
        "size_of": size_of,
        "took": took,
        "many": MANY,
    }
    frame = frame_of(desk, page.health)
    return render(request, desk, view, "worker.html", framed=False, frame=frame, **told)


def _done(request: Request) -> str | None:
    """Return what the form before did, in words of ours: an address can only say how much."""
    for name, words in _DONE.items():
        count = request.query_params.get(name, "")
        if count.isascii() and count.isdigit() and len(count) < 7:
            return words.format(int(count))
    return None


_DONE: Final = {
    "ready": "{:,} answers are scored again by whoever scores next.",
    "resent": "{:,} notifications will be sent again, by a process that has their channel.",
}


def retry(request: Request, desk: Desk) -> Response:
    """Have what failed for one reason scored again, or what was put off tried at once."""
    asked = form(request)
    scorer, reason = asked.get("scorer", ""), asked.get("reason", "")
    known = in_force(desk)
    if scorer not in known:
        step = "Start a worker that has it; then come back."
        raise Refusal(409, "No process has this scorer now, so that nobody would score it.", step)
    if reason and reason not in FAILED:
        raise Refusal(400, "There is no such reason.", "Go back, and take one of the buttons.")
    window = asked.get("window", USUAL)
    since = desk.store.now() - SPANS[window if window in SPANS else USUAL]
    chosen = AnswerFilter(since=since, scorer=scorer, state="failed" if reason else "waiting", reason=reason or None)
    found = _again(desk, chosen, known)
    return back_to(request, f"/worker?{urlencode({'window': window, 'ready': found.ready + found.waiting})}#failures")


def _again(desk: Desk, chosen: AnswerFilter, known: Mapping[str, str]) -> Rescored:
    """Have the newest of them scored again, some in each transaction."""
    total, ids, after = Rescored(), list[str](), None
    while len(ids) < MOST:
        page = desk.store.answers(chosen, sort="newest", after=after, limit=AT_ONCE)
        ids += [one.exchange.id for one in page.answers]
        after = page.after
        if after is None:
            break
    for start in range(0, len(ids), AT_ONCE):
        pairs = [(id_, chosen.scorer or "") for id_ in ids[start : start + AT_ONCE]]
        total += desk.store.rescore(pairs, known, budgeted=desk.settings.budget is not None)
    return total


def resend(request: Request, desk: Desk) -> Response:
    """Have dead notifications sent again: one, or all of a channel."""
    id_, channel = form(request).get("id", ""), form(request).get("channel", "")
    if not id_ and not channel:
        raise Refusal(400, "Nothing is named that could be sent again.", "Go back, and take one of the buttons.")
    count = desk.store.resend(channel=channel or None, ids=[id_] if id_ else ())
    return back_to(request, f"/worker?{urlencode({'resent': count})}#outbox")


ROUTES = (
    screen("/worker", worker),
    screen("/worker/retry", retry, methods=("POST",)),
    screen("/worker/resend", resend, methods=("POST",)),
)
