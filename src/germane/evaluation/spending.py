"""What a run took."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from germane.score import Score

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Spending:
    """What a run took: nothing for what the cache held, and once for equal rows."""

    seconds: float = 0.0
    input_tokens: int | None = None
    """None where no server told."""
    output_tokens: int | None = None
    cost: float | None = None
    """US dollars; None where no price is known."""

    def plus(self, score: Score) -> Spending:
        """Return the sum with what a score took."""
        return replace(
            self,
            input_tokens=_sum(self.input_tokens, score.input_tokens),
            output_tokens=_sum(self.output_tokens, score.output_tokens),
            cost=_sum(self.cost, score.cost),
        )


def _sum(one: Number | None, other: Number | None) -> Number | None:
    return other if one is None else one if other is None else one + other
