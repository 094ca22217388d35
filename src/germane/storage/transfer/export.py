"""Fast reading of exchanges for an export, and encoding as JSON lines.

The database formats times as text, because converting them in Python would take much of an export's time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from json.encoder import encode_basestring
from operator import itemgetter
from typing import Any, Final, NamedTuple, cast

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Float,
    Integer,
    Select,
    Text,
    func,
    select,
    type_coerce,
)

from germane.storage.archive.dialect import NAME as ARCHIVE
from germane.storage.db.functions import json_text
from germane.storage.db.types import Json, UtcDateTime
from germane.storage.transfer.record import (
    COLUMNS,
    FIRST_EXPONENT,
    LISTS,
    NAMES,
    TABLES,
    VERSION,
    canonical_json,
    canonical_number,
    escape_unsafe,
)

StoredRow = Sequence[Any]
"""Values of ``COLUMNS``, with times as ISO 8601 text in UTC and JSON as text. The exchange's id may follow."""
FlatRows = tuple[Sequence[Any], Sequence[Sequence[Any]]]
"""The values of an exchange, and those of each of its rows, which together have the values of ``FLAT_COLUMNS``."""
_EXCHANGE_COLUMNS: Final = (
    "exchange_id", "trace_id", "service", "route", "model", "prompt_version", "started_at", "duration", "question",
    "answer", "contexts", "status",
)  # fmt: skip
_TASK_COLUMNS: Final = ("scorer", "fingerprint", "state", "reason")
_SCORE_COLUMNS: Final = ("value", "label", "explanation", "judge", "cost", "scored_at")
FLAT_COLUMNS: Final = (*_EXCHANGE_COLUMNS, *_TASK_COLUMNS, *_SCORE_COLUMNS, "weight")


class StoredRecord(NamedTuple):
    """The rows of an exchange and its tasks, scores and labels, as the database stores them."""

    exchange: StoredRow
    parts: dict[str, list[StoredRow]]
    """Rows by part name: ``task``, ``score``, ``feedback`` or ``draw``. Parts without rows are missing."""

    @property
    def id(self) -> str:
        """The id of the exchange."""
        return cast("str", self.exchange[_ID])

    def dump(self) -> str:
        """Encode the record as one line of JSON, which ``parse_line`` reads."""
        parts = [f'{{"version":{VERSION},"exchange":{_ENCODERS["exchange"](*self.exchange)}']
        for name, part in LISTS.items():
            if rows := self.parts.get(part):
                encode = _ENCODERS[part]
                parts.append(f'"{name}":[{",".join([encode(*row) for row in rows])}]')
        return escape_unsafe(",".join(parts) + "}")

    def flatten(self) -> FlatRows:
        """Return one row for each scorer that the exchange was assigned to, scored or not.

        The values of the exchange, which all rows share, are returned separately.
        """
        scores = {score[:2]: score for score in self.parts.get("score", ())}  # by scorer and fingerprint
        sampled = self.exchange[_SAMPLED]
        rows = []
        for task in self.parts.get("task", ()):
            fingerprint = task[_SCORED_AS] or task[_FINGERPRINT]
            scorer, _, state, reason = _OF_TASK(task)
            score = scores.get((scorer, fingerprint))
            probability = (score and score[_SCORE_SAMPLED]) or sampled
            values = _UNSCORED if score is None else _OF_SCORE(score)
            weight = 1.0 / probability if probability else None
            rows.append((scorer, fingerprint, state, reason, *values, weight))
        *values, contexts, status = _OF_EXCHANGE(self.exchange)
        texts = [context["text"] for context in json.loads(contexts)]
        return (*values, _PLAIN.encode(texts), status), rows


@cache
def select_stored(part: str, dialect: str) -> Select[Any]:
    """Return a query for the stored rows of a part. Rows of tasks, scores and labels end with their exchange's id."""
    columns = [_stored(column, dialect) for column in COLUMNS[part]]
    return select(*columns) if part == "exchange" else select(*columns, TABLES[part].c.exchange_id)


def _stored(column: Column[Any], dialect: str) -> ColumnElement[Any]:
    if isinstance(column.type, Json):
        return json_text(column, dialect)
    if not isinstance(column.type, UtcDateTime):
        return column
    if dialect == ARCHIVE:
        moment = func.strftime(column, "%Y-%m-%dT%H:%M:%S.%f")
    elif dialect == "sqlite":
        moment = func.replace(type_coerce(column, Text()), " ", "T")
    else:
        moment = func.to_char(func.timezone("UTC", column), 'YYYY-MM-DD"T"HH24:MI:SS.US')
    return func.replace(moment, ".000000", "", type_=Text()) + "+00:00"


def _encode_float(value: float) -> str:
    if -FIRST_EXPONENT < value < FIRST_EXPONENT:  # avoids two function calls for almost every number
        return repr(value + 0.0)
    return repr(canonical_number(value)) if math.isfinite(value) else "null"


def _encode_json(text: str) -> str:
    return _cached_json(text) if len(text) < _MAX_CACHED else canonical_json(text)


def _encoder(columns: Sequence[Column[Any]]) -> Callable[..., str]:
    """Compile a function that encodes the values of a row as JSON, without nulls. A loop would take twice as long."""
    names = [column.name for column in columns]
    pieces = [_piece(column, "{" if column is columns[0] else ",") for column in columns]
    used = {"canonical_json": _encode_json, "encode_float": _encode_float, "quote": encode_basestring}
    # The exchange's id, which may follow the values, is omitted.
    compiled = eval(f"lambda {', '.join(names)}, *_: ''.join(({', '.join(pieces)}, '}}'))", used)  # noqa: S307 - contains only names of our columns
    return cast("Callable[..., str]", compiled)


def _piece(column: Column[Any], before: str) -> str:
    """Return the expressions for a column's name and value in JSON."""
    by_type: dict[type, str] = {
        Json: "canonical_json({})",
        UtcDateTime: """'"' + {} + '"'""",
        Boolean: "'true' if {} else 'false'",
        Float: "encode_float({})",
        Integer: "str({})",
        Text: "quote({})",
    }
    template = next(text for column_type, text in by_type.items() if isinstance(column.type, column_type))
    key, value = repr(f'{before}"{column.name}":'), template.format(column.name)
    return f"'' if {column.name} is None else {key} + ({value})" if column.nullable else f"{key}, {value}"


_ID, _SAMPLED = map(NAMES["exchange"].index, ("id", "sampling_probability"))
_FINGERPRINT, _SCORED_AS = map(NAMES["task"].index, ("fingerprint", "scored_as"))
_SCORE_SAMPLED: Final = NAMES["score"].index("sampling_probability")
_OF_EXCHANGE: Final = itemgetter(_ID, *map(NAMES["exchange"].index, _EXCHANGE_COLUMNS[1:]))
_OF_TASK: Final = itemgetter(*map(NAMES["task"].index, _TASK_COLUMNS))
_OF_SCORE: Final = itemgetter(*map(NAMES["score"].index, _SCORE_COLUMNS))
_UNSCORED: Final = (None,) * len(_SCORE_COLUMNS)
_PLAIN: Final = json.JSONEncoder(ensure_ascii=False)
_MAX_CACHED: Final = 500
"""Length from which JSON is not cached: a thousand long texts, most of which differ, would fill the memory."""
_cached_json = lru_cache(maxsize=1024)(canonical_json)
_ENCODERS: Final = {part: _encoder(columns) for part, columns in COLUMNS.items()}
