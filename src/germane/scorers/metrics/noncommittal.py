"""Does the answer commit itself? Refusal and evasion apart from relevancy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from germane.exchange import Exchange
from germane.score import Score
from germane.scorers.base.fingerprint import fingerprint
from germane.scorers.base.json_reply import as_choice, as_text
from germane.scorers.base.protocols import Judge
from germane.scorers.base.text import shorten
from germane.scorers.prompting.inputs import Material, material_of
from germane.scorers.prompting.judge_session import Inquiry
from germane.scorers.prompting.template import read_prompt
from germane.scorers.refusals.rules import NONCOMMITTAL, RULES, Finding, find_noncommittal

COMMITTAL = "committal"
NOTHING_FOUND = "The answer commits itself: no rule finds otherwise."
PROMPT = read_prompt("noncommittal")
_SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": [COMMITTAL, NONCOMMITTAL]}},
    "required": ["verdict"],
    "additionalProperties": False,
}


class Noncommittal:
    """1 where the answer commits itself, 0 where it is noncommittal. Mind the direction: higher is better, as always.

    Noncommittal are "I don't know", refusals, and questions back. Rules find them, without any request: phrases in 16
    languages about what the speaker or the sources do not know, and how much is said besides. With a judge, answers in
    which the rules find nothing are shown to it, one request each; small judges are bad at this.

    It tells a correct refusal from a bad answer, next to a relevancy; it does not say whether the refusal was right.

    Source: the rules are ours.
    """

    name = "noncommittal"
    version = "1"
    range = (0.0, 1.0)

    def __init__(self, judge: Judge | None = None, *, remove_copies: bool = True) -> None:
        """Find noncommittal answers by rules; where they find nothing, ask ``judge`` if there is one.

        ``remove_copies``: cut copies of the question out of the answer first; one that is nothing else commits itself
        to nothing.
        """
        self.judge = judge
        self.remove_copies = remove_copies
        self.requires = frozenset({"answer"} if judge is None else {"question", "answer"})

    def __repr__(self) -> str:
        return f"Noncommittal({self.judge!r})"

    @property
    def fingerprint(self) -> str:
        """Of version, rules, options, and the judge as configured."""
        return self._fingerprint_by(self.judge.model if self.judge else None)

    async def score(self, exchange: Exchange) -> Score:
        """Return the score; ``details`` holds the rule and the words that it found.

        Raises:
            ScoringError: the judge gave no reply, or none that can be read.
        """
        material = material_of(exchange, remove_copies=self.remove_copies, contexts=False)
        if material.only_copies:
            return await self._by_rules(material, Finding("it only repeats the question", ""))
        found = find_noncommittal(material.answer)
        if found is not None:
            return await self._by_rules(material, found)
        if self.judge is not None:
            return await self._by_judge(self.judge, material)
        return await self._by_rules(material, None)

    async def _by_rules(self, material: Material, found: Finding | None) -> Score:
        words = f': "{shorten(found.text, 200)}"' if found and found.text else ""
        return self._score(
            NONCOMMITTAL if found else COMMITTAL,
            await self.judge.identify() if self.judge else None,
            explanation=f"The answer is noncommittal: {found.rule}{words}." if found else NOTHING_FOUND,
            details={"decided": "rules", **(found.details() if found else {}), **material.details()},
        )

    async def _by_judge(self, judge: Judge, material: Material) -> Score:
        inquiry = Inquiry(judge)
        label = await inquiry.ask_json(PROMPT, material.values(), _SCHEMA, _read)
        return self._score(
            label,
            inquiry.model,
            explanation=f"The rules find nothing; the judge holds the answer for {label}.",
            details={"decided": "judge", "requests": len(inquiry.replies), **material.details()},
            input_tokens=inquiry.tokens("input_tokens"),
            output_tokens=inquiry.tokens("output_tokens"),
            cost=inquiry.cost,
        )

    def _score(self, label: str, model: str | None, **parts: Any) -> Score:
        return Score(
            scorer=self.name,
            fingerprint=self._fingerprint_by(model),
            value=float(label == COMMITTAL),
            label=label,
            judge=model,
            **parts,
        )

    def _fingerprint_by(self, model: str | None) -> str:
        return fingerprint(
            scorer=self.name,
            version=self.version,
            parameters={"rules": RULES, "remove_copies": self.remove_copies},
            prompt=PROMPT.text if self.judge else "",
            judge=model,
        )


def _read(reply: Mapping[str, Any]) -> str:
    verdict = as_text(reply.get("verdict"))  # not true or false: of what, would be a guess
    commits = as_choice(verdict, {COMMITTAL: True, NONCOMMITTAL: False})
    return COMMITTAL if commits else NONCOMMITTAL
