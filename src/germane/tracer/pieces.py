"""The texts of a stream's chunks, which are parts of the answer or the answer so far."""

from __future__ import annotations

from itertools import pairwise

from germane.tracer.shapes import Piece, names_text

_MIN_VARIETY = 3
"""Minimum number of different characters of a text that is not repeated by accident, as in "ha", "haha"."""
_CERTAIN = 5
"""Number of cumulative chunks of which only the last one is kept."""


def join_pieces(pieces: list[str]) -> str:
    """Join the texts of a stream's chunks into the answer.

    In a cumulative stream, each chunk begins with the chunk before, and the answer is the last one. In any other
    stream, it is all chunks, without a last chunk that only repeats all chunks before it. Texts of few different
    characters may repeat by accident, and are joined.
    """
    if _is_cumulative(pieces):
        return pieces[-1]
    before = "".join(pieces[:-1])
    return before if len(pieces) > 2 and pieces[-1] == before and _is_varied(before) else "".join(pieces)


def _is_cumulative(pieces: list[str]) -> bool:
    if not all(after.startswith(before) for before, after in pairwise(pieces)):
        return False
    lengths = sorted({len(piece) for piece in pieces})  # equal chunks do not grow
    return len(lengths) > 1 and _is_varied(pieces[-1] if len(lengths) > 2 else pieces[-1][: lengths[0]])


def _is_varied(text: str) -> bool:
    return len(set(text.strip())) >= _MIN_VARIETY


class Pieces:
    """The texts of a stream's chunks by their source: the name of the event that contains them, if any."""

    def __init__(self) -> None:
        self.length = 0
        """The number of characters that are kept."""
        self.replaced = 0
        """The number of characters of chunks that later chunks have replaced."""
        self._texts: dict[str, list[str]] = {}
        self._cumulative: str | None = None
        """The source whose chunks certainly replace each other, if any."""
        self._whole: str | None = None

    def add(self, piece: Piece) -> None:
        """Add the text of one chunk, which is not empty."""
        if piece.is_whole:
            self._whole = piece.text
            return
        texts = self._texts.setdefault(piece.source, [])
        texts.append(piece.text)
        self.length += len(piece.text)
        if piece.source == self._cumulative or (len(texts) == _CERTAIN and _is_cumulative(texts)):
            self._cumulative = piece.source
            replaced = sum(map(len, texts[:-1]))
            self.length, self.replaced = self.length - replaced, self.replaced + replaced
            del texts[:-1]

    def texts(self) -> list[str]:
        """Return the texts of the source that contains the answer: the one with most chunks, or else the last one."""
        if self._whole is not None or not self._texts:
            return [] if self._whole is None else [self._whole]
        return self._texts[max(reversed(self._texts), key=self._rank)]

    def _rank(self, source: str) -> tuple[bool, bool, int]:
        return names_text(source), source == self._cumulative, len(self._texts[source])
