"""Waves of drawn answers: a page that lists them, and one that shows their answers one after another to be labeled."""

from __future__ import annotations

import re
from typing import Any, Final, cast, get_args

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from germane import sanitize
from germane.dashboard.pages.answers import DASHBOARD_USER
from germane.dashboard.web.forms import form
from germane.dashboard.web.preferences import (
    VIEW_PARAMETERS,
    parse_moment,
    parse_view_params,
    redirect_after_form,
    stored_name,
    submitted_name,
)
from germane.dashboard.web.routing import http_error, page_route, root_of, usage_errors_as_conflict
from germane.dashboard.web.templates import render
from germane.errors import UsageError
from germane.insights import WINDOWS, InsightContext, draw_wave, load_labeled_window
from germane.storage import LabelWave, Verdict, new_wave_id

COUNT: Final = 50
"""Number of answers that the button draws."""
DEFAULT_WINDOW: Final = "30d"
WAVE_ID: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9a-f]{8}")
UNDO: Final = "undo"
SKIP_REST: Final = "skip_rest"


def label_waves(request: Request, context: InsightContext) -> Response:
    """Show the newest waves, and the form to draw another one."""
    view = parse_view_params(request, context, DEFAULT_WINDOW)
    services = context.store.trends.window_summary(since=view.since, until=view.until).services
    content: dict[str, Any] = {
        "waves": context.store.draws.list_waves(),
        "drawn_services": sorted({group.service for group in services}),
        "drawn_scorers": sorted({group.scorer for group in services}),
        "count": COUNT,
        "new_wave": new_wave_id(context.now()),
        "window": DEFAULT_WINDOW,
    }
    return render(request, context, view, "labels.html", **content)


def draw_answers(request: Request, context: InsightContext) -> Response:
    """Draw a wave, and redirect to its first answer. A form that is submitted twice draws one wave."""
    fields = form(request)
    new_wave = WAVE_ID.fullmatch(fields.get("wave", ""))
    until = parse_moment(fields.get("until")) or context.now()
    since = parse_moment(fields.get("since")) or until - WINDOWS.get(fields.get("window", ""), WINDOWS[DEFAULT_WINDOW])
    names = {name: fields.get(name) or None for name in ("scorer", "service")}
    with usage_errors_as_conflict("Go back and choose a longer window, or wait until more answers are scored."):
        wave = draw_wave(context.store, COUNT, since, until, wave=new_wave and new_wave[0], **names)
    return RedirectResponse(f"{root_of(request.scope)}/labels/{wave.id}", 303)


def label_drawn(request: Request, context: InsightContext) -> Response:
    """Show the next answer of a wave without its scores and labels, or the counts after the last one."""
    wave = _load_wave(request, context)
    following = context.store.draws.next_answer(wave.id)
    exchanges = context.store.answers.get_exchanges([] if following is None else [following[1]])
    content: dict[str, Any] = {
        "wave": wave,
        "labeled": None if following else load_labeled_window(context.store, scorer=wave.scorer, wave=wave.id),
        "exchange": next(iter(exchanges.values()), None),
        "display_name": stored_name(request),
        "count": COUNT,
        "new_wave": new_wave_id(context.now()),
        "saveable": "",
    }
    return render(request, context, parse_view_params(request, context), "label.html", **content)


def settle_drawn(request: Request, context: InsightContext) -> Response:
    """Store what a person said about a drawn answer, or take back the last label, and redirect to the next answer."""
    wave, fields = _load_wave(request, context), form(request)
    verdict, user = fields.get("verdict", ""), submitted_name(request) or DASHBOARD_USER
    if verdict not in {UNDO, SKIP_REST, *get_args(Verdict)}:
        raise http_error(400, "The form contains no label.", "Go back and use one of the buttons.")
    with usage_errors_as_conflict("It may have been deleted. Open the page again to see the next answer."):
        if verdict == UNDO:
            context.store.draws.undo(wave.id, user=user)
        elif verdict == SKIP_REST:
            context.store.draws.skip_rest(wave.id, user=user)
        else:
            context.store.draws.settle(wave.id, fields.get("exchange_id", ""), cast(Verdict, verdict), user=user)
    return redirect_after_form(request, f"/labels/{wave.id}")


def _load_wave(request: Request, context: InsightContext) -> LabelWave:
    wave = sanitize.line(str(request.path_params["wave"]), 60)
    try:
        return context.store.draws.get_wave(wave)
    except UsageError:
        step = "Its answers may have been deleted under your retention settings."
        raise http_error(404, "There is no wave with this id.", step) from None


ROUTES: Final = (
    page_route("/labels", label_waves, parameters=VIEW_PARAMETERS),
    page_route("/labels/draw", draw_answers, methods=("POST",)),
    page_route("/labels/{wave}", label_drawn, parameters=VIEW_PARAMETERS),
    page_route("/labels/{wave}", settle_drawn, methods=("POST",)),
)
