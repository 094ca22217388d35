"""Is what the answer claims stated by the contexts? A judge checks each claim, and must quote what states it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from germane.errors import ScoringError
from germane.exchange import Exchange
from germane.score import Reason, Score
from germane.scorers.base.json_reply import Unreadable, as_choice, as_list, as_number, as_text
from germane.scorers.base.protocols import Judge
from germane.scorers.base.quote_check import Quotable
from germane.scorers.base.text import clean, cut, shorten
from germane.scorers.prompting.context_blocks import (
    MOST_CHUNKS,
    cut_details,
    cuts,
    fenced,
    numbered,
    with_first_contexts,
)
from germane.scorers.prompting.inputs import ANSWER_LIMIT, CONTEXTS_LIMIT, Material, material_of
from germane.scorers.prompting.judge_scorer import Judged
from germane.scorers.prompting.judge_session import Inquiry
from germane.scorers.prompting.template import Prompt, fence_for, read_prompt
from germane.scorers.refusals.claims import SENTENCE_RULES, claiming_sentences
from germane.scorers.refusals.rules import RULES, find_noncommittal

Claims = Literal["sentences", "judge"]

MOST_CLAIMS = 20
"""Claims of one answer that are checked, the first ones."""
CLAIM_LIMIT = 1_000
"""Bytes of one claim that the judge is shown."""
TEXT_LIMIT = 300
"""Characters of a claim and of its evidence that are kept."""
TOKENS, TOKENS_PER_CLAIM = 800, 100
"""What a judge may write: one that thinks first does so within the former."""
VERDICTS = {"supported": True, "not supported": False, "unsupported": False, "contradicted": False}
NOT_FOUND = "evidence not found"
EXTRACTED = {
    "type": "object",
    "properties": {"claims": {"type": "array", "maxItems": MOST_CLAIMS, "items": {"type": "string"}}},
    "required": ["claims"],
    "additionalProperties": False,
}
_VERIFIED = {
    "type": "object",
    "properties": {
        "claim": {"type": "integer"},
        "source_sentence": {"type": "string"},
        "verdict": {"type": "string", "enum": ["SUPPORTED", "NOT_SUPPORTED"]},
    },
    "required": ["claim", "source_sentence", "verdict"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge said of one claim, and what is left of it."""

    claim: str
    said: bool
    """Whether the judge holds it for supported."""
    evidence: str
    """What it quotes; empty where it quotes nothing."""
    found: bool
    """Whether the quotation stands in the contexts."""

    @property
    def supported(self) -> bool:
        """Whether it counts as supported: the judge says so, and what it quotes is there."""
        return self.said and self.found

    def details(self) -> dict[str, object]:
        """Return what is kept of it, as JSON."""
        kept: dict[str, object] = {
            "claim": shorten(self.claim, TEXT_LIMIT),
            "supported": self.supported,
            "evidence": shorten(self.evidence, TEXT_LIMIT),
        }
        return {**kept, "note": NOT_FOUND} if self.said and not self.found else kept


class Faithfulness(Judged):
    """Share of the answer's claims that the contexts support: supported / total, from 0 to 1.

    The judge checks all claims of an answer in one request and quotes what states each. A claim that it holds for
    supported counts only if the quotation stands in the contexts. An answer that claims nothing, or does not commit
    itself, has no score. It does not see whether the contexts are true, nor whether the answer answers the question.

    Source: Es et al. 2023, arXiv 2309.15217; that the evidence must be there is ours.
    """

    name = "faithfulness"
    version = "2"
    requires = frozenset({"question", "answer", "contexts"})

    def __init__(self, judge: Judge, *, claims: Claims = "sentences") -> None:
        """Take the answer's sentences for its claims, or let the ``judge`` extract them, in a request more."""
        super().__init__(judge)
        if claims not in get_args(Claims):
            raise ValueError(f"claims must be {' or '.join(get_args(Claims))}, not {claims!r}")
        self.claims: Claims = claims

    def prompts(self) -> Sequence[Prompt]:
        """Return the prompt that verifies, and the one that extracts where it is used."""
        verify = (read_prompt("verify_claims"),)
        return verify if self.claims == "sentences" else (*verify, read_prompt("extract_claims"))

    def parameters(self) -> Mapping[str, object]:
        """Return the option, the rules, the schemas and the limits."""
        return {
            "claims": self.claims,
            "noncommittal": RULES,
            "rules": SENTENCE_RULES if self.claims == "sentences" else None,
            "schemas": [_VERIFIED] if self.claims == "sentences" else [_VERIFIED, EXTRACTED],
            "limits": [ANSWER_LIMIT, CONTEXTS_LIMIT, MOST_CHUNKS, MOST_CLAIMS, CLAIM_LIMIT],
        }

    async def score(self, exchange: Exchange) -> Score:
        """Return the score; ``details`` holds ``supported``, ``total``, and each claim with its evidence.

        Raises:
            ScoringError: ``missing_input``, the answer claims nothing; or the judge failed.
        """
        exchange, left_out = with_first_contexts(exchange)
        material = material_of(exchange, remove_copies=False)
        found = find_noncommittal(material.answer)
        if found is not None:
            raise _nothing_claimed(f"it does not commit itself: {found.rule}")
        inquiry = Inquiry(self.judge)
        claims = await self._claims(material, inquiry)
        if not claims:
            raise _nothing_claimed("no sentence of it states anything")
        shown = claims[:MOST_CLAIMS]
        verdicts = await self._verify(shown, material, inquiry)
        long = [cuts(f"claim {place}", len(cut(claim, CLAIM_LIMIT)), len(claim)) for place, claim in enumerate(shown)]
        details = cut_details(material, left_out, cuts("claims", len(shown), len(claims)), *long)
        return self._scored(verdicts, inquiry, details)

    async def _claims(self, material: Material, inquiry: Inquiry) -> list[str]:
        if self.claims == "sentences" or not any(character.isalnum() for character in material.answer):
            return claiming_sentences(material.answer)
        return await inquiry.ask_json(
            read_prompt("extract_claims"),
            material.values(most=str(MOST_CLAIMS)),
            EXTRACTED,
            _read_claims,
            max_tokens=TOKENS + TOKENS_PER_CLAIM * MOST_CLAIMS,
        )

    async def _verify(self, claims: Sequence[str], material: Material, inquiry: Inquiry) -> list[Verdict]:
        contexts = material.contexts
        listed = numbered([cut(claim, CLAIM_LIMIT) for claim in claims])
        fence = fence_for(material.question, listed, *contexts)
        values = {
            "question": material.question,
            "contexts": fenced(contexts, "context", fence),
            "claims": listed,
            "count": str(len(claims)),
            "fence": fence,
        }
        quotable = Quotable(contexts)

        def read(reply: Mapping[str, Any]) -> list[Verdict]:
            items = as_list(reply.get("claims"), count=len(claims))
            return [_read_verdict(item, place, claims[place], quotable) for place, item in enumerate(items)]

        return await inquiry.ask_json(
            read_prompt("verify_claims"),
            values,
            _schema(len(claims)),
            read,
            max_tokens=TOKENS + TOKENS_PER_CLAIM * len(claims),
        )

    def _scored(self, verdicts: Sequence[Verdict], inquiry: Inquiry, details: Mapping[str, object]) -> Score:
        supported = sum(verdict.supported for verdict in verdicts)
        counts = {"supported": supported, "total": len(verdicts)}
        claims = [verdict.details() for verdict in verdicts]
        return self.scored(
            supported / len(verdicts),
            inquiry,
            details={**counts, "claims": claims, **details},
            explanation=_explain(verdicts),
        )


def _schema(count: int) -> dict[str, Any]:
    claims = {"type": "array", "minItems": count, "maxItems": count, "items": _VERIFIED}
    return {"type": "object", "properties": {"claims": claims}, "required": ["claims"], "additionalProperties": False}


def _read_claims(reply: Mapping[str, Any]) -> list[str]:
    """Return the claims, each once: a judge that runs on says the same again."""
    return list(dict.fromkeys(as_text(claim) for claim in as_list(reply.get("claims"))))


def _read_verdict(item: Any, place: int, claim: str, quotable: Quotable) -> Verdict:
    if not isinstance(item, Mapping):
        raise Unreadable(f"{item!r:.80} is not a verdict with its evidence")
    number = item.get("claim", place + 1)
    if as_number(number, 0, MOST_CLAIMS) != place + 1:
        raise Unreadable(f"claim {number} stands in place {place + 1}")
    evidence = item.get("source_sentence")
    quoted = " ".join(clean(evidence).split()) if isinstance(evidence, str) else ""
    return Verdict(claim, as_choice(item.get("verdict"), VERDICTS), quoted, quotable.holds(quoted))


def _nothing_claimed(why: str) -> ScoringError:
    return ScoringError(Reason.MISSING_INPUT, f"the answer claims nothing: {why}")


def _explain(verdicts: Sequence[Verdict]) -> str:
    missed = [verdict for verdict in verdicts if not verdict.supported]
    head = f"The contexts support {len(verdicts) - len(missed)} of {len(verdicts)} claims"
    named = "; ".join(f'"{shorten(each.claim, 100)}"{f" ({NOT_FOUND})" if each.said else ""}' for each in missed[:3])
    return f"{head}, not {named}." if missed else f"{head}."
