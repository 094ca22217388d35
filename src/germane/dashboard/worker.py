"""Who scores, what waits, what it cost and what failed; and having failures tried again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from germane.dashboard.desk import Desk
from germane.dashboard.form import form
from germane.dashboard.frame import frame_of
from germane.dashboard.person import back_to
from germane.dashboard.refusal import Refusal
from germane.dashboard.rendering import render
from germane.dashboard.running import in_force
from germane.dashboard.sampling import in_fact, limits, sampling_told
from germane.dashboard.screen import screen
from germane.dashboard.telling import length, span_of
from germane.dashboard.view import SPANS, view_of
from germane.dashboard.worker_reading import read, size_of, took
from germane.score import Reason
from germane.storage import AnswerFilter, Rescored
from germane.storage.queue import MANY

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
