"""Copies of the question inside the answer: they lift a reverse question without answering anything."""

from __future__ import annotations

import re

_WORD = re.compile(r"\w+")
_CLOSING = re.compile(r"[^\w\n]*[?!.:;\uff1f\u3002\u061f][^\w\n]*")
LEAST_WORDS = 3
"""Shorter questions are left alone: their words may be the answer's own."""
_TRIED = 8


def without_copies(answer: str, question: str) -> str:
    """Return the answer with every copy of the question blanked, and the marks that close it.

    A copy is all words of the question in order, whatever case and punctuation. A paraphrase stays. The time taken
    grows with the length of the texts, not with their product.
    """
    words = [match[0].casefold() for match in _WORD.finditer(question)]
    if len(words) < LEAST_WORDS or not _may_hold(answer, words):
        return answer
    found = list(_WORD.finditer(answer))
    kept, at = [], 0
    for first in _positions([match[0].casefold() for match in found], words):
        kept.append(answer[at : found[first].start()])
        at = _end_of_copy(answer, found[first + len(words) - 1].end())
    return " ".join([*kept, answer[at:]]) if kept else answer


def _may_hold(answer: str, words: list[str]) -> bool:
    """Return whether the first words are there at all: mostly not, and a long answer need not be taken apart."""
    folded = answer.casefold()
    return all(word in folded for word in words[:_TRIED])


def _positions(words: list[str], copy: list[str]) -> list[int]:
    """Return the indexes at which ``copy`` stands among the words, not overlapping."""
    text, wanted = "".join(f"{word}\n" for word in words), "".join(f"{word}\n" for word in copy)
    index, at, positions = 0, 0, []
    hit = _find(text, wanted, 0)
    while hit >= 0:
        index += text.count("\n", at, hit)
        positions.append(index)
        index, at = index + len(copy), hit + len(wanted)
        hit = _find(text, wanted, at)
    return positions


def _find(text: str, wanted: str, start: int) -> int:
    """Return where ``wanted`` stands as whole lines from ``start`` on, or -1."""
    if text.startswith(wanted, start):
        return start
    hit = text.find("\n" + wanted, start)
    return hit + 1 if hit >= 0 else -1


def _end_of_copy(answer: str, end: int) -> int:
    closing = _CLOSING.match(answer, end)
    return closing.end() if closing else end
