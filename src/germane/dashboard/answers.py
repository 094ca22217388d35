"""The list of answers: filters in the address, sorted, page by page; as CSV and JSON too."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from germane.dashboard.asked import LABELS, SORTS, STATES, Asked, asked_of
from germane.dashboard.desk import Desk
from germane.dashboard.finding import find
from germane.dashboard.headline import scorer_on_show
from germane.dashboard.plain import COLUMNS, SCHEMA_VERSION, cells, row_of
from germane.dashboard.rendering import render
from germane.dashboard.screen import screen
from germane.dashboard.view import view_of
from germane.score import BANDS, Reason
from germane.storage import Answer

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
