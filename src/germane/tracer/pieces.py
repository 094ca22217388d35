"""The texts of a stream's chunks, which are parts of the answer or the answer so far."""

from __future__ import annotations

import re
from itertools import pairwise

from germane.recognizers import continues
from germane.tracer.events import SEPARATOR, UNNAMED, WEAK, Piece

_MIN_VARIETY = 3
"""Minimum number of different characters of a text that is not repeated by accident, as in "ha", "haha"."""
_CERTAIN = 5
"""Number of cumulative chunks of which only the last one is kept."""
_MIN_REWRITTEN = 3
"""Minimum number of chunks of a cumulative stream whose chunks differ in punctuation."""
_MIN_WORDS = 8
"""Minimum length of such a stream's last chunk, without punctuation."""
_PUNCTUATION = re.compile(r"[\W_]+")
_CURSOR = re.compile(r"(?:[^\w\s.,;:!?'\")\]}]+|\.{3}|_+)\s*\Z")
"""Marks at the end of a growing text, unlike those that end a sentence."""
_PLACEHOLDER = re.compile(r"(?s).*\w\s?(?:\.{3}|\u2026)[\W_]*")
"""A status before the text, such as ``Thinking...``."""


def join_pieces(pieces: list[str]) -> str:
    """Join the texts of a stream's chunks into the answer.

    In a cumulative stream, each chunk begins with the chunk before, and the answer is the last one. In any other
    stream, it is all chunks, without a last chunk that only repeats all chunks before it. Texts of few different
    characters may repeat by accident, and are joined.
    """
    if _is_cumulative(pieces):
        return pieces[-1]
    end = len(pieces)
    while end > _MIN_REWRITTEN and _is_footer(pieces[end - 1], pieces[0]):
        end -= 1
    if end < len(pieces) and _is_cumulative(pieces[:end]):
        return "".join(pieces[end - 1 :])
    before = "".join(pieces[:-1])
    return before if len(pieces) > 2 and pieces[-1] == before and _is_varied(before) else "".join(pieces)


def _is_cumulative(pieces: list[str]) -> bool:
    """Return whether each chunk begins with the one before, apart from a placeholder, punctuation and a cursor."""
    if all(after.startswith(before) for before, after in pairwise(pieces)):
        lengths = sorted({len(piece) for piece in pieces})  # equal chunks do not grow
        return len(lengths) > 1 and _is_varied(pieces[-1] if len(lengths) > 2 else pieces[-1][: lengths[0]])
    if len(pieces) == 2 and (shown := _CURSOR.sub("", pieces[0])) != pieces[0]:
        return " " in shown.strip() and pieces[1].startswith(shown)
    words, count = _words(pieces[-1]), 1
    if len(pieces) < _MIN_REWRITTEN or len(words) < _MIN_WORDS or not _is_varied(words):
        return False
    sizes, following = {len(words)}, words
    for piece in reversed(pieces[:-1]):
        before = _words(piece)
        if not before or not following.startswith(before):
            break
        count, following = count + 1, before
        sizes.add(len(before))
    is_whole = all(map(_PLACEHOLDER.fullmatch, pieces[:-count]))
    return len(sizes) >= (2 if is_whole else _MIN_REWRITTEN)


def _is_footer(text: str, before: str) -> bool:
    """Return whether a text follows the one before instead of replacing it."""
    return text[:1] == "\n" != before[:1]


def _words(text: str) -> str:
    return _PUNCTUATION.sub("", text)


def _is_varied(text: str) -> bool:
    return len(set(text.strip())) >= _MIN_VARIETY


class Pieces:
    """The texts of a stream's chunks by their source: the name of the event that contains them, if any."""

    def __init__(self) -> None:
        self.length = 0
        """The number of characters that are kept."""
        self.replaced = 0
        """The number of characters of chunks that later chunks have replaced."""
        self.error: str | None = None
        """The description of the error that the stream has ended with, if any."""
        self._texts: dict[str, dict[str, list[str]]] = {}
        """The texts of each source, by the call of a model."""
        self._ranks: dict[str, int] = {}
        self._last = Piece("")
        self._final = ""
        """The text of the event that ended the stream, if any."""
        self._cumulative: str | None = None
        """The source whose chunks certainly replace each other, if any."""

    def add(self, piece: Piece) -> None:
        """Add the text of one chunk."""
        if piece.is_error:
            self.error = piece.text
            return
        if not piece.text:
            return
        self.error = None
        last, self._final = self._last, piece.text if piece.is_final else self._final
        is_continued = last.text[-1:] == " " or continues(piece.text)
        if SEPARATOR in piece.source and SEPARATOR in last.source and is_continued:  # in the middle of a sentence
            piece = piece._replace(source=last.source)
        self._last = piece
        source = str(piece.rank) if piece.is_whole else piece.source
        self._ranks[source] = max(piece.rank, self._ranks.get(source, 0))
        runs = self._texts.setdefault(source, {})
        if piece.is_whole:
            runs[""] = [piece.text]
            return
        texts = runs.setdefault(piece.run, [])
        if piece.is_final and texts and " " in piece.text and not is_continued:  # a status, or all of the text
            return
        if source == self._cumulative and texts and _is_footer(piece.text, texts[-1]):
            texts[-1] += piece.text
        else:
            texts.append(piece.text)
        self.length += len(piece.text)
        may_be_cumulative = len(texts) % _CERTAIN == 0
        if source == self._cumulative or (may_be_cumulative and _is_cumulative(texts)):
            self._cumulative = source
            replaced = sum(map(len, texts[:-1]))
            self.length, self.replaced = self.length - replaced, self.replaced + replaced
            del texts[:-1]

    def texts(self) -> list[str]:
        """Return the texts of the likeliest source: the one with the highest rank, or else a cumulative one, or else
        the one with most chunks, or else the last one. Of several calls of a model, the last one has answered."""
        ranked = sorted(self._texts, key=self._rank)
        for source in ranked[::-1]:
            runs = list(self._texts[source].values())
            texts = runs[-1] if any(len(run) > 1 for run in runs) else [text for run in runs for text in run]
            rank, (name, _, word) = self._ranks[source], source.partition(SEPARATOR)
            is_one_of_many = word and sum(other.startswith(name + SEPARATOR) for other in self._texts) > 1
            is_uncertain = is_one_of_many or rank in {UNNAMED, WEAK}
            if not is_uncertain or _is_continuous(texts, is_weak=rank == WEAK):
                return [self._final] if self._final.startswith(join_pieces(texts)) else texts
            if not is_one_of_many:
                break
        return []

    def _rank(self, source: str) -> tuple[int, bool, int]:
        return self._ranks[source], source == self._cumulative, sum(map(len, self._texts[source].values()))


def _is_continuous(texts: list[str], *, is_weak: bool) -> bool:
    """Return whether texts are parts of one text, unlike the statuses of a call, each of which is a text of its own."""
    if len(texts) == 1 or _is_cumulative(texts):
        return not is_weak or len(texts) > 1
    if any(before[-1] == " " or after[0] == " " for before, after in pairwise(texts)):
        return True
    begins = "".join(text[0] for text in texts[1:])
    is_new = any(map(str.isupper, begins)) or (is_weak and any(map(str.islower, begins)))
    return not is_new and not any(" " in text for text in texts)
