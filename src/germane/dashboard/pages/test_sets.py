"""Test sets: answers as JSONL for ``germane score``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from germane import sanitize
from germane.annotation import mean_label
from germane.dashboard.pages.answers import LIST_PARAMETERS, parse_list
from germane.dashboard.web.routing import http_error, page_route
from germane.insights import AnswerExport, InsightContext
from germane.storage import Answer

MAX_ROWS: Final = 1_000
"""Maximum number of answers in a test set, because each row costs judge requests whenever the set is scored."""
MAX_BYTES_IN_MEMORY: Final = 1_000_000
_CHUNK_SIZE: Final = 65_536
_MAY_BE_DATA: Final = re.compile(r"\s*(?:[\w.]*[\[({<='\"]|[^\W\d]+\s*\Z)")
"""The beginning of a list or an object that is written as text, or a missing value such as ``null``."""


def test_set(request: Request, context: InsightContext) -> Response:
    """Return the matching answers as JSONL, in the order of the list.

    Answers whose question or answer is erased or not stored are left out. The file's name and the headers state how
    many, so the file is written before the response starts.
    """
    query = parse_list(request, context)
    export = AnswerExport(context, query.search, limit=MAX_ROWS)
    ids, left_out = set[str](), 0
    with ExitStack() as on_error:
        file = on_error.enter_context(SpooledTemporaryFile(max_size=MAX_BYTES_IN_MEMORY))
        for answer in export:
            if answer.exchange.id in ids:  # scored with more than one fingerprint
                continue
            ids.add(answer.exchange.id)
            if (row := as_row(answer)) is None:
                left_out += 1
            else:
                file.write(f"{json.dumps(row)}\n".encode())
        rows = len(ids) - left_out
        if not rows:
            cause = "The text of these answers is erased or not stored." if left_out else "There are no such answers."
            raise http_error(409, cause, "Go back and choose other answers.")
        on_error.pop_all()  # the file is closed when the response has been sent
    name = f"test-set-{sanitize.count_noun(rows, 'row').replace(' ', '-')}"
    name += f"-{left_out}-left-out" if left_out else ""
    name += "" if export.complete else "-of-more"
    headers = {
        "Content-Disposition": f'attachment; filename="{name}.jsonl"',
        "X-Germane-Rows": str(rows),
        "X-Germane-Left-Out": str(left_out),
        "X-Germane-Complete": json.dumps(export.complete),
    }

    def chunks() -> Iterator[bytes]:
        with file:
            file.seek(0)
            while chunk := file.read(_CHUNK_SIZE):
                yield chunk

    return StreamingResponse(chunks(), media_type="application/x-ndjson", headers=headers)


def as_row(answer: Answer) -> dict[str, Any] | None:
    """Return an answer as a row for ``germane score``, or None if its question or answer is erased or not stored.

    The production score is in the columns ``scorer``, ``score`` and ``score_label``, the mean of the human labels in
    ``label``. Columns without a value are omitted.
    """
    exchange, score = answer.exchange, answer.score
    if exchange.question is None or exchange.answer is None:
        return None
    texts: dict[str, Any] = {"question": exchange.question, "answer": exchange.answer}
    if any(map(_MAY_BE_DATA.match, texts.values())):  # unlike in a column, texts in messages are not parsed
        messages = zip(("user", "assistant"), texts.values(), strict=True)
        texts = {"question": [{"role": role, "content": text} for role, text in messages]}
    row = {
        "id": exchange.id,
        **texts,
        "contexts": [_without_none({"text": one.text, "id": one.id, "score": one.score}) for one in exchange.contexts],
        "history": [{"role": message.role, "content": message.content} for message in exchange.history] or None,
        "route": exchange.route,
        "model": exchange.model,
        "prompt_version": exchange.prompt_version,
        "scorer": score.scorer if score else None,
        "score": score.value if score else None,
        "score_label": score.label if score else None,
        "label": mean_label(answer.feedback) if answer.feedback else None,
    }
    return _without_none(row)


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


ROUTES: Final = (page_route("/answers.jsonl", test_set, parameters=LIST_PARAMETERS),)
