"""Noncommittal answers flagged by germane and by two simple rules, by kind of answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from germane.scorers.refusals.rules import find_noncommittal
from labelled.figures import Values
from labelled.rows import Row
from labelled.text import table

KINDS = {
    "idk": "don't know",
    "clarification_request": "clarifying question",
    "partial_answer": "partial answer",
    "committal_answer": "substantive answer",
}
Flags = Mapping[str, tuple[int, int]]
"""(flagged, total) by kind."""
_PHRASE = re.compile(
    r"\b(i don['\u2019]t|i do not|unable|cannot|can['\u2019]t|sorry|no information"
    r"|not (?:sure|clear|specified|mentioned|provided|possible))\b",
    re.IGNORECASE,
)


def has_phrase(row: Row) -> bool:
    """Whether the answer contains one of the phrases."""
    return bool(_PHRASE.search(row.answer))


def ends_asking(row: Row) -> bool:
    """Whether the answer ends with a question mark."""
    return row.answer.rstrip().endswith("?")


RULES: Mapping[str, Callable[[Row], bool]] = {
    "short phrase list": has_phrase,
    "ends with a question mark": ends_asking,
    "either of the two": lambda row: has_phrase(row) or ends_asking(row),
    "germane's rules": lambda row: find_noncommittal(row.answer) is not None,
}


def flags(rows: Sequence[Row], flagged: Callable[[Row], bool]) -> Flags:
    """Return the number of flagged rows and the total, by kind."""
    by_kind = {kind: [row for row in rows if row.kind == kind] for kind in KINDS}
    return {kind: (sum(map(flagged, found)), len(found)) for kind, found in by_kind.items()}


def all_flags(rows: Sequence[Row], scored: Mapping[str, Values]) -> dict[str, Flags]:
    """Return the flags of the rules and the scorers. A value below 0.5 counts as a flag."""
    found = {name: flags(rows, rule) for name, rule in RULES.items()}
    for name, values in scored.items():
        asked = [row for row in rows if row.id in values]
        if asked:
            found[name] = flags(asked, lambda row, values=values: values[row.id] < 0.5)  # type: ignore[misc]  # mypy: no type for a default
    return found


def page(found: Mapping[str, Flags]) -> str:
    """Return the table in the report."""
    return table(
        ("flagged by", *KINDS.values()),
        [(name, *(f"{flagged} of {all_}" for flagged, all_ in each.values())) for name, each in found.items()],
    )


def meets(found: Mapping[str, Flags], name: str) -> bool:
    """Return whether a detector matches the two rules without flagging more substantive or all partial answers."""
    ours, phrases, asking = found[name], found["short phrase list"], found["ends with a question mark"]
    either = found["either of the two"]
    return (
        _share(ours["idk"]) >= _share(phrases["idk"])
        and _share(ours["clarification_request"]) >= _share(asking["clarification_request"])
        and _share(ours["committal_answer"]) <= _share(either["committal_answer"])
        and _share(ours["partial_answer"]) < 1
    )


def _share(flagged: tuple[int, int]) -> float:
    return flagged[0] / flagged[1] if flagged[1] else 0.0
