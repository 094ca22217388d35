"""Simulated failures of a judge or an embedder."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

FaultKind = Literal[
    "status", "hang", "reset", "truncated", "drip", "endless", "garbage", "not_json", "empty_body", "error_body",
    "compressed", "redirect", "no_choices", "empty", "malformed",
    "cut_off", "length", "thinking", "refusal", "content_filter",
    "prose", "number_words", "out_of_range", "nan", "wrong_count",
    "zero_logprobs", "probabilities_as_logprobs", "boolean_logprobs",
    "zeros", "wrong_dimension", "other_dimension", "uneven_dimension", "booleans", "constant",
    "one_based_index", "string_index", "duplicate_index", "no_index",
]  # fmt: skip
_DIGIT_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_CHARACTER_WORDS = {**dict(zip("0123456789", _DIGIT_WORDS, strict=True)), ".": "point", "-": "minus"}
_FINISH_REASONS: dict[Any, str] = {
    "thinking": "length",
    "cut_off": "length",
    "length": "length",
    "content_filter": "content_filter",
}


@dataclass(frozen=True)
class Fault:
    """A simulated failure of one request. The following kinds are available.

    For any request:

    - ``status``: an HTTP error with ``status``, ``code``, ``message`` and ``retry_after``
    - ``hang``: no reply until the judge is closed
    - ``reset``: a connection reset
    - ``truncated``: half of the body
    - ``drip``: an endless body, sent one byte at a time
    - ``endless``: an endless body, sent as fast as the client reads it
    - ``garbage``: an HTML page
    - ``not_json``: invalid JSON with the content type of JSON
    - ``empty_body``: no content
    - ``compressed``: a gzip body of 100 MB, which germane's requests exclude
    - ``error_body``: HTTP 200 with an error that has ``code`` and ``message``
    - ``redirect``: a redirect to the same path

    For chat requests:

    - ``no_choices``: an empty list of choices
    - ``empty``: choices without content
    - ``thinking``: choices without content, because the token limit is reached
    - ``malformed``: invalid JSON in the first choice
    - ``cut_off``: half of the content, because the token limit is reached
    - ``length``: the whole content, which the server reports as cut off at the token limit
    - ``refusal``: a refusal in place of the content
    - ``content_filter``: content removed by a filter
    - ``prose``: other text around the content
    - ``number_words``: each number in the JSON written in words
    - ``out_of_range``: each number in the JSON replaced by 1000000
    - ``nan``: each number in the JSON replaced by NaN
    - ``wrong_count``: each list in the JSON without its last item
    - ``zero_logprobs``, ``probabilities_as_logprobs``, ``boolean_logprobs``: each log probability replaced by 0, by its
      probability, or by true

    For embedding requests:

    - ``nan``, ``zeros``: each number replaced by NaN or 0
    - ``wrong_dimension``: vectors of dimension 0
    - ``other_dimension``: vectors of half the dimension, as after a model change
    - ``uneven_dimension``: the last vector without its last number
    - ``wrong_count``: one vector missing
    - ``booleans``: each number replaced by true
    - ``constant``: the same vector for all texts
    - ``one_based_index``, ``string_index``, ``duplicate_index``, ``no_index``: each vector's index counted from 1, as a
      string, replaced by 0, or omitted
    """

    kind: FaultKind
    status: int = 500
    code: str | None = None
    message: str = "this is a test"
    retry_after: float | str | None = None


def corrupt_choices(choices: list[dict[str, Any]], fault: Fault | None) -> None:
    """Apply a fault to the choices of a chat reply, in place."""
    kind = fault.kind if fault else None
    if kind == "no_choices":
        choices.clear()
    elif kind == "malformed":
        choices[0]["message"]["content"] = '{"question": {"a": [1, '
    for choice in choices:
        if kind == "refusal":
            choice["message"] = {"role": "assistant", "content": None, "refusal": "I can't help with that."}
        if kind in _FINISH_REASONS:
            choice["finish_reason"] = _FINISH_REASONS[kind]
        if kind in _CORRUPT_LOGPROB and choice["logprobs"]:
            for position in choice["logprobs"]["content"]:
                for token in position["top_logprobs"]:
                    token["logprob"] = _CORRUPT_LOGPROB[kind](token["logprob"])
        if kind in _CORRUPT_CONTENT:
            choice["message"]["content"] = _CORRUPT_CONTENT[kind](choice["message"]["content"])


def corrupt_vectors(rows: list[list[float]], fault: Fault | None) -> list[list[float]]:
    """Return the vectors for an embedding reply, with a fault applied."""
    kind = fault.kind if fault else None
    if kind == "nan":
        return [[float("nan")] * len(row) for row in rows]
    if kind == "zeros":
        return [[0.0] * len(row) for row in rows]
    if kind == "wrong_dimension":
        return [[] for _ in rows]
    if kind == "other_dimension":
        return [[1.0] * (len(row) // 2 - 1) + [float(index)] for index, row in enumerate(rows)]
    if kind == "uneven_dimension":
        return [*rows[:-1], rows[-1][:-1]]
    if kind == "booleans":
        return [[True] * len(row) for row in rows]
    if kind == "constant":
        return [rows[0]] * len(rows)
    return rows[:-1] if kind == "wrong_count" else rows


def corrupt_indexes(data: list[dict[str, Any]], fault: Fault | None) -> None:
    """Apply a fault to the indexes of an embedding reply, in place."""
    kind = fault.kind if fault else None
    for item in data:
        if kind == "one_based_index":
            item["index"] += 1
        elif kind == "string_index":
            item["index"] = str(item["index"])
        elif kind == "duplicate_index":
            item["index"] = 0
        elif kind == "no_index":
            del item["index"]


def _in_json(
    *, number: Callable[[float], Any] = lambda number: number, items: Callable[[list[Any]], Any] = lambda items: items
) -> Callable[[str], str]:
    """Return a function that replaces the numbers and lists in JSON content. Other content is not changed."""

    def replace(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: replace(item) for name, item in value.items()}
        if isinstance(value, list):
            return items([replace(item) for item in value])
        return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else value

    def corrupt(content: str) -> str:
        try:
            return json.dumps(replace(json.loads(content)), ensure_ascii=False)
        except ValueError:
            return content

    return corrupt


_CORRUPT_LOGPROB: dict[Any, Callable[[float], Any]] = {
    "zero_logprobs": lambda _: 0.0,
    "probabilities_as_logprobs": math.exp,
    "boolean_logprobs": lambda _: True,
}
_CORRUPT_CONTENT: dict[Any, Callable[[str], str]] = {
    "empty": lambda _: "",
    "thinking": lambda _: "",
    "content_filter": lambda _: "",
    "cut_off": lambda content: content[: len(content) // 2],
    "prose": lambda content: f"Sure! Here is what you asked for:\n```json\n{content}\n```\nI hope that this helps.",
    "number_words": _in_json(
        number=lambda number: " ".join(_CHARACTER_WORDS.get(character, character) for character in f"{number:g}")
    ),
    "out_of_range": _in_json(number=lambda _: 1_000_000),
    "nan": _in_json(number=lambda _: float("nan")),
    "wrong_count": _in_json(items=lambda items: items[:-1]),
}
