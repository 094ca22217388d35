"""Labeled rows, which are read, split into halves, and sampled in whole groups."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from germane.exchange import Context, Exchange, Message

Half = Literal["tune", "report"]
SETS = ("relevancy", "noncommittal", "faithfulness", "context_relevance", "multilingual", "adversarial")
"""File names without their extension."""
_BEFORE = re.compile(
    r"xquad-..-|clapnq-frac-|clapnq-|tpl-|bipia-|mtragun-|mtrag-f-|mtrag-appropriateness-|mtrag-completeness-"
)
_STARTED = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Row:
    """A labeled exchange, or a labeled passage if the answer is empty."""

    id: str
    question: str
    answer: str
    contexts: tuple[str, ...]
    label: float
    """Label from 0 to 1."""
    kind: str
    source: str
    group: str
    """Group of the row. Rows that are ranked against each other are in the same group."""
    set: str = ""
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        """The row's independent unit: a question or a conversation."""
        return unit(self.group)

    @property
    def half(self) -> Half:
        """The half that contains the unit."""
        return half(self.group)

    @property
    def origin(self) -> str:
        """The data set that the row comes from."""
        return re.split(r"/|\(", self.source)[0]

    @property
    def text(self) -> str:
        """The text to score: the answer, or the passage if there is no answer."""
        return self.answer or "\n".join(self.contexts)


def unit(group: str) -> str:
    """Return a group's unit: its name without the data set prefix and without suffixes."""
    name = group.partition("<::>")[0]
    return _BEFORE.sub("", name, count=1).removesuffix("-x") if _BEFORE.match(name) else name.removesuffix("-x")


def half(group: str) -> Half:
    """Return a group's half. Groups of one unit are in the same half."""
    digest = hashlib.sha256(f"tune:{unit(group)}".encode()).hexdigest()
    return "report" if int(digest[-1], 16) % 2 else "tune"


def read(folder: Path) -> list[Row]:
    """Read the rows of all existing files."""
    rows = []
    for name in SETS:
        file = folder / f"{name}.jsonl"
        for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
            found = json.loads(line)
            plain = {key: found[key] for key in ("id", "question", "answer", "label", "kind", "source", "group")}
            rows.append(
                Row(**plain, contexts=tuple(found.get("contexts") or ()), meta=found.get("meta") or {}, set=name)
            )
    return rows


def of(rows: Sequence[Row], name: str, *, origin: str | None = None, kinds: Sequence[str] = ()) -> list[Row]:
    """Return a set's rows, optionally only those of one origin and of kinds with one of these prefixes."""
    there = [row for row in rows if row.set == name and origin in (None, row.origin)]
    return [row for row in there if not kinds or row.kind.startswith(tuple(kinds))]


def sampled(rows: Sequence[Row], groups: int | None) -> list[Row]:
    """Return the rows of each origin's first ``groups`` groups in hash order."""
    by_group: dict[str, list[Row]] = {}
    for row in rows:
        by_group.setdefault(row.group, []).append(row)
    origins = dict.fromkeys(row.origin for row in rows)
    chosen = (by_hash(row.group for row in rows if row.origin == origin)[:groups] for origin in origins)
    return [row for names in chosen for name in names for row in by_group[name]]


def by_hash(groups: Iterable[str]) -> list[str]:
    """Return the distinct groups in hash order, which is independent of their content."""
    return sorted(set(groups), key=lambda group: hashlib.sha256(f"sample:{group}".encode()).digest())


def exchange(row: Row, *, passage: bool = False) -> Exchange:
    """Convert a row to an exchange. With ``passage``, the passage replaces a missing answer."""
    turns = (line.partition(": ") for line in row.meta.get("history", ()))
    return Exchange(
        id=hashlib.sha256(row.id.encode()).hexdigest()[:32], trace_id="0" * 32, span_id="0" * 16, service="benchmark",
        route=row.set, question=row.question, answer=(row.text if passage else row.answer) or None,
        contexts=tuple(Context(text) for text in row.contexts),
        history=tuple(Message("assistant" if role == "agent" else role, content) for role, _, content in turns),
        started_at=_STARTED,
    )  # fmt: skip
