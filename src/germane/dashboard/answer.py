"""One answer: its score and why, what people say of it, and the acts on it."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from germane.annotation import Feedback
from germane.dashboard import running
from germane.dashboard.asked import asked_of
from germane.dashboard.desk import Desk
from germane.dashboard.form import form
from germane.dashboard.judged import DASHBOARD, answered
from germane.dashboard.place import is_local, root_of
from germane.dashboard.plain import answer_as_dict
from germane.dashboard.refusal import Refusal
from germane.dashboard.rendering import render
from germane.dashboard.screen import screen
from germane.dashboard.view import view_of
from germane.storage import Sheet

COMMENT: Final = 2_000
"""Characters of a comment that are kept."""
VERDICTS: Final = {"good": 1.0, "bad": 0.0}
TOLD: Final = {
    "good": "Kept: it does answer the question.",
    "bad": "Kept: it does not answer the question.",
    "ready": "It is scored again. The score that is here stands until the new one takes its place.",
    "asleep": "It is to be scored again, but no process scores just now. Start one: germane worker",
    "waiting": "It waits to be scored already, and is tried next.",
    "erased": "Its text is erased: there is nothing left to be scored.",
    "left_out": "The draw left it out, and it stays so.",
    "unknown": "No process has this scorer: nobody could score it again.",
}


def answer(request: Request, desk: Desk) -> Response:
    """Answer with a page, a drawer, or JSON where that is asked for."""
    if "application/json" in request.headers.get("accept", ""):
        return answer_json(request, desk)
    sheet, asked = _sheet(request, desk), asked_of(request, view_of(request, desk.now()))
    content: dict[str, Any] = {
        "asked": asked,
        "shown": answered(desk, asked, sheet),
        "back": asked.link("").removeprefix("?"),
        "drawer": request.query_params.get("part") == "drawer",
        "told": TOLD.get(request.query_params.get("told", ""), ""),
    }
    name = "_answer.html" if content["drawer"] else "answer.html"
    return render(request, desk, asked.view, name, framed=not content["drawer"], **content)


def answer_json(request: Request, desk: Desk) -> Response:
    """Answer with all that is known of it."""
    return JSONResponse(answer_as_dict(_sheet(request, desk)))


def _sheet(request: Request, desk: Desk) -> Sheet:
    sheet = desk.store.sheet(str(request.path_params["exchange_id"]).replace("\x00", ""))
    if sheet is None:
        step = "It may have been deleted when its time had come, or not be written yet."
        raise Refusal(404, "There is no answer of this id.", step)
    return sheet


def give_feedback(request: Request, desk: Desk) -> Response:
    """Keep what a person says of the answer, and go back to it."""
    sheet, sent = _sheet(request, desk), form(request)
    verdict = sent.get("verdict", "")
    if verdict not in VERDICTS:
        raise Refusal(400, "That form does not say whether the answer is good.", "Go back, and take a button.")
    given = Feedback(
        id=uuid4().hex,
        exchange_id=sheet.exchange.id,
        score=VERDICTS[verdict],
        comment=sent.get("comment", "").strip()[:COMMENT] or None,
        user=DASHBOARD,
        created_at=desk.now(),
    )
    desk.store.add_feedback([given])
    return _back(request, sheet, sent.get("back", ""), verdict)


def score_again(request: Request, desk: Desk) -> Response:
    """Have one scorer, or all that have looked at it, score the answer again, and go back to it."""
    sheet, sent = _sheet(request, desk), form(request)
    told = running.score_again(desk, sheet, sent.get("scorer") or None)
    return _back(request, sheet, sent.get("back", ""), told)


def _back(request: Request, sheet: Sheet, query: str, told: str) -> Response:
    """Return to the answer, with the filter that it was come to by."""
    address = f"{root_of(request.scope)}/a/{sheet.exchange.id}?"
    kept = f"{query}&" if query and is_local(f"/?{query}") else ""
    return RedirectResponse(f"{address}{kept}{urlencode({'told': told})}#people", 303)


ROUTES = (
    screen("/a/{exchange_id}.json", answer_json),
    screen("/a/{exchange_id}", answer),
    screen("/a/{exchange_id}/feedback", give_feedback, methods=("POST",)),
    screen("/a/{exchange_id}/rescore", score_again, methods=("POST",)),
)
