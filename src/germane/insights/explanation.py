"""Why a score is what it is: what its scorer kept, made into lines that a page can show.

Details are of whatever shape a scorer gave them, those of a user's own scorers too: what is not of the expected one is
shown as it is, or not at all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from germane.score import LOW, Score

LINES: Final = 50
"""Lines that are shown."""
FACTS: Final = 20
RAW: Final = 4_000
"""Characters of details of no known shape that are shown."""
NONCOMMITTAL: Final = "noncommittal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing that the value was made from."""

    text: str
    """Of a judge's, or captured: hostile."""
    value: float | None = None
    """As a bar shows it; None without one."""
    verdict: str = ""
    """In a word or two."""
    tone: str = ""
    """good, bad or nothing."""
    more: str = ""
    """What it goes by, such as a quotation: hostile."""

    @property
    def is_low(self) -> bool:
        """Whether its value is."""
        return self.value is not None and self.value < LOW


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """What is said of one score."""

    lead: str
    """How such a score comes about: words of ours."""
    heads: tuple[str, str] = ("", "")
    lines: Sequence[Line] = ()
    total: Line | None = None
    """What the lines come to."""
    quote: str | None = None
    """The words of the answer that decided it: hostile."""
    facts: Sequence[tuple[str, str]] = ()
    """Names and values: hostile."""
    raw: str = ""
    """Details of no known shape, as JSON: hostile."""
    left_out: int = 0
    """Lines that are not shown."""


def why(score: Score) -> Why:
    """Return what is said of a score that has a value."""
    if score.label == NONCOMMITTAL:
        return _refusal(score)
    found = _WAYS.get(score.scorer, _plain)(score)
    cut = _cut(score.details)
    shown = replace(found, facts=[*found.facts, *cut][:FACTS], lines=list(found.lines)[:LINES])
    return replace(shown, left_out=max(0, len(found.lines) - LINES))


def is_refusal(score: Score) -> bool:
    """Whether a score says that the answer does not answer."""
    return score.label == NONCOMMITTAL


def _refusal(score: Score) -> Why:
    details = score.details
    found = _mapping(details.get(NONCOMMITTAL)) or details
    rule, quoted = _text(found.get("rule")), _text(found.get("text"))
    if rule:
        lead = "The answer does not answer: a rule found that before any judge was asked, and it counts as 0."
        if score.scorer != "answer_relevancy":
            lead = "The answer does not answer: a rule found that."
        return Why(lead=lead, quote=quoted or None, facts=[("Rule", rule)])
    votes = [one.get(NONCOMMITTAL) for one in map(_mapping, _list(details, "questions"))]
    cast = [vote for vote in votes if isinstance(vote, bool)]
    facts = [("Votes", f"{sum(cast)} of {len(cast)} for a refusal")] if cast else []
    return Why(lead="The judge holds the answer for one that does not answer, and it counts as 0.", facts=facts)


def _relevancy(score: Score) -> Why:
    details = score.details
    lines = [_question(one) for one in map(_mapping, _list(details, "questions")) if one]
    if not lines:
        said = "The answer holds nothing but copies of the question, so no judge was asked."
        return Why(lead=said if details.get("copies_removed") else "Its questions were not kept.")
    by = "the judge's own" if details.get("similarity") == "judge" else "the mean cosine"
    lead = (
        "The judge read the answer alone and wrote the questions that it would answer. "
        f"The score is {by} similarity of these to the question asked."
    )
    usable = sum(line.value is not None for line in lines)
    total = Line(text=f"mean of {usable}", value=score.value, verdict=_calibrated(score, details))
    return Why(
        lead=lead, heads=("Generated question", "Similarity"), lines=lines, total=total, facts=_diversity(details)
    )


def _question(one: Mapping[str, Any]) -> Line:
    similarity = finite(one.get("similarity"))
    text = _text(one.get("text")) or "(erased)"
    vote = "voted a refusal" if one.get(NONCOMMITTAL) is True else ""
    return Line(text=text, value=similarity, verdict=vote if similarity is not None else "no question")


def _calibrated(score: Score, details: Mapping[str, Any]) -> str:
    """Return what the value comes to on the calibrated scale, where there is one."""
    value = finite(details.get("calibrated"))
    return "" if value is None else f"calibrated {value:.2f}, {score.label}"


def _diversity(details: Mapping[str, Any]) -> list[tuple[str, str]]:
    value, requested = finite(details.get("diversity")), finite(details.get("requested"))
    found = [] if value is None else [("Mutual similarity", f"{value:.2f}")]
    usable = finite(details.get("usable"))
    some = requested is not None and usable is not None and usable < requested
    return [*found, ("Usable questions", f"{usable:.0f} of {requested:.0f}")] if some else found


def _cosine(score: Score) -> Why:
    details = score.details
    lead = "The cosine of question and answer, as an embedder sees them; no judge was asked."
    if details.get("copies_removed"):
        lead += " Copies of the question were taken out of the answer first."
    total = Line(text="question and answer", value=score.value, verdict=_calibrated(score, details))
    return Why(lead=lead, heads=("Compared", "Cosine"), total=total)


def _faithfulness(score: Score) -> Why:
    details = score.details
    lines = [
        _verdict(one, "claim", "supported", ("supported", "not supported"), "evidence")
        for one in map(_mapping, _list(details, "claims"))
        if one
    ]
    lead = "The share of the answer's claims that the retrieved texts state; the judge must quote where."
    total = Line(text=_share(details, "supported", "total", "claims supported"), value=score.value)
    return Why(lead=lead, heads=("Claim", "Verdict"), lines=lines, total=total)


def _coverage(score: Score) -> Why:
    details = score.details
    lines = [
        _verdict(one, "question", "addressed", ("addressed", "missed"), "quote")
        for one in map(_mapping, _list(details, "sub_questions"))
        if one
    ]
    lead = "The share of what was asked that the answer takes up; the judge quotes where."
    total = Line(text=_share(details, "covered", "total", "parts addressed"), value=score.value)
    return Why(lead=lead, heads=("Part of the question", "Verdict"), lines=lines, total=total)


def _verdict(one: Mapping[str, Any], text: str, flag: str, words: tuple[str, str], quote: str) -> Line:
    good = one.get(flag) is True
    note = f" ({note})" if (note := _text(one.get("note"))) else ""
    return Line(
        text=_text(one.get(text)) or "(erased)",
        verdict=(words[0] if good else words[1]) + note,
        tone="good" if good else "bad",
        more=_text(one.get(quote)),
    )


def _share(details: Mapping[str, Any], part: str, whole: str, what: str) -> str:
    some, total = finite(details.get(part)), finite(details.get(whole))
    return what if some is None or total is None else f"{some:.0f} of {total:.0f} {what}"


def _chunks(score: Score) -> Why:
    details = score.details
    values = [finite(one) for one in _list(details, "chunks")]
    lines = [Line(text=f"chunk {place}", value=one) for place, one in enumerate(values, 1) if one is not None]
    judged = "ratings" in details
    lead = "The judge rated how each retrieved text helps with the question" if judged else "Cosines of the question"
    lead += "; earlier ones count for more." if judged else " with each retrieved text; earlier ones count for more."
    means = (("position_weighted", "Weighted by position"), ("mean", "Plain mean"))
    facts = [(name, f"{value:.2f}") for key, name in means if (value := finite(details.get(key))) is not None]
    return Why(lead=lead, heads=("Retrieved text", "Relevance"), lines=lines, facts=facts)


def _words(score: Score) -> Why:
    details = score.details
    lead = "The share of the answer's words that stand in a retrieved text."
    total = Line(text=_share(details, "found", "words", "words found"), value=score.value)
    missing = ", ".join(_text(one) for one in _list(details, "not_found")[:LINES])
    return Why(lead=lead, heads=("Words", "Share"), total=total, facts=[("Not found", missing)] if missing else [])


def _parts(score: Score) -> Why:
    details = score.details
    parts = _mapping(details.get("parts"))
    lines = [_part(str(name), _mapping(one)) for name, one in parts.items()]
    missing = [_text(one) for one in _list(details, "missing")]
    facts = [("Missing", ", ".join(missing))] if missing else []
    facts += [(name.capitalize(), f"{value:.2f}") for name in _FIGURES if (value := finite(details.get(name)))]
    lead = "Several scores in one figure, by their weights."
    return Why(lead=lead, heads=("Part", "Value"), lines=lines, facts=facts)


_FIGURES: Final = ("weighted", "harmonic", "minimum")


def _part(name: str, one: Mapping[str, Any]) -> Line:
    weight, reason = finite(one.get("weight")), _text(one.get("reason"))
    said = reason.replace("_", " ") if reason else "" if weight is None else f"weight {weight:.2f}"
    return Line(
        text=name.replace("_", " "), value=finite(one.get("value")), verdict=said, more=_text(one.get("explanation"))
    )


def _rating(score: Score) -> Why:
    details = score.details
    rating, cosine = finite(details.get("rating")), finite(details.get("cosine"))
    lead = "The judge rates from 1 to 5 how the answer addresses the question."
    facts = [] if rating is None else [("Rating", f"{rating:.1f} of 5")]
    facts += [("Intent of the question", intent)] if (intent := _text(details.get("intent"))) else []
    facts += [("What the answer gives", given)] if (given := _text(details.get("given"))) else []
    facts += [] if cosine is None else [("Cosine of question and answer", f"{cosine:.2f}")]
    facts += [("Read from", "the likelihoods of its digits")] if details.get("rated") == "expected" else []
    digits = [(str(key), finite(mass)) for key, mass in _mapping(details.get("digits")).items()]
    lines = [Line(text=f"{digit} of 5", value=mass) for digit, mass in sorted(digits) if mass is not None]
    return Why(lead=lead, heads=("Rating", "Likelihood"), lines=lines, facts=facts)


def _committal(score: Score) -> Why:
    details = score.details
    by = "the judge" if details.get("decided") == "judge" else "rules"
    return Why(lead=f"1 where the answer commits itself, 0 where it does not. Decided by {by}.")


def _plain(score: Score) -> Why:
    details = score.details
    simple = {str(key): value for key, value in details.items() if isinstance(value, (bool, int, float, str))}
    rest = {str(key): value for key, value in details.items() if str(key) not in simple}
    facts = [(key, _said(value)) for key, value in list(simple.items())[:FACTS]]
    return Why(lead="What this scorer says of its value is its own.", facts=facts, raw=_json(rest) if rest else "")


def _said(value: object) -> str:
    return str(value)[:500] if not isinstance(value, bool) else "yes" if value else "no"


def _json(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, indent=1, default=str)
    except (TypeError, ValueError, RecursionError):
        return ""
    return text if len(text) <= RAW else f"{text[:RAW]}\u2026"


def _cut(details: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return of which texts the scorer saw the beginning only."""
    found = []
    for name, sizes in list(_mapping(details.get("cut")).items())[:5]:
        shown, of = (finite(_mapping(sizes).get(part)) for part in ("shown", "of"))
        if shown is not None and of is not None:
            found.append(("Cut", f"{str(name)[:40]}: {shown:,.0f} of {of:,.0f} were looked at"))
    return found


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(details: Mapping[str, Any], name: str) -> Sequence[Any]:
    found = details.get(name)
    return found if isinstance(found, list) else []


def _text(value: object) -> str:
    return value[:2_000] if isinstance(value, str) else ""


def finite(value: object) -> float | None:
    """Return a value of a scorer's details as a number; None of what is none, or is too large for one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


_WAYS: Final[Mapping[str, Callable[[Score], Why]]] = {
    "answer_relevancy": _relevancy,
    "question_answer_similarity": _cosine,
    "faithfulness": _faithfulness,
    "question_coverage": _coverage,
    "context_relevance": _chunks,
    "context_similarity": _chunks,
    "context_coverage": _words,
    "combined_relevancy": _parts,
    "answer_quality": _parts,
    "direct_relevancy": _rating,
    "guarded_relevancy": _rating,
    "intent_match": _rating,
    "noncommittal": _committal,
}
