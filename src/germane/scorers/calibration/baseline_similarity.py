"""Baseline similarity of an embedder: cosines of texts from different exchanges, which are unrelated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from germane.calibration import Calibration
from germane.exchange import Exchange
from germane.scorers.base.fingerprint import fingerprint
from germane.scorers.base.protocols import Embedder, Vectors
from germane.scorers.base.text import is_blank, normalize_for_comparison, strip_control_characters, truncate_utf8

VERSION = "1"
MIN_CALIBRATION_EXCHANGES = 50
"""Minimum number of exchanges with different questions."""
HIGH_PERCENTILE = 95
"""Percentile of unrelated pairs that is reported as ``high``."""
MAX_EMBEDDED_BYTES = 8_000
"""Limit of one text that is embedded, the same as for scoring."""
_TEXTS_PER_REQUEST = 100


@dataclass(frozen=True)
class UnrelatedPairs:
    """Cosines of unrelated pairs, from which one scorer is calibrated."""

    scorer: str
    pairs: str
    """The compared texts, such as ``question and answer``."""
    embedder: str
    cosines: Vectors
    """Shape (exchanges, exchanges). The diagonal holds pairs of one exchange and is ignored."""

    @property
    def n(self) -> int:
        """Number of exchanges."""
        return len(self.cosines)

    def mean(self, *, weights: Vectors) -> Vectors:
        """Return the mean cosine of pairs of different exchanges per resample.

        ``weights`` has shape (resamples, n). An exchange that is drawn twice forms no pair with itself.
        """
        off_diagonal = 1.0 - np.eye(self.n)
        total = ((weights @ (self.cosines * off_diagonal)) * weights).sum(axis=1)
        pairs = ((weights @ off_diagonal) * weights).sum(axis=1)
        means: Vectors = np.divide(total, pairs, out=np.full(len(weights), np.nan), where=pairs > 0)
        return means

    def to_calibration(self, now: datetime) -> Calibration:
        """Return the calibration to store, with the mean as its floor.

        Raises:
            ValueError: the embedder gives all texts the same vector.
        """
        return Calibration(
            embedder=self.embedder,
            scorer=self.scorer,
            fingerprint=fingerprint(
                scorer=self.scorer, version=VERSION, parameters={"pairs": self.pairs}, embedder=self.embedder
            ),
            floor=float(self.mean(weights=np.ones((1, self.n)))[0]),
            high=float(np.percentile(self.cosines[~np.eye(self.n, dtype=bool)], HIGH_PERCENTILE)),
            n=self.n,
            made_at=now,
        )


def distinct_exchanges(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """Return the exchanges with question and answer, one per question: repeated questions are not unrelated."""
    distinct: dict[str, Exchange] = {}
    for exchange in exchanges:
        if not is_blank(exchange.question or "") and not is_blank(exchange.answer or ""):
            distinct.setdefault(normalize_for_comparison(exchange.question), exchange)
    return list(distinct.values())


async def measure_unrelated_pairs(exchanges: Sequence[Exchange], embedder: Embedder) -> list[UnrelatedPairs]:
    """Return the cosines of unrelated pairs for each cosine scorer that has enough texts.

    Raises:
        ScoringError: the embedder failed.
    """
    distinct = distinct_exchanges(exchanges)
    if len(distinct) < MIN_CALIBRATION_EXCHANGES:
        return []
    questions = await _embed_all(embedder, [exchange.question for exchange in distinct])
    answers = await _embed_all(embedder, [exchange.answer for exchange in distinct])
    measured = [
        UnrelatedPairs("answer_relevancy", "question and question", embedder.model, questions @ questions.T),
        UnrelatedPairs("question_answer_similarity", "question and answer", embedder.model, questions @ answers.T),
    ]
    first_contexts = [
        next((context.text for context in exchange.contexts if not is_blank(context.text)), None)
        for exchange in distinct
    ]
    indexes = [index for index, text in enumerate(first_contexts) if text is not None]
    if len(indexes) >= MIN_CALIBRATION_EXCHANGES:
        contexts = await _embed_all(embedder, [first_contexts[index] for index in indexes])
        cosines = questions[indexes] @ contexts.T
        measured.append(UnrelatedPairs("context_similarity", "question and context", embedder.model, cosines))
    return measured


async def _embed_all(embedder: Embedder, texts: Sequence[str | None]) -> Vectors:
    shown = [truncate_utf8(strip_control_characters(text or ""), MAX_EMBEDDED_BYTES) for text in texts]
    batches = [shown[start : start + _TEXTS_PER_REQUEST] for start in range(0, len(shown), _TEXTS_PER_REQUEST)]
    return np.concatenate([await embedder.embed(batch) for batch in batches])
