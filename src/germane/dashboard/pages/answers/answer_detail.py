"""One answer: its score and why, what people say of it, and the acts on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode, urlsplit
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from germane.annotation import RECORDED, Feedback
from germane.dashboard.pages.answers import rescore
from germane.dashboard.pages.answers.query_params import Asked, asked_of
from germane.dashboard.pages.answers.serialize import answer_as_dict
from germane.dashboard.web.forms import form
from germane.dashboard.web.http_error import Refusal
from germane.dashboard.web.templates import render
from germane.dashboard.web.urls import is_local, root_of, screen
from germane.exchange import Context, Exchange
from germane.insights.context import Desk
from germane.insights.defaults import RELEVANCY, SIMILARITY
from germane.insights.explanation import Why, finite, is_refusal, why
from germane.insights.window import view_of
from germane.score import Score
from germane.storage import Disagreement, Neighbours, RouteMean, Sheet, Work

WEEK: Final = timedelta(days=7)
OPEN: Final = frozenset({"pending", "running"})
DASHBOARD: Final = "dashboard"
"""Who labels here: nobody says a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One score, with why it is what it is."""

    score: Score
    why: Why
    work: Work | None
    """Its task, where it is scored again or that failed."""

    @property
    def is_refusal(self) -> bool:
        """Whether it says that the answer does not answer."""
        return is_refusal(self.score)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """Where a score stands among those of its route and fingerprint, in the week around it."""

    line: RouteMean
    under: float
    """Share of answers that are surely lower, in [0, 1]."""
    over: float

    @property
    def said(self) -> str:
        """Return it in words, each way not more than is sure."""
        if self.over >= self.under:
            return f"lower than {_floor(self.over)} % of answers"
        return f"higher than {_floor(self.under)} % of answers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One retrieved text, with what scorers say of it."""

    context: Context
    relevance: float | None
    used: bool | None
    """Whether a claim of the answer is quoted from it; None where that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Where the trace can be looked at."""

    host: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """All that the page shows."""

    sheet: Sheet
    main: Judged | None
    others: Sequence[Judged]
    unscored: Sequence[Work]
    """What failed, was skipped or waits, and has no score of its scorer."""
    rank: Rank | None
    chunks: Sequence[Chunk]
    trace: Trace | None
    beside: Neighbours
    disagreement: Disagreement | None
    sampled: str
    replaced: frozenset[str]
    """Ids of labels that a later one of the same person replaces."""

    @property
    def again(self) -> Sequence[Work]:
        """What is being scored again, while its score stands."""
        return [one for one in self.sheet.works if _stands(self.sheet, one)]


def answered(desk: Desk, asked: Asked, sheet: Sheet) -> Answered:
    """Put together what is shown of one exchange."""
    scores = [Judged(score=one, why=why(one), work=_work(sheet.works, one)) for one in sheet.scores]
    main = _main(scores, sheet.works, asked.view.scorer)
    chosen = asked.of(main.score.scorer if main else asked.view.scorer).chosen
    return Answered(
        sheet=sheet,
        main=main,
        others=[one for one in scores if one is not main],
        unscored=_unscored(sheet),
        rank=_rank(desk, sheet.exchange, main.score) if main else None,
        chunks=_chunks(sheet),
        trace=trace_of(desk.settings.trace_link, sheet.exchange),
        beside=desk.store.neighbours(chosen, sheet.exchange.id, sort=asked.sort),
        disagreement=_disagreement(desk, main.score) if main else None,
        sampled=sampled(sheet),
        replaced=_replaced(sheet),
    )


def _main(scores: Sequence[Judged], works: Sequence[Work], asked: str | None) -> Judged | None:
    """Return the score on show: the asked scorer's, else a usual one's; of those the newest.

    None where that scorer failed or is still at it: another one's score would hide that.
    """
    missing = {one.scorer for one in works if one.state in {"failed", *OPEN}}
    for name in (asked, RELEVANCY, SIMILARITY, *sorted({one.score.scorer for one in scores})):
        found = [one for one in scores if one.score.scorer == name]
        if found:
            return max(found, key=lambda one: one.score.scored_at or datetime.min.replace(tzinfo=UTC))
        if name in missing:
            return None
    return None


def _work(works: Sequence[Work], score: Score) -> Work | None:
    ours = (one for one in works if (one.scorer, one.fingerprint) == (score.scorer, score.fingerprint))
    return next((one for one in ours if one.again or one.error), None)


def _unscored(sheet: Sheet) -> list[Work]:
    return [one for one in sheet.works if one.state in {"failed", "skipped", *OPEN} and not _stands(sheet, one)]


def _stands(sheet: Sheet, work: Work) -> bool:
    """Whether the scorer works again on what it has scored already: what only failed until now has no score yet."""
    return work.again and any(one.scorer == work.scorer for one in sheet.scores)


def _rank(desk: Desk, exchange: Exchange, score: Score) -> Rank | None:
    """Compare with the whole days around it, which are read fastest."""
    day = exchange.started_at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    since = day - WEEK / 2 + timedelta(hours=12)
    names: Mapping[str, Any] = {"scorer": score.scorer, "route": exchange.route, "service": exchange.service}
    lines = desk.store.means(since=since, until=since + WEEK, **names)
    line = next((one for one in lines if one.fingerprint == score.fingerprint), None)
    beside = None if line is None or line.histogram is None else line.histogram.beside(score.value or 0.0)
    return None if line is None or beside is None else Rank(line=line, under=beside[0], over=beside[1])


def _floor(share: float) -> int:
    return int(share * 100 + 1e-9)


def _chunks(sheet: Sheet) -> list[Chunk]:
    contexts = sheet.exchange.contexts
    values, quotes = _relevances(sheet.scores), _quotes(sheet.scores)
    return [
        Chunk(
            context=one,
            relevance=values[place] if place < len(values) else None,
            used=None if quotes is None else any(quote in _folded(one.text) for quote in quotes),
        )
        for place, one in enumerate(contexts)
    ]


def _relevances(scores: Iterable[Score]) -> list[float]:
    """Return what scorers said of each retrieved text, where they said something of each."""
    for name in ("context_relevance", "context_similarity"):
        for one in scores:
            found = one.details.get("chunks") if one.scorer == name else None
            values = [finite(value) for value in found] if isinstance(found, list) else []
            if values and None not in values:
                return [value for value in values if value is not None]
    return []


def _quotes(scores: Iterable[Score]) -> list[str] | None:
    """Return the evidence of supported claims; None where nobody looked for any."""
    for one in scores:
        claims = one.details.get("claims") if one.scorer == "faithfulness" else None
        if isinstance(claims, list):
            kept = [claim for claim in claims if isinstance(claim, Mapping) and claim.get("supported") is True]
            return [_folded(quote) for claim in kept if isinstance(quote := claim.get("evidence"), str) and quote]
    return None


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def trace_of(template: str | None, exchange: Exchange) -> Trace | None:
    """Return where the trace can be looked at: nothing but ids goes into the address."""
    if template is None or not exchange.traced:
        return None
    ids = {"trace_id": exchange.trace_id, "span_id": exchange.span_id}
    if not all(one.isalnum() and one.isascii() for one in ids.values()):
        return None
    address = template
    for name, value in ids.items():
        address = address.replace(f"{{{name}}}", value)
    return Trace(host=urlsplit(template).hostname or "", address=address)


def _disagreement(desk: Desk, score: Score) -> Disagreement | None:
    if score.fingerprint == RECORDED:
        return None
    found = desk.store.disagreements(scorer=score.scorer, fingerprint=score.fingerprint)
    return found[0] if found else None


_SAMPLED: Final[Mapping[str | None, str]] = {
    None: "Nobody has decided yet whether it is scored.",
    "drawn": "Drawn by lot",
    "uniform": "Picked by lot within the budget",
    "route_floor": "Picked so that each route has some, within the budget",
    "suspicion": "Picked within the budget because the free local score looked bad",
    "always": "Scored whatever the draw said, by a rule or for a person's label",
    "candidate": "Waits until the interval of the budget ends, and may be picked then.",
    "not_drawn": "Not drawn",
    "budget": "Left out: the budget was used up",
}


def sampled(sheet: Sheet) -> str:
    """Return in words how it came to be scored or not, with the probability."""
    reason, chance = sheet.sampling_reason, sheet.sampling_probability
    said = _SAMPLED.get(reason, str(reason).replace("_", " ")[:60])
    if chance is None or said.endswith("."):
        return said if said.endswith(".") else f"{said}."
    stands = f": it stands for {1 / chance:.3g} answers" if chance < 1 and _is_scored(sheet) else ""
    return f"{said}, with a probability of {_chance(chance)}{stands}."


def _chance(chance: float) -> str:
    return f"{chance:.2f}" if chance >= 0.01 else f"{chance:.1g}"


def _is_scored(sheet: Sheet) -> bool:
    return bool(sheet.scores)


def _replaced(sheet: Sheet) -> frozenset[str]:
    latest = {one.user: one.id for one in sheet.feedback if one.user}
    return frozenset(one.id for one in sheet.feedback if one.user and latest[one.user] != one.id)


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
    told = rescore.score_again(desk, sheet, sent.get("scorer") or None)
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
