"""Where the scale of an embedder begins: cosines of texts of different exchanges, which have nothing to do with one
another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from germane.calibration import Calibration
from germane.exchange import Exchange
from germane.scorers.base.fingerprint import fingerprint
from germane.scorers.base.protocols import Embedder, Vectors
from germane.scorers.base.text import clean, cut, folded, is_blank

VERSION = "1"
LEAST = 50
"""Exchanges of different questions without which no floor is found."""
HIGH = 95
"""Per cent of unrelated pairs that stay under a floor's high value."""
LIMIT = 8_000
"""Bytes of one text that go to the embedder, as when it scores."""
_AT_ONCE = 100


@dataclass(frozen=True)
class Unrelated:
    """The cosines behind a floor of one scorer."""

    scorer: str
    pairs: str
    """What was compared: such as ``question and answer``."""
    embedder: str
    cosines: Vectors
    """Shape (exchanges, exchanges). On the diagonal stand pairs of one exchange, which are no part of it."""

    @property
    def n(self) -> int:
        """Exchanges."""
        return len(self.cosines)

    def mean(self, *, weights: Vectors) -> Vectors:
        """Return the mean cosine of pairs of two exchanges, per resample: ``weights`` has shape (resamples, n).

        An exchange that was drawn twice makes no pair with itself.
        """
        apart = 1.0 - np.eye(self.n)
        total = ((weights @ (self.cosines * apart)) * weights).sum(axis=1)
        pairs = ((weights @ apart) * weights).sum(axis=1)
        found: Vectors = np.divide(total, pairs, out=np.full(len(weights), np.nan), where=pairs > 0)
        return found

    def calibration(self, now: datetime) -> Calibration:
        """Return the floor, the mean, as it is kept.

        Raises:
            ValueError: the embedder finds all texts alike.
        """
        return Calibration(
            embedder=self.embedder,
            scorer=self.scorer,
            fingerprint=fingerprint(
                scorer=self.scorer, version=VERSION, parameters={"pairs": self.pairs}, embedder=self.embedder
            ),
            floor=float(self.mean(weights=np.ones((1, self.n)))[0]),
            high=float(np.percentile(self.cosines[~np.eye(self.n, dtype=bool)], HIGH)),
            n=self.n,
            made_at=now,
        )


def distinct(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """Return those with question and answer, each question once: the same one asked twice is not unrelated."""
    found: dict[str, Exchange] = {}
    for exchange in exchanges:
        if not is_blank(exchange.question or "") and not is_blank(exchange.answer or ""):
            found.setdefault(folded(exchange.question), exchange)
    return list(found.values())


async def unrelated(exchanges: Sequence[Exchange], embedder: Embedder) -> list[Unrelated]:
    """Return the cosines behind the floors of the scorers whose values are cosines, as far as there are enough texts.

    Raises:
        ScoringError: the embedder failed.
    """
    known = distinct(exchanges)
    if len(known) < LEAST:
        return []
    questions = await _rows(embedder, [exchange.question for exchange in known])
    answers = await _rows(embedder, [exchange.answer for exchange in known])
    found = [
        Unrelated("answer_relevancy", "question and question", embedder.model, questions @ questions.T),
        Unrelated("question_answer_similarity", "question and answer", embedder.model, questions @ answers.T),
    ]
    first = [next((one.text for one in exchange.contexts if not is_blank(one.text)), None) for exchange in known]
    places = [place for place, text in enumerate(first) if text is not None]
    if len(places) >= LEAST:
        chunks = await _rows(embedder, [first[place] for place in places])
        cosines = questions[places] @ chunks.T
        found.append(Unrelated("context_similarity", "question and context", embedder.model, cosines))
    return found


async def _rows(embedder: Embedder, texts: Sequence[str | None]) -> Vectors:
    shown = [cut(clean(text or ""), LIMIT) for text in texts]
    parts = [await embedder.embed(shown[start : start + _AT_ONCE]) for start in range(0, len(shown), _AT_ONCE)]
    return np.concatenate(parts)
