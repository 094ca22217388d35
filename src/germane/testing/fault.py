"""The ways in which a judge and an embedder fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal[
    "status", "hang", "reset", "truncated", "drip", "garbage", "not_json", "no_choices", "empty", "malformed",
    "cut_off", "thinking", "refusal", "content_filter", "prose", "number_words", "out_of_range", "nan", "wrong_count",
    "zeros", "wrong_dimension", "other_dimension", "uneven_dimension",
]  # fmt: skip
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True)
class Fault:
    """One way in which a request fails.

    ``status``: an HTTP error with ``status``, ``code``, ``message`` and ``retry_after``. ``hang``: no reply until the
    judge closes. ``reset``: the connection breaks. ``truncated``: half a body. ``drip``: one byte at a time, for ever.
    ``garbage``: a web page. ``not_json``: calls itself JSON and is not.

    Chat only: ``no_choices``; ``empty`` contents; ``thinking`` until the tokens are used up; one ``malformed`` choice
    among good ones; all contents ``cut_off`` in the middle; ``refusal``; ``content_filter``; ``prose`` around the
    JSON. In the JSON of the contents ``number_words`` writes numbers as words, ``out_of_range`` makes every number
    1000000, ``nan`` makes it NaN, and ``wrong_count`` leaves the last item out of every list.

    Embeddings only: ``nan``, ``zeros``, ``wrong_dimension`` (0, of every vector), ``other_dimension`` (half, of every
    vector, as after a change of model), ``uneven_dimension`` (of one), ``wrong_count``.
    """

    kind: Kind
    status: int = 500
    code: str | None = None
    message: str = "this is a test"
    retry_after: float | str | None = None


def spoil_choices(choices: list[dict[str, Any]], fault: Fault | None) -> None:
    """Make the choices of a reply bad."""
    kind = fault.kind if fault else None
    if kind == "no_choices":
        choices.clear()
    elif kind == "malformed":
        choices[0]["message"]["content"] = '{"question": {"a": [1, '
    for choice in choices:
        if kind == "refusal":
            choice["message"] = {"role": "assistant", "content": None, "refusal": "I can't help with that."}
        elif kind in _ENDINGS:
            choice["finish_reason"] = _ENDINGS[kind]
        if kind in _CONTENTS:
            choice["message"]["content"] = _CONTENTS[kind](choice["message"]["content"])


def spoil_rows(rows: list[list[float]], fault: Fault | None) -> list[list[float]]:
    """Return bad vectors in place of good ones."""
    kind = fault.kind if fault else None
    if kind == "nan":
        return [[float("nan")] * len(row) for row in rows]
    if kind == "zeros":
        return [[0.0] * len(row) for row in rows]
    if kind == "wrong_dimension":
        return [[] for _ in rows]
    if kind == "other_dimension":
        return [[1.0] * (len(row) // 2) for row in rows]
    if kind == "uneven_dimension":
        return [*rows[:-1], rows[-1][:-1]]
    return rows[:-1] if kind == "wrong_count" else rows


def _in_json(change: Callable[[Any], Any]) -> Callable[[str], str]:
    """Return what changes the JSON in a content, and leaves other contents alone."""

    def changed(content: str) -> str:
        try:
            return json.dumps(_changed(json.loads(content), change), ensure_ascii=False)
        except ValueError:
            return content

    return changed


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {name: _changed(each, change) for name, each in value.items()}
    if isinstance(value, list):
        return change([_changed(each, change) for each in value])
    return change(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _in_words(value: Any) -> Any:
    if not _is_number(value):
        return value
    said = {**dict(zip("0123456789", _DIGITS, strict=True)), ".": "point", "-": "minus"}
    return " ".join(said.get(character, character) for character in f"{value:g}")


_ENDINGS: dict[Any, str] = {"thinking": "length", "cut_off": "length", "content_filter": "content_filter"}
_CONTENTS: dict[Any, Callable[[str], str]] = {
    "empty": lambda _: "",
    "thinking": lambda _: "",
    "content_filter": lambda _: "",
    "cut_off": lambda content: content[: len(content) // 2],
    "prose": lambda content: f"Sure! Here is what you asked for:\n```json\n{content}\n```\nI hope that this helps.",
    "number_words": _in_json(_in_words),
    "out_of_range": _in_json(lambda value: 1_000_000 if _is_number(value) else value),
    "nan": _in_json(lambda value: float("nan") if _is_number(value) else value),
    "wrong_count": _in_json(lambda value: value[:-1] if isinstance(value, list) else value),
}
