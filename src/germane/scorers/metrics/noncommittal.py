"""Detection of noncommittal answers, such as refusals, independently of relevancy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from germane.exchange import Exchange
from germane.score import NONCOMMITTAL, Score
from germane.scorers.base.fingerprint import fingerprint, fingerprint_name
from germane.scorers.base.protocols import Judge, ScorerModels
from germane.scorers.base.reply_parser import parse_choice, parse_text
from germane.scorers.base.text import shorten
from germane.scorers.prompting.judge_scorer import JudgeSession
from germane.scorers.prompting.prompt import build_prompt_inputs, load_prompt
from germane.scorers.refusals.rules import REFUSAL_RULES_HASH, NoncommittalMatch, find_noncommittal

COMMITTAL = "committal"
NO_RULE_MATCHES = "No rule for noncommittal answers matches."
PROMPT = load_prompt("noncommittal")
_SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": [COMMITTAL, NONCOMMITTAL]}},
    "required": ["verdict"],
    "additionalProperties": False,
}


class Noncommittal:
    """Scores noncommittal answers 0 and all other answers 1. As with all scorers, higher is better.

    "I don't know", refusals and clarifying questions are noncommittal. Rules detect them without a request, based
    on phrases in 16 languages that say that the speaker or the sources do not know, and on the length of the rest of
    the answer.
    If there is a judge, answers that do not match any rule are sent to it, one request each. Small judges are
    unreliable at this task.

    Combined with a relevancy score, it distinguishes refusals from bad answers. It does not show whether a refusal is
    justified.

    Source: the rules are defined by germane.
    """

    name = "noncommittal"
    version = "1"
    range = (0.0, 1.0)

    def __init__(self, judge: Judge | None = None, *, remove_question_echo: bool = True) -> None:
        """Detect noncommittal answers with rules. If no rule matches, ask ``judge``, if there is one.

        ``remove_question_echo`` removes repetitions of the question from the answer first. An answer that has no other
        content is noncommittal.
        """
        self.judge = judge
        self.remove_question_echo = remove_question_echo
        self.requires = frozenset({"answer"} if judge is None else {"question", "answer"})

    @classmethod
    def build(cls, models: ScorerModels, options: Mapping[str, Any]) -> Self:
        """Build the scorer from the settings. With the ``judge`` option, the judge decides if no rule matches."""
        arguments = dict(options)
        use_judge = arguments.pop("judge", False)
        if not isinstance(use_judge, bool):
            raise TypeError(f"judge must be true or false, not {use_judge!r}")
        return cls(models.judge if use_judge else None, **arguments)

    def __repr__(self) -> str:
        return f"Noncommittal({self.judge!r})"

    @property
    def fingerprint(self) -> str:
        """The scorer's fingerprint, which covers the version, the rules, the options and the configured judge."""
        return self._fingerprint_for(self.judge.model if self.judge else None)

    async def score(self, exchange: Exchange) -> Score:
        """Score an exchange. ``details`` contains the rule that matched and the matching words.

        Raises:
            ScoringError: the judge did not reply, or its reply is unreadable.
        """
        inputs = build_prompt_inputs(exchange, remove_echo=self.remove_question_echo, include_contexts=False)
        if inputs.is_only_question_echo:
            match: NoncommittalMatch | None = NoncommittalMatch("it only repeats the question", "")
        else:
            match = find_noncommittal(inputs.answer)
        if match is None and self.judge is not None:
            session = JudgeSession(self.judge)
            is_committal = await session.ask_json(
                PROMPT,
                inputs.template_values(),
                _SCHEMA,
                # Require text, because the meaning of true or false would be unclear.
                lambda reply: parse_choice(parse_text(reply.get("verdict")), {COMMITTAL: True, NONCOMMITTAL: False}),
            )
            label = COMMITTAL if is_committal else NONCOMMITTAL
            verdict = "does not consider" if is_committal else "considers"
            return self._build_score(
                label,
                session.model,
                explanation=f"{NO_RULE_MATCHES} The judge {verdict} the answer noncommittal.",
                details={"decided": "judge", "requests": len(session.replies), **inputs.details()},
                input_tokens=session.tokens("input_tokens"),
                output_tokens=session.tokens("output_tokens"),
                cost=session.cost,
            )
        words = f': "{shorten(match.text, 200)}"' if match and match.text else ""
        return self._build_score(
            NONCOMMITTAL if match else COMMITTAL,
            await self.judge.identify() if self.judge else None,
            explanation=f"The answer is noncommittal: {match.rule}{words}." if match else NO_RULE_MATCHES,
            details={"decided": "rules", **(match.details() if match else {}), **inputs.details()},
        )

    def _build_score(self, label: str, model: str | None, **fields: Any) -> Score:
        return Score(
            scorer=self.name,
            fingerprint=self._fingerprint_for(model),
            value=float(label == COMMITTAL),
            label=label,
            judge=model,
            **fields,
        )

    def _fingerprint_for(self, model: str | None) -> str:
        return fingerprint(
            scorer=fingerprint_name(self),
            version=self.version,
            parameters={"rules": REFUSAL_RULES_HASH, "remove_copies": self.remove_question_echo},
            prompt=PROMPT.text if self.judge else "",
            judge=model,
        )
