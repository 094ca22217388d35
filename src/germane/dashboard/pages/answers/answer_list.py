"""The list of answers: filters in the address, sorted, page by page; as CSV and JSON too."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from germane.dashboard.pages.answers.query_params import LABELS, SORTS, STATES, Asked, asked_of
from germane.dashboard.pages.answers.serialize import COLUMNS, SCHEMA_VERSION, cells, row_of
from germane.dashboard.web.templates import render
from germane.dashboard.web.urls import screen
from germane.insights.context import Desk
from germane.insights.defaults import scorer_on_show
from germane.insights.window import view_of
from germane.score import BANDS, Reason
from germane.storage import Answer, Estimate, Overall, Place, Total

PAGE: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Answers, and what is to be said of them."""

    answers: Sequence[Answer]
    after: Place | None
    looked_back_to: datetime | None
    total: Total
    mean: Estimate | None
    """Of all that the filter takes; None where one would mislead."""
    scorer: str | None
    """Whose scores are shown."""
    scorers: Sequence[str]
    routes: Sequence[str]
    services: Sequence[str]

    @property
    def said(self) -> str:
        """Return how many there are, as far as that was counted."""
        if not self.total.count and not self.total.more:
            return "none"
        if self.total.more:
            return f"more than {self.total.count:,}" if self.total.count else "not counted"
        return f"{self.total.count:,}"


def find(desk: Desk, asked: Asked, *, limit: int = PAGE) -> Found:
    """Look for answers."""
    overall = desk.store.overall(since=asked.view.since, until=asked.view.until)
    scorer = scorer_on_show(overall.services, asked.view.scorer)
    asked = asked.of(scorer)
    page = desk.store.answers(asked.chosen, sort=asked.sort, after=asked.after, limit=limit)
    return Found(
        answers=page.answers,
        after=page.after,
        looked_back_to=page.looked_back_to,
        total=desk.store.count_answers(asked.chosen),
        mean=_mean(desk, asked, overall, scorer),
        scorer=scorer,
        scorers=_names(line.scorer for line in overall.coverage),
        routes=_names(line.route for line in overall.coverage),
        services=_names(line.service for line in overall.coverage),
    )


def _names(found: Iterable[str]) -> list[str]:
    return sorted({name for name in found if name})


def _mean(desk: Desk, asked: Asked, overall: Overall, scorer: str | None) -> Estimate | None:
    """Return the mean of all that is asked for: of one group and fingerprint, and picked by no score."""
    chosen = asked.chosen
    if scorer is None or chosen.by_value:
        return None
    found = _lines_finding(desk, asked, overall, scorer)
    return found[0] if len(found) == 1 else None


def _lines_finding(desk: Desk, asked: Asked, overall: Overall, scorer: str) -> Sequence[Estimate]:
    chosen = asked.chosen
    names = {name: value for name in ("model", "prompt_version") if (value := getattr(chosen, name))}
    if len(names) > 1:
        return []
    if names:
        ((by, label),) = names.items()
        window = {"since": asked.view.since, "until": asked.view.until}
        means = desk.store.means(
            scorer=scorer, route=chosen.route, service=chosen.service, by=by, histograms=False, **window
        )
        return [line for line in means if line.label == label and _is_it(asked, line.fingerprint, newest=line.newest)]
    if chosen.route is None:
        groups = [line for line in overall.services if line.scorer == scorer]
        return [
            line
            for line in groups
            if chosen.service in {None, line.service} and _is_it(asked, line.fingerprint, newest=line.newest)
        ]
    return [
        line
        for line in overall.routes
        if (line.scorer, line.route) == (scorer, chosen.route)
        and chosen.service in {None, line.service}
        and _is_it(asked, line.fingerprint, newest=line.newest)
    ]


def _is_it(asked: Asked, fingerprint: str, *, newest: bool) -> bool:
    wanted = asked.chosen.fingerprint
    return newest if wanted is None else fingerprint == wanted


MOST: Final = 10_000
"""Answers that one file holds."""
AT_ONCE: Final = 500


def answers(request: Request, desk: Desk) -> Response:
    """Answer with a page of answers, and the form that asks for others."""
    asked = asked_of(request, view_of(request, desk.now()))
    found = find(desk, asked)
    content: dict[str, Any] = {
        "asked": asked,
        "found": found,
        "scorer": found.scorer,
        "sorts": SORTS,
        "states": STATES,
        "labels": LABELS,
        "bands": [name for _, name in BANDS],
        "reasons": [reason.value for reason in Reason],
    }
    return render(request, desk, asked.view, "answers.html", **content)


def answers_csv(request: Request, desk: Desk) -> Response:
    """Answer with the same answers as a file for a spreadsheet."""
    asked = _of_one_scorer(request, desk)
    return _file(_lines(desk, asked), "text/csv; charset=utf-8", "answers.csv")


def answers_json(request: Request, desk: Desk) -> Response:
    """Answer with the same answers as JSON."""
    asked = _of_one_scorer(request, desk)
    return _file(_parts(desk, asked), "application/json", "answers.json")


def _of_one_scorer(request: Request, desk: Desk) -> Asked:
    """Return what the page with the same address shows."""
    asked = asked_of(request, view_of(request, desk.now()))
    if asked.view.scorer:
        return asked
    overall = desk.store.overall(since=asked.view.since, until=asked.view.until)
    return asked.of(scorer_on_show(overall.services))


def _file(parts: Iterator[str], kind: str, name: str) -> Response:
    return StreamingResponse(parts, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})


class _Reading:
    """Reads answers page by page, and knows afterwards whether these were all."""

    def __init__(self, desk: Desk, asked: Asked) -> None:
        self._desk, self._asked = desk, asked
        self.complete = True

    def __iter__(self) -> Iterator[Answer]:
        left, after = MOST, self._asked.after
        while left > 0:
            page = self._desk.store.answers(
                self._asked.chosen, sort=self._asked.sort, after=after, limit=min(AT_ONCE, left)
            )
            yield from page.answers
            left -= max(len(page.answers), 1)
            after = page.after
            if after is None:
                self.complete = page.looked_back_to is None
                return
        self.complete = False


def _lines(desk: Desk, asked: Asked) -> Iterator[str]:
    reading = _Reading(desk, asked)
    yield _line(COLUMNS)
    for one in reading:
        yield _line(cells(row_of(one)))
    if not reading.complete:
        yield _line([f"There may be more: a file holds {MOST:,} answers at most. Narrow the filter."])


def _line(values: Any) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(values)
    return text.getvalue()


def _parts(desk: Desk, asked: Asked) -> Iterator[str]:
    reading, chosen = _Reading(desk, asked), asked.chosen
    window = {"since": asked.view.since.isoformat(), "until": asked.view.until.isoformat()}
    head = {**window, "scorer": chosen.scorer, "service": chosen.service, "filter": dict(asked.query)}
    yield f'{{"schema_version": {SCHEMA_VERSION}, "asked": {json.dumps(head)}, "answers": ['
    for number, one in enumerate(reading):
        yield f"{', ' if number else ''}{json.dumps(row_of(one))}"
    yield f'], "complete": {json.dumps(reading.complete)}}}\n'


ROUTES = (
    screen("/answers", answers),
    screen("/answers.csv", answers_csv),
    screen("/answers.json", answers_json),
)
