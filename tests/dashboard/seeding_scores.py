"""Scores of the sample exchanges, in the format that the scorers write."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from germane.score import Score, UnscoredReason, band_of
from germane.storage import ScoringTask

if TYPE_CHECKING:
    from tests.dashboard.seeding import SampleExchange

JUDGE, EMBEDDER = "larch-judge", "text-embedding-3-small"
AROUND = {"direct": (0.85, 0.055), "partly": (0.62, 0.06), "aside": (0.3, 0.08)}
"""Mean and standard deviation of the relevancy by kind of answer."""
FAILURES = {
    UnscoredReason.JUDGE_TIMEOUT: "no reply within 60 s",
    UnscoredReason.UNPARSABLE: "the reply contains no question: 'Sure! Here you go'",
}


def sample_score(made: SampleExchange, task: ScoringTask, chance: random.Random) -> Score:
    """Return a scorer's score of an exchange, or the reason for its absence."""
    at = made.exchange.started_at + timedelta(seconds=chance.uniform(15, 90))
    common: dict[str, Any] = {"scorer": task.scorer, "fingerprint": task.fingerprint, "scored_at": at}
    if made.exchange.answer is None and task.scorer != "context_relevance":
        return Score(**common, reason=UnscoredReason.MISSING_INPUT, explanation="there is no answer")
    if chance.random() < 0.012:
        reason, said = chance.choice(sorted(FAILURES.items()))
        return Score(**common, reason=reason, explanation=said)
    return _WAYS[task.scorer](made, chance, common)


def _judged(chance: random.Random, tokens: int) -> dict[str, Any]:
    asked, written = int(tokens * chance.uniform(0.9, 1.1)), int(chance.uniform(60, 140))
    cost = round((asked * 0.15 + written * 0.6) / 1e6, 8)
    latency = round(chance.uniform(0.7, 2.4), 3)
    return {"judge": JUDGE, "input_tokens": asked, "output_tokens": written, "cost": cost, "latency": latency}


def _relevancy(made: SampleExchange, chance: random.Random, common: Mapping[str, Any]) -> Score:
    if made.kind == "refusal":
        rule = "it says that it does not know, or refuses"
        return Score(
            **common,
            value=0.0,
            label="noncommittal",
            explanation=f"The answer is noncommittal: {rule}.",
            details={"noncommittal": {"rule": rule, "text": made.exchange.answer}},
            judge=JUDGE,
            embedder=EMBEDDER,
            latency=0.001,
        )
    middle, spread = AROUND[made.kind]
    near = [min(0.99, max(0.02, chance.gauss(middle, spread))) for _ in made.reads_as]
    value = sum(near) / len(near)
    questions = [
        {"text": text, "similarity": one, "noncommittal": None} for text, one in zip(made.reads_as, near, strict=True)
    ]
    nearest = max(questions, key=lambda one: one["similarity"])
    farthest = min(questions, key=lambda one: one["similarity"])
    explanation = (
        f'{_meaning(value)}. Most similar generated question: "{nearest["text"]}" ({nearest["similarity"]:.2f}); '
        f'least similar: "{farthest["text"]}" ({farthest["similarity"]:.2f}).'
    )
    more = {"requested": 3, "usable": 3, "diversity": 0.61, "asked": "choices", "similarity": "embedding"}
    return Score(
        **common,
        value=value,
        label=band_of(value),
        explanation=explanation,
        details={"questions": questions, **more, "requests": 1},
        embedder=EMBEDDER,
        **_judged(chance, 420),
    )


def _meaning(value: float) -> str:
    for edge, meaning in (
        (0.8, "The answer addresses the question directly"),
        (0.6, "The answer addresses the question partially"),
        (0.4, "The answer misses key aspects of the question"),
    ):
        if value >= edge:
            return meaning
    return "The answer does not address the question"


def _faithfulness(made: SampleExchange, chance: random.Random, common: Mapping[str, Any]) -> Score:
    if made.kind == "refusal":
        said = "the answer makes no claims, because it is noncommittal: it says that it does not know, or refuses"
        return Score(**common, reason=UnscoredReason.MISSING_INPUT, explanation=said)
    sentences = [one.strip() for one in (made.exchange.answer or "").split(". ") if one.strip()]
    sure = {"direct": 0.92, "partly": 0.85, "aside": 0.35}[made.kind]
    claims = []
    for sentence in sentences:
        supported = chance.random() < sure
        claims.append({"claim": sentence, "supported": supported, "evidence": sentence if supported else ""})
    count = sum(bool(one["supported"]) for one in claims)
    value = count / len(claims)
    return Score(
        **common,
        value=value,
        label=band_of(value),
        explanation=f"The contexts support {count} of {len(claims)} claims.",
        details={"supported": count, "total": len(claims), "claims": claims, "requests": 1},
        **_judged(chance, 900),
    )


def _context_relevance(made: SampleExchange, chance: random.Random, common: Mapping[str, Any]) -> Score:
    missed = made.kind in {"aside", "refusal"}
    kinds = [(1, 2) if missed else (2, 3, 4) if place else (4, 5) for place in range(len(made.exchange.contexts))]
    points = [chance.choice(kind) for kind in kinds]
    chunks = [(one - 1) / 4 for one in points]
    weights = [0.9**place for place in range(len(chunks))]
    weighted = sum(one * weight for one, weight in zip(chunks, weights, strict=True)) / sum(weights)
    relevant = sum(one >= 0.5 for one in chunks)
    details = {"chunks": chunks, "relevant": relevant, "position_weighted": weighted, "mean": sum(chunks) / len(chunks)}
    return Score(
        **common,
        value=weighted,
        label=band_of(weighted),
        explanation=f"{relevant} of {len(chunks)} contexts score 0.5 or more.",
        details={**details, "ratings": points, "reading": "list parsed", "requests": 1},
        **_judged(chance, 700),
    )


_WAYS: Mapping[str, Callable[[SampleExchange, random.Random, Mapping[str, Any]], Score]] = {
    "answer_relevancy": _relevancy,
    "faithfulness": _faithfulness,
    "context_relevance": _context_relevance,
}
