"""Calibration of cosine scorers: two floors for each embedder's cosines, and labels on the calibrated scale.

Cosines from different embedders have different scales. Both floors are measured between texts from different exchanges:
the similarity of unrelated texts, and the similarity of texts on the same topic that belong to different questions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from germane.calibration import TOPIC_LEVEL, Calibration
from germane.exchange import Exchange
from germane.score import (
    BANDS,
    COSINE_SCORERS,
    GRADES,
    LOW_SCORE,
    MEANINGS,
    UNCALIBRATED,
    UNRATED_MEANINGS,
    Score,
    band_of,
)
from germane.scorers.base.fingerprint import fingerprint
from germane.scorers.base.protocols import Embedder, Vectors
from germane.scorers.base.text import (
    MAX_EMBEDDED_BYTES,
    ONLY_QUESTION_ECHO,
    is_blank,
    normalize_for_comparison,
    strip_control_characters,
    truncate_utf8,
)

VERSION = "2"
MIN_CALIBRATION_EXCHANGES = 50
"""Minimum number of exchanges with distinct questions."""
TOPIC_PERCENTILE: Final = 75
"""The same-topic floor is this percentile of the cosines between each question and its nearest different question."""
PARAPHRASE_LEVEL: Final = 0.9
"""Two questions, or two answers, are paraphrases if their similarity is at least this, on a scale from 0 for unrelated
texts to 1 for equal texts. Exchanges with paraphrased questions or answers do not count as different."""
_TEXTS_PER_REQUEST = 100
RATING_EXPONENT: Final = 0.515
"""Maps a rating of 5 to ``relevant``, 4 to ``mostly_relevant``, 3 to ``partly_relevant``, and lower ratings to
``irrelevant``; 0.5 becomes just under 0.7. The expected ratings of small judges cluster in the middle, and this spreads
them out."""
MISSING_KIND_LIMIT: Final = 0.6
"""Maximum calibrated value of an answer without the expected kind of information: the middle of ``partly_relevant``.
The check knows only common words, so it must not give a good answer the lowest label."""
CALIBRATED_SCORERS: Final = (*COSINE_SCORERS, "guarded_relevancy")
"""Scorers whose labels depend on a cosine. The value of ``guarded_relevancy`` is a rating times a cosine."""
_PAIRS: Final = {
    "answer_relevancy": "two questions",
    "question_answer_similarity": "question and answer",
    "context_similarity": "question and context",
}
"""The texts that each scorer compares."""
Mask = NDArray[np.bool_]
Calibrations = Mapping[tuple[str, str], Calibration]
"""Calibrations by embedder and scorer. They are looked up for each score, so they can be added later."""


@dataclass(frozen=True)
class CosinePairs:
    """Cosines between texts from different exchanges, which calibrate one scorer."""

    scorer: str
    embedder: str
    cosines: Vectors
    """Cosines of shape (exchanges, exchanges), with one question per row. The diagonal (same exchange) is ignored."""
    are_different: Mask | None = None
    """Whether two exchanges differ in both question and answer. The shape is the same. Defaults to True for all
    pairs."""

    @property
    def pairs(self) -> str:
        """The texts that are compared, such as ``question and answer``."""
        return _PAIRS[self.scorer]

    @property
    def n(self) -> int:
        """Number of exchanges."""
        return len(self.cosines)

    def mean(self, *, weights: Vectors) -> Vectors:
        """Return the mean cosine of pairs from different exchanges, for each resample.

        ``weights`` has the shape (resamples, n). An exchange that is drawn twice does not form a pair with itself.
        """
        off_diagonal = 1.0 - np.eye(self.n)
        total = ((weights @ (self.cosines * off_diagonal)) * weights).sum(axis=1)
        pairs = ((weights @ off_diagonal) * weights).sum(axis=1)
        means: Vectors = np.divide(total, pairs, out=np.full(len(weights), np.nan), where=pairs > 0)
        return means

    def topic_floor(self) -> float:
        """Return the 75th percentile of each question's highest cosine with a different exchange."""
        others = ~np.eye(self.n, dtype=bool)
        eligible = others if self.are_different is None else others & self.are_different
        if not eligible.any():
            eligible = others
        nearest = np.where(eligible, self.cosines, -np.inf).max(axis=1)
        return float(np.percentile(nearest[np.isfinite(nearest)], TOPIC_PERCENTILE))

    def to_calibration(self, now: datetime) -> Calibration:
        """Return the calibration with the measured floors.

        If germane ships a calibration for the embedder, the same-topic floor is at least as high as the shipped one.
        Among exchanges on many topics, the nearest question may be about a different topic.

        Raises:
            ValueError: the embedder returned the same vector for all texts.
        """
        floor = float(self.mean(weights=np.ones((1, self.n)))[0])
        shipped = DEFAULT_CALIBRATIONS.get((self.embedder, self.scorer))
        return Calibration(
            embedder=self.embedder,
            scorer=self.scorer,
            fingerprint=measurement_fingerprint(self.embedder, self.scorer),
            floor=floor,
            topic_floor=max(self.topic_floor(), floor, shipped.topic_floor if shipped else -1.0),
            n=self.n,
            made_at=now,
        )


def distinct_exchanges(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """Return the exchanges with a question and an answer, one per distinct question.

    Answers to the same question are related.
    """
    distinct: dict[str, Exchange] = {}
    for exchange in exchanges:
        if not is_blank(exchange.question or "") and not is_blank(exchange.answer or ""):
            distinct.setdefault(normalize_for_comparison(exchange.question), exchange)
    return list(distinct.values())


async def measure_cosine_pairs(exchanges: Sequence[Exchange], embedder: Embedder) -> list[CosinePairs]:
    """Return the cosines between different exchanges for each cosine scorer that has enough texts.

    Raises:
        ScoringError: the embedder failed.
    """
    distinct = distinct_exchanges(exchanges)
    if len(distinct) < MIN_CALIBRATION_EXCHANGES:
        return []
    questions = await _embed_all(embedder, [exchange.question for exchange in distinct])
    answers = await _embed_all(embedder, [exchange.answer for exchange in distinct])
    different = ~(_are_paraphrases(questions) | _are_paraphrases(answers))
    measured = [
        CosinePairs("answer_relevancy", embedder.model, questions @ questions.T, different),
        CosinePairs("question_answer_similarity", embedder.model, questions @ answers.T, different),
    ]
    first_contexts = [
        next((context.text for context in exchange.contexts if not is_blank(context.text)), None)
        for exchange in distinct
    ]
    indexes = [index for index, text in enumerate(first_contexts) if text is not None]
    if len(indexes) >= MIN_CALIBRATION_EXCHANGES:
        contexts = await _embed_all(embedder, [first_contexts[index] for index in indexes])
        different = different[np.ix_(indexes, indexes)] & ~_are_paraphrases(contexts)
        measured.append(CosinePairs("context_similarity", embedder.model, questions[indexes] @ contexts.T, different))
    return measured


def _are_paraphrases(vectors: Vectors) -> Mask:
    """Return, for each pair of texts, whether they are paraphrases according to :data:`PARAPHRASE_LEVEL`."""
    cosines = vectors @ vectors.T
    unrelated = cosines[~np.eye(len(cosines), dtype=bool)].mean()
    paraphrases: Mask = cosines - unrelated >= PARAPHRASE_LEVEL * (1 - unrelated)
    return paraphrases


def measurement_fingerprint(embedder: str, scorer: str) -> str:
    """Return the fingerprint of this version's calibration method for an embedder and a scorer."""
    return fingerprint(scorer=scorer, version=VERSION, parameters={"pairs": _PAIRS.get(scorer)}, embedder=embedder)


_MEASURED_FLOORS: Final = {
    "local:all-MiniLM-L6-v2-int8": ((0.10, 0.74), (0.05, 0.58), (0.05, 0.58)),
    # The embedder in germane.testing. Its vectors count words, so the scale is known.
    "fake-embedder": ((0.0, TOPIC_LEVEL), (0.0, TOPIC_LEVEL), (0.0, TOPIC_LEVEL)),
}
"""The floors for unrelated and same-topic texts, for each of :data:`COSINE_SCORERS`, by embedder. They were measured
with ``benchmarks/floors.py``."""
DEFAULT_CALIBRATIONS: Final = {
    (embedder, scorer): Calibration(
        embedder=embedder,
        scorer=scorer,
        fingerprint=measurement_fingerprint(embedder, scorer),
        floor=floor,
        topic_floor=topic_floor,
        n=72,
        made_at=datetime(2026, 11, 23, tzinfo=UTC),
        is_default=True,
    )
    for embedder, floors in _MEASURED_FLOORS.items()
    for scorer, (floor, topic_floor) in zip(COSINE_SCORERS, floors, strict=True)
}
"""Shipped calibrations by embedder and scorer. Measured calibrations take precedence."""


WEAK_EVIDENCE: Final = frozenset({("local:all-MiniLM-L6-v2-int8", "question_answer_similarity")})
"""Embedders and scorers whose scores have no band until they are calibrated with the user's own texts. A correct short
answer, such as "Three years.", is not similar to its question."""


async def _embed_all(embedder: Embedder, texts: Sequence[str | None]) -> Vectors:
    shown = [truncate_utf8(strip_control_characters(text or ""), MAX_EMBEDDED_BYTES) for text in texts]
    batches = [shown[start : start + _TEXTS_PER_REQUEST] for start in range(0, len(shown), _TEXTS_PER_REQUEST)]
    return np.concatenate([await embedder.embed(batch) for batch in batches])


def calibration_of(calibrations: Calibrations, embedder: str | None, scorer: str) -> Calibration | None:
    """Return the calibration that applies: a current measured one, otherwise the default one, otherwise None."""
    key = (embedder or "", scorer)
    measured = calibrations.get(key)
    return measured if measured and is_current_calibration(measured) else DEFAULT_CALIBRATIONS.get(key)


def label_calibration_of(calibrations: Calibrations, embedder: str | None, scorer: str) -> Calibration | None:
    """Return the calibration that determines labels.

    It is the result of :func:`calibration_of`, except that shipped calibrations of :data:`WEAK_EVIDENCE` are not used.
    """
    calibration = calibration_of(calibrations, embedder, scorer)
    is_weak = calibration is not None and calibration.is_default and (embedder, scorer) in WEAK_EVIDENCE
    return None if is_weak else calibration


def is_current_calibration(calibration: Calibration) -> bool:
    """Return whether a calibration was measured with this version's method."""
    return calibration.fingerprint == measurement_fingerprint(calibration.embedder, calibration.scorer)


def apply_calibration(score: Score, calibrations: Calibrations) -> Score:
    """Return the score with the label and explanation for its calibrated value, or the label ``uncalibrated``.

    Scores whose values are not cosines are returned unchanged. Two values are added to ``details``: ``calibrated``, the
    calibrated value, and ``low_below``, the cosine below which a single similarity is low.
    """
    if score.value is None or score.embedder is None or score.scorer not in CALIBRATED_SCORERS:
        return score
    details = {name: value for name, value in score.details.items() if name not in ("calibrated", "low_below")}
    calibrated = _calibrated_value(score, calibrations)
    if calibrated is not None:
        details["calibrated"] = calibrated
    if calibration := label_calibration_of(calibrations, score.embedder, score.scorer):
        details["low_below"] = calibration.cosine_of(LOW_SCORE)
    if score.label is not None and score.label not in GRADES:  # such as noncommittal: it does not depend on the value
        return replace(score, details=details)
    label, meaning = _choose_label(score, calibrated)
    if score.scorer == "context_similarity" or _is_only_question_echo(score):
        return replace(score, label=label, details=details)
    # The sentence for the label replaces that for an earlier label.
    rest = score.explanation or ""
    for earlier in (*MEANINGS.values(), *UNRATED_MEANINGS.values(), _describe_disagreement(score)):
        if rest.startswith(f"{earlier}."):
            rest = rest.removeprefix(f"{earlier}.").lstrip()
    return replace(score, label=label, explanation=f"{meaning}. {rest}".rstrip(), details=details)


def _choose_label(score: Score, calibrated: float | None) -> tuple[str, str]:
    """Return the label for a calibrated value, or for the judge's rating if there is none, and its sentence."""
    rated = _rated_value(score)
    if calibrated is None and rated is not None and not _agree(rated, score.value or 0.0):
        return UNCALIBRATED, _describe_disagreement(score)
    value = rated if calibrated is None else calibrated
    label = UNCALIBRATED if value is None else band_of(value)
    # Without a judge's rating, the sentence only states what the similarities show.
    return label, (UNRATED_MEANINGS if rated is None else MEANINGS)[label]


def _calibrated_value(score: Score, calibrations: Calibrations) -> float | None:
    """Return the calibrated value; None if no calibration applies."""
    if _is_only_question_echo(score):
        return 0.0
    similarity = score.details.get("cosine" if score.scorer == "guarded_relevancy" else "answer_similarity")
    calibration = label_calibration_of(calibrations, score.embedder, score.scorer)
    of_answers = calibration_of(calibrations, score.embedder, "question_answer_similarity")
    on_topic = of_answers.topic_share(similarity) if of_answers and isinstance(similarity, float) else 1.0
    rated = _rated_value(score, on_topic)
    if rated is not None:
        return rated if calibration or of_answers else None
    if calibration is None or score.value is None:
        return None
    calibrated = calibration.rescale(score.value)
    if of_answers and isinstance(similarity, float):
        # Small judges also generate unrelated questions from good answers, so use the higher of the two similarities.
        calibrated = max(calibrated, of_answers.rescale(similarity))
    return _limited(calibrated, score)


def _rated_value(score: Score, on_topic: float = 1.0) -> float | None:
    """Return the value, on the scale of labels, of the judge's rating of an answer; None if there is no rating."""
    rating = score.details.get("direct")
    return (
        _limited(math.pow(max(0.0, rating) * on_topic, RATING_EXPONENT), score) if isinstance(rating, float) else None
    )


def _limited(value: float, score: Score) -> float:
    return min(value, MISSING_KIND_LIMIT) if "missing_kind" in score.details else value


def _agree(rated: float, value: float) -> bool:
    """Return whether a rating and a value of unknown scale are at most a band apart, and both low or both not."""
    bands = [label for _, label in BANDS]
    ranks = bands.index(band_of(rated)), bands.index(band_of(value))
    return abs(ranks[0] - ranks[1]) <= 1 and (rated < LOW_SCORE) == (value < LOW_SCORE)


def _describe_disagreement(score: Score) -> str:
    rating, similarity = score.details.get("direct"), score.details.get("cosine", score.value)
    points = f"{1 + 4 * rating:.1f}".removesuffix(".0") if isinstance(rating, float) else "unknown"
    return f"Labels disagree: judge {points} of 5, similarity {similarity:z.2f}; run germane calibrate --save"


def _is_only_question_echo(score: Score) -> bool:
    return score.value == 0 and score.explanation == ONLY_QUESTION_ECHO
