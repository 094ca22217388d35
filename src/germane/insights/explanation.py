"""Explanations of scores, built from the details that the scorer stored.

Details can have any shape, because users can write their own scorers. Unexpected values are omitted or shown unchanged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from germane.score import LOW_SCORE, NONCOMMITTAL, UNCALIBRATED, Score

MAX_ROWS: Final = 50
MAX_FACTS: Final = 20
MAX_RAW_LENGTH: Final = 4_000
"""Maximum number of displayed characters of details that have an unknown shape."""
_AGGREGATES: Final = ("weighted", "harmonic", "minimum")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationRow:
    """One part of a score. Texts come from a judge or from captured text and are untrusted."""

    text: str
    value: float | None = None
    """Value that is shown as a bar, or None for no bar."""
    verdict: str = ""
    tone: str = ""
    """``good``, ``bad`` or empty."""
    evidence: str = ""
    """A quotation or explanation that supports the verdict."""

    low_below: float | None = LOW_SCORE
    """Values below this are low. For cosines, it follows from the calibration; None if there is no calibration."""

    @property
    def is_low(self) -> bool:
        """Whether the value is low."""
        return self.value is not None and self.low_below is not None and self.value < self.low_below


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """An explanation of how a score was computed. All texts except ``lead`` are untrusted."""

    lead: str
    """A description of the computation. Trusted text."""
    headings: tuple[str, str] = ("", "")
    rows: Sequence[ExplanationRow] = ()
    total: ExplanationRow | None = None
    """The aggregate of the rows."""
    quote: str | None = None
    """The words in the answer that determined the score."""
    facts: Sequence[tuple[str, str]] = ()
    """Additional facts, as pairs of name and value."""
    raw: str = ""
    """Details of unknown shape, as JSON."""
    rows_hidden: int = 0
    """Number of rows that are not shown because they exceed the maximum."""


def explain_score(score: Score) -> Explanation:
    """Return the explanation of a score. The score must have a value."""
    if is_refusal(score):
        match = _mapping(score.details.get(NONCOMMITTAL)) or score.details
        rule, quote = _text(match.get("rule")), _text(match.get("text"))
        if not rule:
            votes = [question.get(NONCOMMITTAL) for question in map(_mapping, _list(score.details, "questions"))]
            cast = [vote for vote in votes if isinstance(vote, bool)]
            facts = [("Votes", f"{sum(cast)} of {len(cast)} for refusal")] if cast else []
            return Explanation(lead="The judge considers the answer a refusal, so it scores 0.", facts=facts)
        lead = "The answer does not address the question. A rule detected this without the judge."
        if score.scorer == "answer_relevancy":
            lead = (
                "The answer does not address the question and scores 0. A rule detected this without a judge request."
            )
        return Explanation(lead=lead, quote=quote or None, facts=[("Rule", rule)])
    explanation = _EXPLAINERS.get(score.scorer, _explain_unknown)(score)
    truncated = []
    for name, sizes in list(_mapping(score.details.get("cut")).items())[:5]:
        shown, total = (finite_number(_mapping(sizes).get(part)) for part in ("shown", "of"))
        if shown is not None and total is not None:
            truncated.append(("Truncated", f"{str(name)[:40]}: scored the first {shown:,.0f} of {total:,.0f}"))
    return replace(
        explanation,
        facts=[*explanation.facts, *truncated][:MAX_FACTS],
        rows=list(explanation.rows)[:MAX_ROWS],
        rows_hidden=max(0, len(explanation.rows) - MAX_ROWS),
    )


def is_refusal(score: Score) -> bool:
    """Return whether the answer is noncommittal according to the score."""
    return score.label == NONCOMMITTAL


def finite_number(value: object) -> float | None:
    """Return a value from a scorer's details as a float, or None if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _explain_relevancy(score: Score) -> Explanation:
    details = score.details
    rows = []
    for question in filter(None, map(_mapping, _list(details, "questions"))):
        similarity = finite_number(question.get("similarity"))
        vote = "rated as a refusal" if question.get(NONCOMMITTAL) is True else ""
        verdict = vote if similarity is not None else "no question"
        text = _text(question.get("text")) or "(erased)"
        rows.append(ExplanationRow(text=text, value=similarity, verdict=verdict, low_below=low_below(score)))
    if not rows:
        only_echo = "The answer only repeats the question, so no judge request was sent."
        return Explanation(
            lead=only_echo if details.get("copies_removed") else "The generated questions were not stored."
        )
    measure = "judge-rated similarity" if details.get("similarity") == "judge" else "mean cosine similarity"
    lead = (
        "The judge read only the answer, and generated questions that the answer responds to. "
        f"The score is their {measure} to the question asked."
    )
    diversity, requested = finite_number(details.get("diversity")), finite_number(details.get("requested"))
    facts = [] if diversity is None else [("Mutual similarity", f"{diversity:z.2f}")]
    usable = finite_number(details.get("usable"))
    if requested is not None and usable is not None and usable < requested:
        facts.append(("Usable questions", f"{usable:.0f} of {requested:.0f}"))
    n = sum(row.value is not None for row in rows)
    total = _total(score, f"mean of {n}")
    answer, rating = (finite_number(details.get(name)) for name in ("answer_similarity", "direct"))
    facts += [] if answer is None else [("Similarity of question and answer", f"{answer:z.2f}")]
    facts += [] if rating is None else [("Rating by the judge", f"{rating:z.2f}")]
    facts += [("Missing from the answer", missing)] if (missing := _text(details.get("missing_kind"))) else []
    return Explanation(lead=lead, headings=("Generated question", "Similarity"), rows=rows, total=total, facts=facts)


def low_below(score: Score) -> float | None:
    """Return the value below which a similarity of this score is low; None if the embedder is not calibrated."""
    if score.label == UNCALIBRATED:
        return None
    calibrated = finite_number(score.details.get("low_below"))
    return LOW_SCORE if calibrated is None else calibrated


def _total(score: Score, text: str) -> ExplanationRow:
    """Return the row for the whole score. It is marked as low if the score is low."""
    limit = math.inf if score.is_low else None
    calibrated = finite_number(score.details.get("calibrated"))
    verdict = "" if calibrated is None else f"calibrated {calibrated:z.2f}, {score.label}"
    if score.label == UNCALIBRATED:
        verdict = "uncalibrated, no label"
    return ExplanationRow(text=text, value=score.value, verdict=verdict, low_below=limit)


def _explain_similarity(score: Score) -> Explanation:
    lead = "The cosine similarity between the embeddings of the question and the answer, computed without a judge."
    if score.details.get("copies_removed"):
        lead += " Repetitions of the question were removed from the answer first."
    total = _total(score, "question and answer")
    return Explanation(lead=lead, headings=("Compared", "Cosine"), total=total)


def _explain_faithfulness(score: Score) -> Explanation:
    rows = _verdict_rows(score, "claims", "claim", "supported", ("supported", "not supported"), "evidence")
    lead = "The share of the answer's claims that the retrieved contexts support. The judge must quote the evidence."
    total = ExplanationRow(text=_ratio(score, "supported", "total", "claims supported"), value=score.value)
    return Explanation(lead=lead, headings=("Claim", "Verdict"), rows=rows, total=total)


def _explain_question_coverage(score: Score) -> Explanation:
    rows = _verdict_rows(score, "sub_questions", "question", "addressed", ("addressed", "missed"), "quote")
    lead = "The share of the question's parts that the answer addresses. The judge quotes the evidence."
    total = ExplanationRow(text=_ratio(score, "covered", "total", "parts addressed"), value=score.value)
    return Explanation(lead=lead, headings=("Part of the question", "Verdict"), rows=rows, total=total)


def _verdict_rows(
    score: Score, key: str, text: str, flag: str, words: tuple[str, str], evidence: str
) -> list[ExplanationRow]:
    rows = []
    for item in filter(None, map(_mapping, _list(score.details, key))):
        is_good = item.get(flag) is True
        note = f" ({note})" if (note := _text(item.get("note"))) else ""
        rows.append(
            ExplanationRow(
                text=_text(item.get(text)) or "(erased)",
                verdict=(words[0] if is_good else words[1]) + note,
                tone="good" if is_good else "bad",
                evidence=_text(item.get(evidence)),
            )
        )
    return rows


def _ratio(score: Score, part: str, whole: str, noun: str) -> str:
    count, total = finite_number(score.details.get(part)), finite_number(score.details.get(whole))
    return noun if count is None or total is None else f"{count:.0f} of {total:.0f} {noun}"


def _explain_context_relevance(score: Score) -> Explanation:
    details = score.details
    values = [finite_number(value) for value in _list(details, "chunks")]
    rows = [
        ExplanationRow(text=f"context {index}", value=value, low_below=low_below(score))
        for index, value in enumerate(values, 1)
        if value is not None
    ]
    lead = "The cosine similarity between the question and each retrieved context. Earlier contexts carry more weight."
    if "ratings" in details:
        lead = (
            "The judge rated how much each retrieved context helps to answer the question. Earlier contexts carry more "
            "weight."
        )
    means = (("position_weighted", "Weighted by position"), ("mean", "Unweighted mean"))
    facts = [(name, f"{value:z.2f}") for key, name in means if (value := finite_number(details.get(key))) is not None]
    return Explanation(lead=lead, headings=("Retrieved context", "Relevance"), rows=rows, facts=facts)


def _explain_context_coverage(score: Score) -> Explanation:
    total = ExplanationRow(text=_ratio(score, "found", "words", "words found"), value=score.value)
    missing = ", ".join(_text(word) for word in _list(score.details, "not_found")[:MAX_ROWS])
    return Explanation(
        lead="The share of the answer's words that occur in a retrieved context.",
        headings=("Words", "Share"),
        total=total,
        facts=[("Not found", missing)] if missing else [],
    )


def _explain_combined(score: Score) -> Explanation:
    details, rows = score.details, []
    for name, part in _mapping(details.get("parts")).items():
        part = _mapping(part)
        weight, reason = finite_number(part.get("weight")), _text(part.get("reason"))
        rows.append(
            ExplanationRow(
                text=str(name).replace("_", " "),
                value=finite_number(part.get("value")),
                verdict=reason.replace("_", " ") if reason else "" if weight is None else f"weight {weight:.2f}",
                evidence=_text(part.get("explanation")),
            )
        )
    missing = [_text(name) for name in _list(details, "missing")]
    facts = [("Missing", ", ".join(missing))] if missing else []
    facts += [
        (name.capitalize(), f"{value:z.2f}") for name in _AGGREGATES if (value := finite_number(details.get(name)))
    ]
    lead = "A weighted combination of several scores."
    return Explanation(lead=lead, headings=("Part", "Value"), rows=rows, facts=facts)


def _explain_rating(score: Score) -> Explanation:
    details = score.details
    rating, cosine = finite_number(details.get("rating")), finite_number(details.get("cosine"))
    facts = [] if rating is None else [("Rating", f"{rating:.1f} of 5")]
    facts += [("Intent of the question", intent)] if (intent := _text(details.get("intent"))) else []
    facts += [("Content of the answer", given)] if (given := _text(details.get("given"))) else []
    facts += [] if cosine is None else [("Cosine similarity of question and answer", f"{cosine:z.2f}")]
    facts += [("Computed from", "token probabilities")] if details.get("rated") == "expected" else []
    digits = [(str(digit), finite_number(mass)) for digit, mass in _mapping(details.get("digits")).items()]
    rows = [ExplanationRow(text=f"{digit} of 5", value=mass) for digit, mass in sorted(digits) if mass is not None]
    lead = "The judge rates from 1 to 5 how well the answer addresses the question."
    return Explanation(lead=lead, headings=("Rating", "Probability"), rows=rows, facts=facts)


def _explain_noncommittal(score: Score) -> Explanation:
    decided_by = "the judge" if score.details.get("decided") == "judge" else "rules"
    return Explanation(lead=f"0 for a noncommittal answer, 1 for any other. Decided by {decided_by}.")


def _explain_unknown(score: Score) -> Explanation:
    facts, rest = [], {}
    for key, value in score.details.items():
        if isinstance(value, bool):
            facts.append((str(key), "yes" if value else "no"))
        elif isinstance(value, (int, float, str)):
            facts.append((str(key), str(value)[:500]))
        else:
            rest[str(key)] = value
    raw = ""
    if rest:
        try:
            raw = json.dumps(rest, ensure_ascii=False, indent=1, default=str)
        except (TypeError, ValueError, RecursionError):
            raw = ""
        raw = raw if len(raw) <= MAX_RAW_LENGTH else f"{raw[:MAX_RAW_LENGTH]}\u2026"
    return Explanation(lead="This scorer defines its own details.", facts=facts[:MAX_FACTS], raw=raw)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(details: Mapping[str, Any], key: str) -> Sequence[Any]:
    value = details.get(key)
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value[:2_000] if isinstance(value, str) else ""


_EXPLAINERS: Final[Mapping[str, Callable[[Score], Explanation]]] = {
    "answer_relevancy": _explain_relevancy,
    "question_answer_similarity": _explain_similarity,
    "faithfulness": _explain_faithfulness,
    "question_coverage": _explain_question_coverage,
    "context_relevance": _explain_context_relevance,
    "context_similarity": _explain_context_relevance,
    "context_coverage": _explain_context_coverage,
    "combined_relevancy": _explain_combined,
    "answer_quality": _explain_combined,
    "direct_relevancy": _explain_rating,
    "guarded_relevancy": _explain_rating,
    "intent_match": _explain_rating,
    "noncommittal": _explain_noncommittal,
}
