"""The share of the answer's claims that the contexts support. A judge checks each claim and must quote evidence.

The claims are the sentences of the answer, except those that do not claim anything. Alternatively, the judge can
extract the claims. The judge's quotations count only if they occur in the contexts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from germane.errors import ScoringError
from germane.exchange import Exchange
from germane.language import is_question_mark
from germane.score import Score, UnscoredReason
from germane.scorers.base.protocols import Judge
from germane.scorers.base.reply_parser import (
    UnreadableReply,
    parse_choice,
    parse_list,
    parse_number,
    parse_text,
)
from germane.scorers.base.text import has_letters, shorten, split_words, strip_control_characters, truncate_utf8
from germane.scorers.prompting.context_blocks import (
    MAX_CONTEXTS,
    delimited_blocks,
    limit_contexts,
    numbered_list,
    truncation,
)
from germane.scorers.prompting.judge_scorer import JudgeScorer, JudgeSession
from germane.scorers.prompting.prompt import (
    MAX_ANSWER_BYTES,
    MAX_CONTEXTS_BYTES,
    Prompt,
    PromptInputs,
    build_prompt_inputs,
    delimiter_for,
    load_prompt,
)
from germane.scorers.refusals.rules import COURTESY, OFFER, REFUSAL_RULES_HASH, find_noncommittal

_ELLIPSIS = re.compile(r"\.{3,}|\u2026|\[\s*\]|\(\s*\)")
"""Ellipses, which replace words that a quotation omits."""
MIN_QUOTE_PART_WORDS = 3
"""Minimum number of words between ellipses. Shorter fragments could be combined into any statement."""
SENTENCE_RULES_VERSION = "1"
SENTENCE_RULES_HASH = hashlib.sha256(f"{SENTENCE_RULES_VERSION} {REFUSAL_RULES_HASH}".encode()).hexdigest()[:12]
"""A hash of the rules, which is part of fingerprints."""
_END = re.compile(
    r"(?<![.!?\u061f\u06d4\u0964])[.!?\u061f\u06d4\u0964]++[\"'\u201d\u00bb)\]*_]*+(?:\s++|\Z)"
    r"|[\u3002\uff01\uff1f]++[\u300d\u201d]*+\s*+|\n++"
)
"""The end of a sentence. Quantifiers are possessive, so that thousands of consecutive marks take linear time."""
_ABBREVIATION = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|prof|st|no|vs|fig|approx|ca|cf|jr|sr|inc|ltd|e\.g|i\.e|z\.b|bzw|[a-z]))\.\s*\Z",
    re.IGNORECASE,
)
"""Abbreviations, such as titles, initials and "e.g.", whose period does not end a sentence."""
_BULLET = re.compile(r"\A\s*(?:[-*+\u2022>#]+\s+|\(?\d{1,2}[.)]\s+|\d{1,2}[.)]\s*\Z)+")
_EMPHASIS = re.compile(r"\*\*|__|`")
MAX_CLAIMS = 20
"""Maximum number of claims to check per answer. Later claims are ignored."""
MAX_CLAIM_BYTES = 1_000
"""Maximum size of a claim shown to the judge."""
MAX_TEXT_CHARACTERS = 300
"""Maximum length of claims and evidence in the details; longer ones are truncated."""
BASE_TOKENS, TOKENS_PER_CLAIM = 800, 100
"""The token limit for a reply: a base that allows for reasoning, and an amount per claim."""
VERDICTS = {"supported": True, "not supported": False, "unsupported": False, "contradicted": False}
EVIDENCE_NOT_FOUND = "evidence not found"
EXTRACTION_SCHEMA = {
    "type": "object",
    "properties": {"claims": {"type": "array", "maxItems": MAX_CLAIMS, "items": {"type": "string"}}},
    "required": ["claims"],
    "additionalProperties": False,
}
_VERDICT_SCHEMA = {
    "type": "object",
    "properties": {
        "claim": {"type": "integer"},
        "source_sentence": {"type": "string"},
        "verdict": {"type": "string", "enum": ["SUPPORTED", "NOT_SUPPORTED"]},
    },
    "required": ["claim", "source_sentence", "verdict"],
    "additionalProperties": False,
}
ClaimSource = Literal["sentences", "judge"]


class QuotableTexts:
    """Texts that can be quoted: with the same words in the same order, regardless of case and punctuation."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [_normalize(text) for text in texts]

    def contains(self, quotation: str) -> bool:
        """Return whether a text contains the quotation or, if it has ellipses, all its parts in order; not without
        words.
        """
        parts = [part for piece in _ELLIPSIS.split(quotation) if (part := _normalize(piece)).strip()]
        if len(parts) > 1 and any(len(part.split()) < MIN_QUOTE_PART_WORDS for part in parts):
            return False
        return bool(parts) and any(_holds_in_order(text, parts) for text in self._texts)


def _holds_in_order(text: str, parts: Sequence[str]) -> bool:
    start = 0
    for part in parts:
        position = text.find(part, start)
        if position < 0:
            return False
        start = position + len(part) - 1  # the space at the end of a part can also start the next one
    return True


def _normalize(text: str) -> str:
    return f" {' '.join(split_words(text))} "


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text in order, without bullets or heading markers."""
    start = 0
    for end in _END.finditer(text):
        if "\n" not in end[0] and _ABBREVIATION.search(text[max(start, end.end() - 12) : end.end()]):
            continue
        if sentence := _strip_markup(text[start : end.end()]):
            yield sentence
        start = end.end()
    if sentence := _strip_markup(text[start:]):
        yield sentence


def claim_sentences(answer: str) -> list[str]:
    """Return the answer's sentences that claim something: no questions, offers, headings or "I don't know"."""
    claims = []
    for sentence in split_sentences(answer):
        if not has_letters(sentence) or is_question_mark(sentence[-1]) or sentence.endswith(":"):
            continue
        plain = sentence.lower()
        if not (OFFER.match(plain) or COURTESY.match(plain) or find_noncommittal(sentence)):
            claims.append(sentence)
    return claims


def _strip_markup(sentence: str) -> str:
    return " ".join(_EMPHASIS.sub("", _BULLET.sub("", sentence)).split()).lstrip("#> ").strip("*_ ")


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """The judge's verdict on one claim, and whether its evidence was found in the contexts."""

    claim: str
    judged_supported: bool
    evidence: str
    """The judge's quotation; empty if there is none."""
    is_evidence_found: bool
    """Whether the contexts contain the quotation."""

    @property
    def supported(self) -> bool:
        """Whether the judge considers the claim supported and the contexts contain its evidence."""
        return self.judged_supported and self.is_evidence_found

    def details(self) -> dict[str, object]:
        """Return the verdict as a JSON-serializable dict that can be stored in the score's details."""
        details: dict[str, object] = {
            "claim": shorten(self.claim, MAX_TEXT_CHARACTERS),
            "supported": self.supported,
            "evidence": shorten(self.evidence, MAX_TEXT_CHARACTERS),
        }
        if self.judged_supported and not self.is_evidence_found:
            details["note"] = EVIDENCE_NOT_FOUND
        return details


class Faithfulness(JudgeScorer):
    """Share of the answer's claims that the contexts support: supported / total, from 0 to 1.

    The judge checks all claims of an answer in one request, and quotes the evidence for each. A claim that it considers
    supported counts only if the contexts contain the quotation. Answers without claims and noncommittal answers are not
    scored. The score does not show whether the contexts are true, or whether the answer addresses the question.

    Source: Es et al. 2023, arXiv 2309.15217. germane adds the evidence check.
    """

    name = "faithfulness"
    version = "2"
    requires = frozenset({"question", "answer", "contexts"})

    def __init__(self, judge: Judge, *, claims: ClaimSource = "sentences") -> None:
        """Use the answer's ``sentences`` as its claims, or let the ``judge`` extract claims in an additional
        request.
        """
        super().__init__(judge)
        if claims not in get_args(ClaimSource):
            raise ValueError(f"claims must be {' or '.join(get_args(ClaimSource))}, not {claims!r}")
        self.claims: ClaimSource = claims

    def prompts(self) -> Sequence[Prompt]:
        """Return the prompt for verifying claims and, if the judge extracts them, the extraction prompt."""
        verify = (load_prompt("verify_claims"),)
        return verify if self.claims == "sentences" else (*verify, load_prompt("extract_claims"))

    def parameters(self) -> Mapping[str, object]:
        """Return the option, the rules, the schemas and the limits. They become part of the fingerprint."""
        by_sentences = self.claims == "sentences"
        return {
            "claims": self.claims,
            "noncommittal": REFUSAL_RULES_HASH,
            "rules": SENTENCE_RULES_HASH if by_sentences else None,
            "schemas": [_VERDICT_SCHEMA] if by_sentences else [_VERDICT_SCHEMA, EXTRACTION_SCHEMA],
            "limits": [MAX_ANSWER_BYTES, MAX_CONTEXTS_BYTES, MAX_CONTEXTS, MAX_CLAIMS, MAX_CLAIM_BYTES],
        }

    async def score(self, exchange: Exchange) -> Score:
        """Score an exchange. ``details`` contains ``supported``, ``total``, and each claim with its evidence.

        Raises:
            ScoringError: the answer makes no claims (``missing_input``), or the judge failed.
        """
        exchange, context_truncation = limit_contexts(exchange)
        inputs = build_prompt_inputs(exchange, remove_echo=False)
        match = find_noncommittal(inputs.answer)
        if match is not None:
            raise ScoringError(
                UnscoredReason.MISSING_INPUT, f"the answer makes no claims, because it is noncommittal: {match.rule}"
            )
        session = JudgeSession(self.judge)
        all_claims = await self._find_claims(inputs, session)
        if not all_claims:
            raise ScoringError(UnscoredReason.MISSING_INPUT, "the answer makes no claims: no sentence states anything")
        claims = all_claims[:MAX_CLAIMS]
        verdicts = await self._verify(claims, inputs, session)

        missed = [verdict for verdict in verdicts if not verdict.supported]
        supported, total = len(verdicts) - len(missed), len(verdicts)
        explanation = f"The contexts support {supported} of {total} claims"
        if missed:
            explanation += "; not supported: " + ", ".join(
                f'"{shorten(verdict.claim, 100)}"{f" ({EVIDENCE_NOT_FOUND})" if verdict.judged_supported else ""}'
                for verdict in missed[:3]
            )
        truncations = [
            truncation(f"claim {index}", len(truncate_utf8(claim, MAX_CLAIM_BYTES)), len(claim))
            for index, claim in enumerate(claims)
        ]
        return self.build_score(
            supported / total,
            session,
            details={
                "supported": supported,
                "total": total,
                "claims": [verdict.details() for verdict in verdicts],
                **inputs.details(context_truncation, truncation("claims", len(claims), len(all_claims)), *truncations),
            },
            explanation=f"{explanation}.",
        )

    async def _find_claims(self, inputs: PromptInputs, session: JudgeSession) -> list[str]:
        if self.claims == "sentences" or not any(character.isalnum() for character in inputs.answer):
            return claim_sentences(inputs.answer)

        def parse(reply: Mapping[str, Any]) -> list[str]:
            # Remove duplicates, because a judge that fails to stop repeats itself.
            return list(dict.fromkeys(parse_text(claim) for claim in parse_list(reply.get("claims"))))

        return await session.ask_json(
            load_prompt("extract_claims"),
            inputs.template_values(most=str(MAX_CLAIMS)),
            EXTRACTION_SCHEMA,
            parse,
            max_tokens=BASE_TOKENS + TOKENS_PER_CLAIM * MAX_CLAIMS,
        )

    async def _verify(self, claims: Sequence[str], inputs: PromptInputs, session: JudgeSession) -> list[ClaimVerdict]:
        count = len(claims)
        claim_list = numbered_list([truncate_utf8(claim, MAX_CLAIM_BYTES) for claim in claims])
        delimiter = delimiter_for(inputs.question, claim_list, *inputs.contexts)
        values = {
            "question": inputs.question,
            "contexts": delimited_blocks(inputs.contexts, "context", delimiter),
            "claims": claim_list,
            "count": str(count),
            "fence": delimiter,
        }
        schema = {
            "type": "object",
            "properties": {
                "claims": {"type": "array", "minItems": count, "maxItems": count, "items": _VERDICT_SCHEMA},
            },
            "required": ["claims"],
            "additionalProperties": False,
        }
        quotable = QuotableTexts(inputs.contexts)

        def parse(reply: Mapping[str, Any]) -> list[ClaimVerdict]:
            verdicts = []
            items = parse_list(reply.get("claims"), count=count)
            for number, (item, claim) in enumerate(zip(items, claims, strict=True), 1):
                if not isinstance(item, Mapping):
                    raise UnreadableReply(f"{item!r:.80} is not a verdict with its evidence")
                stated_number = item.get("claim", number)
                if parse_number(stated_number, 0, MAX_CLAIMS) != number:
                    raise UnreadableReply(f"claim {stated_number} is at position {number}")
                evidence = item.get("source_sentence")
                quotation = " ".join(strip_control_characters(evidence).split()) if isinstance(evidence, str) else ""
                is_supported = parse_choice(item.get("verdict"), VERDICTS)
                verdicts.append(ClaimVerdict(claim, is_supported, quotation, quotable.contains(quotation)))
            return verdicts

        return await session.ask_json(
            load_prompt("verify_claims"), values, schema, parse, max_tokens=BASE_TOKENS + TOKENS_PER_CLAIM * count
        )
