"""The texts of an exchange as a judge may see them: clean, cut to size, copies of the question taken out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from germane.exchange import Exchange
from germane.scorers.base.text import clean, cut, is_blank
from germane.scorers.prompting.template import fence_for

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


ANSWER_LIMIT = 16_000
"""Bytes of the answer that a judge is shown: no tokenizer makes more tokens than bytes."""
QUESTION_LIMIT = 4_000
CONTEXTS_LIMIT = 32_000
"""Bytes of all contexts together; each has an equal share, and what one leaves over goes to the others."""
TURNS = 4
"""Earlier turns that are shown, the last ones."""
TURN_LIMIT = 1_000


@dataclass(frozen=True)
class Material:
    """What a judge may be shown of one exchange."""

    question: str
    answer: str
    contexts: tuple[str, ...] = ()
    """Those with anything in them, in their order."""
    history: str = ""
    """The last earlier turns, a line each; empty where there were none."""
    cut: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Which texts were cut: characters shown and there, by name."""
    copies_removed: bool = False
    """Whether copies of the question were taken out of the answer."""

    @property
    def only_copies(self) -> bool:
        """Whether the answer was nothing but copies of the question."""
        return self.copies_removed and not any(character.isalnum() for character in self.answer)

    def values(self, **more: str) -> dict[str, str]:
        """Return what fills a prompt: question, answer, history, a fence that none of them could know, and more."""
        given = {"question": self.question, "answer": self.answer, "history": self.history, **more}
        return {**given, "fence": fence_for(*given.values())}

    def details(self) -> dict[str, object]:
        """Return what a score's details must say of how the texts were changed; nothing where they were not."""
        changed: dict[str, object] = (
            {"cut": {name: dict(sizes) for name, sizes in self.cut.items()}} if self.cut else {}
        )
        return {**changed, "copies_removed": True} if self.copies_removed else changed


def material_of(
    exchange: Exchange, *, remove_copies: bool = True, answer_limit: int = ANSWER_LIMIT, contexts: bool = True
) -> Material:
    """Return the exchange's texts; with ``remove_copies`` copies of the question are taken out of the answer.

    Without ``contexts`` none are there, nor is any said to be cut.
    """
    question, answer = clean(exchange.question or ""), clean(exchange.answer or "")
    rest = without_copies(answer, question) if remove_copies else answer
    given = [clean(context.text) for context in exchange.contexts if contexts and not is_blank(context.text)]
    shown = dict(zip((f"context {place}" for place in range(len(given))), _shared(given), strict=True))
    texts = {"question": cut(question, QUESTION_LIMIT), "answer": cut(rest, answer_limit)}
    whole = {"question": question, "answer": rest, **dict(zip(shown, given, strict=True))}
    return Material(
        question=texts["question"],
        answer=texts["answer"],
        contexts=tuple(shown.values()),
        history=_history(exchange),
        cut={
            name: {"shown": len(text), "of": len(whole[name])}
            for name, text in {**texts, **shown}.items()
            if text != whole[name]
        },
        copies_removed=rest != answer,
    )


def _shared(texts: list[str]) -> list[str]:
    """Cut the texts so that all fit: the short ones stay whole, the long ones share what those leave."""
    left, kept = CONTEXTS_LIMIT, [""] * len(texts)
    for waiting, place in zip(
        range(len(texts), 0, -1), sorted(range(len(texts)), key=lambda at: len(texts[at])), strict=True
    ):
        kept[place] = cut(texts[place], left // waiting)
        left -= len(kept[place].encode("utf-8", "replace"))
    return kept


def _history(exchange: Exchange) -> str:
    turns = [turn for turn in exchange.history if not is_blank(turn.text)][-TURNS:]
    return "\n".join(f"{clean(turn.role)}: {cut(' '.join(clean(turn.text).split()), TURN_LIMIT)}" for turn in turns)
