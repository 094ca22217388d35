"""The answer pages: the list with its exports, and a single answer with its forms."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from germane import sanitize
from germane.annotation import Feedback
from germane.dashboard.web.forms import form
from germane.dashboard.web.parameters import MAX_VALUE_LENGTH, Parameter, one_of
from germane.dashboard.web.preferences import VIEW_PARAMETERS, check_names, parse_view_params
from germane.dashboard.web.routing import RecordsResponse, http_error, is_local_path, page_route, root_of
from germane.dashboard.web.templates import render
from germane.insights import (
    AnswerExport,
    AnswerSearch,
    InsightContext,
    ViewParams,
    load_answer,
    load_answer_list,
    rescore_answer,
    session_window,
)
from germane.records import select
from germane.score import BANDS, COSINE_SCORERS, LOW_SCORE, UnscoredReason
from germane.storage import (
    Answer,
    AnswerCursor,
    AnswerDetail,
    AnswerFilter,
    AnswerSort,
    AnswerState,
    QuestionSort,
)

_Option = TypeVar("_Option", bound=str)
SORTS: Final[Mapping[AnswerSort, str]] = {
    "lowest": "lowest score",
    "highest": "highest score",
    "newest": "newest",
    "highest_cost": "highest cost",
    "slowest": "slowest",
}
STATES: Final[Mapping[AnswerState, str]] = {
    "scored": "scored",
    "failed": "failed",
    "skipped": "skipped",
    "waiting": "waiting",
    "any": "any",
}
LABELED: Final[Mapping[str, str]] = {"yes": "labeled", "no": "not labeled"}
REFUSALS: Final[Mapping[str, str]] = {"show": "shown", "hide": "hidden", "only": "only refusals"}
QUESTION_SORTS: Final[Mapping[QuestionSort, str]] = {
    "low": "most low answers",
    "answers": "most answers",
    "mean": "lowest mean",
}
MAX_TEXT_LENGTH: Final = 200
"""Maximum length of a search text in characters."""
MAX_COMMENT_LENGTH: Final = 2_000
MAX_SELECTED: Final = 50
"""Maximum number of selected answers, so that their ids fit into a URL."""
SCHEMA_VERSION: Final = 1
CSV_COLUMNS: Final = (
    "exchange_id", "trace_id", "service", "route", "started_at", "duration", "model", "prompt_version", "status",
    "question", "answer", "scorer", "fingerprint", "state", "reason", "error", "value", "label", "explanation",
    "judge", "embedder", "input_tokens", "output_tokens", "cost", "scored_at", "labels",
)  # fmt: skip
DASHBOARD_USER: Final = "dashboard"
"""User id for labels that are submitted on this page, because the form does not ask for a name."""
_SCORE_FIELDS: Final = (
    "value", "label", "explanation", "judge", "embedder", "input_tokens", "output_tokens", "cost",
)  # fmt: skip
_EXCHANGE_FIELDS: Final = (
    "id", "trace_id", "span_id", "service", "route", "question", "answer", "model", "prompt_version", "session", "user",
    "status", "error", "duration", "contexts", "history", "attributes", "started_at",
)  # fmt: skip
_TASK_FIELDS: Final = ("scorer", "fingerprint", "state", "error", "retries", "is_rescore")
LABEL_SCORES: Final = {"good": 1.0, "bad": 0.0}
_MESSAGES: Final[Mapping[str, str]] = {
    "good": "Label stored: the answer addresses the question.",
    "bad": "Label stored: the answer does not address the question.",
    "previous_good": "Label stored: the previous answer addresses the question.",
    "previous_bad": "Label stored: the previous answer does not address the question.",
    "ready": "Queued for scoring. The current score stays until the new one replaces it.",
    "no_worker": "Queued for scoring, but no worker is running. Start one with germane worker.",
    "waiting": "Already queued. The answer will be retried next.",
    "erased": "The text of this answer has been erased, so it cannot be scored again.",
    "not_sampled": "Sampling skipped this answer, so it stays unscored.",
    "unknown": "No worker runs this scorer, so the answer cannot be scored again.",
}
"""Messages shown after a form is submitted, by the value of the URL parameter ``result``."""
_TEXT_PARAMETERS: Final = ("route", "fingerprint", "label", "model", "prompt_version", "user", "session")
ATTRIBUTE_PREFIX: Final = "attributes."
_ATTRIBUTE_NAME: Final = re.compile(r"attributes\.[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")
_PARAMETERS: Final = (
    *_TEXT_PARAMETERS, "text", "question", "below", "at_least", "low", "refusals", "labeled", "state", "reason", "sort",
    "group", "order", "selection",
)  # fmt: skip
_SCORE_PARAMETERS: Final = frozenset(
    {"fingerprint", "label", "below", "at_least", "low", "refusals", "sort", "group", "order"}
)
"""Parameters that apply only to scored answers."""
_ADVANCED_PARAMETERS: Final = frozenset(
    {"label", "labeled", "model", "prompt_version", "user", "session", "fingerprint", "reason"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerQuery:
    """The search parameters in a URL."""

    search: AnswerSearch
    parameters: Mapping[str, str]
    """The valid filter parameters, excluding those of the view."""

    @property
    def is_selection(self) -> bool:
        """Whether the visitor has selected the answers one by one. The time range does not apply to them."""
        return self.search.filter.ids is not None

    def link(self, path: str, **changes: str | None) -> str:
        """Return a URL with a given path and this search's parameters. A change to None removes a parameter."""
        parameters = {**self.search.view.query, **self.parameters, **changes}
        pairs = [(name, value) for name, value in parameters.items() if value]
        if "id" not in changes:
            pairs += [("id", id_) for id_ in self.search.filter.ids or ()]
        query = urlencode(pairs)
        return f"{path}?{query}" if query else path

    def permanent_link(self, scorer: str | None) -> str:
        """Return a link that selects the same answers at any later time, even if the default scorer changes."""
        view, is_fixed = self.search.view, not self.is_selection
        return self.link(
            "/answers",
            window=None,
            since=view.since.isoformat() if is_fixed else None,
            until=view.until.isoformat() if is_fixed else None,
            scorer=scorer,
            after=str(self.search.after) if self.search.after else None,
        )

    @property
    def attributes(self) -> Mapping[str, str]:
        """The parameters that select attributes."""
        return {name: value for name, value in self.parameters.items() if name.startswith(ATTRIBUTE_PREFIX)}

    def link_to_value(self, name: str, value: object) -> str | None:
        """Return a link to the answers with this value of a parameter, or None if the name is not allowed in a URL."""
        if name.startswith(ATTRIBUTE_PREFIX) and not _ATTRIBUTE_NAME.fullmatch(name):
            return None
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if len(text) > MAX_VALUE_LENGTH or "\0" in text:
            return None
        view = self.search.view
        return view.link(f"/answers?{urlencode({name: text, 'sort': 'newest'})}")

    @property
    def is_filtered(self) -> bool:
        """Whether any filter parameter is set. The sort order does not count."""
        return self.is_selection or bool(self.parameters.keys() - {"sort", "group", "order"})

    @property
    def is_advanced(self) -> bool:
        """Whether a filter parameter in the collapsed part of the form is set."""
        return bool(self.parameters.keys() & _ADVANCED_PARAMETERS)


def parse_answer_query(request: Request, view: ViewParams) -> AnswerQuery:
    """Parse the search parameters in the URL.

    If a reason is set, failed or skipped answers are selected. Score filters are ignored for unscored answers. The time
    range is ignored if the answers are selected by id.
    """
    parameters = {name: value for name in _PARAMETERS if (value := request.query_params.get(name, "").strip())}
    attributes = {
        name: value for name, value in request.query_params.items() if value and _ATTRIBUTE_NAME.fullmatch(name)
    }
    parameters |= attributes

    state = _choose(STATES, parameters.get("state"), "scored")
    if "reason" in parameters and state in {"scored", "any"}:
        parameters["state"] = state = UnscoredReason(parameters["reason"]).state
    if state == "scored":
        sort = _choose(SORTS, parameters.get("sort"), "lowest")
    else:
        sort = "newest"
        parameters = {name: value for name, value in parameters.items() if name not in _SCORE_PARAMETERS}

    ids = tuple(dict.fromkeys(id_ for id_ in request.query_params.getlist("id") if id_))
    is_selection = bool(ids) or "selection" in parameters  # without ids, it selects nothing
    if ids:
        parameters.pop("selection", None)
    since, until = (None, None) if is_selection else (view.since, view.until)

    texts: dict[str, Any] = {name: parameters.get(name) for name in _TEXT_PARAMETERS}
    wanted = AnswerFilter(
        since=since,
        until=until,
        scorer=view.scorer,
        service=view.service,
        ids=ids if is_selection else None,
        **texts,
        question=parameters.get("question"),
        attributes=tuple((name.removeprefix(ATTRIBUTE_PREFIX), value) for name, value in attributes.items()),
        low="low" in parameters,
        refusals={"hide": False, "only": True}.get(parameters.get("refusals", "")),
        text=parameters.get("text", ""),
        below=_parse_score(parameters.get("below")),
        at_least=_parse_score(parameters.get("at_least")),
        labeled={"yes": True, "no": False}.get(parameters.get("labeled", "")),
        state=state,
        reason=parameters.get("reason"),
    )
    search = AnswerSearch(
        view=view,
        filter=wanted,
        sort=sort,
        after=AnswerCursor.parse(request.query_params.get("after", "")),
        grouped="group" in parameters,
        order=_choose(QUESTION_SORTS, parameters.get("order"), "low" if sort == "lowest" else "answers"),
    )
    return AnswerQuery(search=search, parameters=parameters)


def _choose(options: Iterable[_Option], given: str | None, default: _Option) -> _Option:
    return next((option for option in options if option == given), default)


def _parse_score(text: str | None) -> float | None:
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return value if -1 <= value <= 1.01 else None


def parse_list(request: Request, context: InsightContext) -> AnswerQuery:
    """Parse the search parameters in the URL, and check that the names in it exist."""
    query = parse_answer_query(request, parse_view_params(request, context))
    check_names(request, context, {} if query.search.filter.route is None else {"route": query.search.filter.route})
    return query


def answers(request: Request, context: InsightContext) -> Response:
    """Show a page of the answer list, with the filter form."""
    query = parse_list(request, context)
    answer_list = load_answer_list(context, query.search)
    counts = ((verdict, request.query_params.get(verdict)) for verdict in LABEL_SCORES)  # after a form was submitted
    messages = (f"{sanitize.count_noun(int(count), 'answer')} labeled {verdict}." for verdict, count in counts if count)
    content: dict[str, Any] = {
        "query": query,
        "list": answer_list,
        "scorer": answer_list.scorer,
        "sorts": SORTS,
        "states": STATES,
        "labeled": LABELED,
        "refusals": REFUSALS,
        "question_sorts": QUESTION_SORTS,
        # Cosines are low below a calibrated limit, which depends on the embedder.
        "low_below": None if answer_list.scorer in COSINE_SCORERS else LOW_SCORE,
        "bands": [name for _, name in BANDS],
        "reasons": [reason.value for reason in UnscoredReason],
        "message": next(messages, ""),
    }
    return render(request, context, query.search.view, "answers.html", **content)


def new_label(context: InsightContext, exchange_id: str, verdict: str, comment: str | None = None) -> Feedback:
    """Return a label from this dashboard. ``verdict`` is a key of ``LABEL_SCORES``."""
    return Feedback(
        id=uuid4().hex,
        exchange_id=exchange_id,
        score=LABEL_SCORES[verdict],
        comment=comment,
        user=DASHBOARD_USER,
        created_at=context.now(),
    )


def answers_csv(request: Request, context: InsightContext) -> Response:
    """Return the matching answers as a CSV file."""
    export = AnswerExport(context, parse_list(request, context).search)

    def lines() -> Iterator[str]:
        yield _csv_line(CSV_COLUMNS)
        for answer in export:
            yield _csv_line([_csv_value(value) for value in answer_as_row(answer).values()])
        if not export.complete:
            yield _csv_line(["There may be more answers: a file contains at most 10,000. Narrow the filter."])

    return _download(lines(), "text/csv; charset=utf-8", "answers.csv")


def answers_json(request: Request, context: InsightContext) -> Response:
    """Return the matching answers as a JSON file."""
    query = parse_list(request, context)
    export, view = AnswerExport(context, query.search), query.search.view
    wanted = export.search.filter
    selection = {
        "since": view.since.isoformat(),
        "until": view.until.isoformat(),
        "scorer": wanted.scorer,
        "service": wanted.service,
        "filter": dict(query.parameters),
    }

    def parts() -> Iterator[str]:
        yield f'{{"schema_version": {SCHEMA_VERSION}, "query": {json.dumps(selection)}, "answers": ['
        for index, answer in enumerate(export):
            yield f"{', ' if index else ''}{json.dumps(answer_as_row(answer))}"
        yield f'], "complete": {json.dumps(export.complete)}}}\n'

    return _download(parts(), "application/json", "answers.json")


def _download(parts: Iterator[str], media_type: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(parts, media_type=media_type, headers=headers)


def _csv_line(values: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(values)
    return text.getvalue()


def _csv_value(value: Any) -> str:
    """Convert a value to a CSV cell that spreadsheets do not interpret as a formula."""
    if isinstance(value, list):
        value = " ".join(f"{number:g}" for number in value)
    return "" if value is None else sanitize.csv_cell(value) if isinstance(value, str) else repr(value)


def answer_as_row(answer: Answer) -> dict[str, Any]:
    """Return an answer as a dict of column names to values, in the order of ``CSV_COLUMNS``."""
    exchange, score, task = answer.exchange, answer.score, answer.task
    scored_by = score or task
    values = {
        **{name: getattr(exchange, name, None) for name in CSV_COLUMNS},
        **{name: getattr(score, name, None) for name in _SCORE_FIELDS},
        "exchange_id": exchange.id,
        "started_at": _isoformat(exchange.started_at),
        "scorer": scored_by.scorer if scored_by else None,
        "fingerprint": scored_by.fingerprint if scored_by else None,
        "state": "scored" if score else task.state if task else "undecided",
        "reason": task.reason.value if task and task.reason and not score else None,
        "error": task.error if task and not score else None,
        "scored_at": _isoformat(score.scored_at) if score else None,
        "labels": [label.score for label in answer.feedback],
    }
    return {name: values[name] for name in CSV_COLUMNS}


def answer_as_dict(detail: AnswerDetail) -> dict[str, Any]:
    """Return an exchange with its tasks, scores and labels as a dict for a :class:`RecordsResponse`."""
    exchange = select(detail.exchange, *_EXCHANGE_FIELDS)
    exchange["contexts"] = [select(text, "text", "id", "score") for text in detail.exchange.contexts]
    exchange["history"] = [select(message, "role", "content") for message in detail.exchange.history]
    return {
        "schema_version": SCHEMA_VERSION,
        "exchange": exchange,
        "sampling": {"reason": detail.sampling_reason, "probability": detail.sampling_probability},
        **select(detail, "erased_at", "proxy"),
        "scores": [
            select(score, "scorer", "fingerprint", *_SCORE_FIELDS, "latency", "details", "scored_at")
            for score in detail.scores
        ],
        "tasks": [select(task, *_TASK_FIELDS, "reason", "due_at") for task in detail.tasks],
        "feedback": [select(label, "score", "comment", "user", "created_at") for label in detail.feedback],
    }


def _isoformat(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def answer(request: Request, context: InsightContext) -> Response:
    """Show a single answer as a page or drawer, or return it as JSON if the client accepts JSON."""
    query, detail = parse_list(request, context), _load_detail(request, context)
    if "application/json" in request.headers.get("accept", ""):
        return RecordsResponse(answer_as_dict(detail))
    is_drawer = request.query_params.get("part") == "drawer"
    content: dict[str, Any] = {
        "query": query,
        "insight": load_answer(context, query.search, detail),
        "back": query.link("").removeprefix("?"),
        "is_drawer": is_drawer,
        "session_window": session_window(detail.exchange),
        "message": _MESSAGES.get(request.query_params.get("result", ""), ""),
    }
    template = "_answer.html" if is_drawer else "answer.html"
    return render(request, context, query.search.view, template, with_status=not is_drawer, **content)


def answer_json(request: Request, context: InsightContext) -> Response:
    """Return a single answer with its scores, tasks and labels as JSON."""
    return RecordsResponse(answer_as_dict(_load_detail(request, context)))


def _load_detail(request: Request, context: InsightContext) -> AnswerDetail:
    detail = context.store.answers.load_detail(str(request.path_params["exchange_id"]).replace("\x00", ""))
    if detail is None:
        step = "It may have been deleted under your retention settings, or not be stored yet."
        raise http_error(404, "There is no answer with this id.", step)
    return detail


def give_feedback(request: Request, context: InsightContext) -> Response:
    """Store the submitted label, and redirect to the next answer of the list, or to the same one if it is the last."""
    detail, fields = _load_detail(request, context), form(request)
    verdict = fields.get("verdict", "")
    if verdict not in LABEL_SCORES:
        raise http_error(400, "The form contains no label.", "Go back and use one of the buttons.")
    comment = fields.get("comment", "").strip()[:MAX_COMMENT_LENGTH] or None
    label = new_label(context, detail.exchange.id, verdict, comment)
    context.store.labels.add_feedback([label])
    following = fields.get("next", "")
    if not following:
        return _redirect_to_answer(request, detail.exchange.id, f"{verdict}#people")
    return _redirect_to_answer(request, following, f"previous_{verdict}")


def score_again(request: Request, context: InsightContext) -> Response:
    """Queue the answer to be scored again by one or all of its scorers, and redirect to the answer."""
    detail = _load_detail(request, context)
    result = rescore_answer(context, detail, form(request).get("scorer") or None)
    return _redirect_to_answer(request, detail.exchange.id, f"{result}#people")


def _redirect_to_answer(request: Request, exchange_id: str, result: str) -> Response:
    """Redirect to an answer, preserving the filter with which the submitted one was opened."""
    back = form(request).get("back", "")
    kept = f"{back}&" if back and is_local_path(f"/?{back}") else ""
    return RedirectResponse(f"{root_of(request.scope)}/a/{quote(exchange_id, safe='')}?{kept}result={result}", 303)


def _is_score(text: str) -> bool:
    return _parse_score(text) is not None


_SCORE: Final = "a number from -1 to 1, such as 0.5"
LIST_PARAMETERS: Final = (
    *VIEW_PARAMETERS,
    *(Parameter(name) for name in _TEXT_PARAMETERS),
    Parameter(ATTRIBUTE_PREFIX),
    Parameter("text", f"at most {MAX_TEXT_LENGTH} characters", lambda text: len(text) <= MAX_TEXT_LENGTH),
    Parameter("below", _SCORE, _is_score),
    Parameter("at_least", _SCORE, _is_score),
    one_of("low", ("1", "yes")),
    one_of("refusals", REFUSALS),
    one_of("labeled", LABELED),
    one_of("state", STATES),
    one_of("reason", UnscoredReason),
    one_of("sort", SORTS),
    Parameter("question"),
    one_of("group", ("question",)),
    one_of("order", QUESTION_SORTS),
    one_of("selection", ("1",)),
    Parameter("id", max_count=MAX_SELECTED),
    Parameter("after", "a position from a link to the next page", lambda text: AnswerCursor.parse(text) is not None),
)
_COUNT_PARAMETERS: Final = tuple(
    Parameter(verdict, "a count", lambda text: bool(re.fullmatch("[0-9]{1,2}", text))) for verdict in LABEL_SCORES
)
"""The number of answers that were labeled, shown after the form is submitted."""
_ANSWER_PARAMETERS: Final = (*LIST_PARAMETERS, one_of("part", ("drawer",)), one_of("result", _MESSAGES))
ROUTES: Final = (
    page_route("/answers", answers, parameters=(*LIST_PARAMETERS, *_COUNT_PARAMETERS)),
    page_route("/answers.csv", answers_csv, parameters=LIST_PARAMETERS),
    page_route("/answers.json", answers_json, parameters=LIST_PARAMETERS),
    page_route("/a/{exchange_id}.json", answer_json, parameters=()),
    page_route("/a/{exchange_id}", answer, parameters=_ANSWER_PARAMETERS),
    page_route("/a/{exchange_id}/feedback", give_feedback, methods=("POST",)),
    page_route("/a/{exchange_id}/rescore", score_again, methods=("POST",)),
)
