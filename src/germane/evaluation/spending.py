"""What a run took."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from germane.score import Score

if TYPE_CHECKING:
    from germane.scorers import Meter

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Spending:
    """What a run took: nothing for what the cache held, and once for equal rows."""

    seconds: float = 0.0
    requests: int = 0
    """Asked of judge and embedder; those that scorers of your own make are not seen."""
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

    def with_meter(self, meter: Meter) -> Spending:
        """Return the sum with what judge and embedder took: failures too."""
        return replace(
            self,
            requests=self.requests + meter.requests + meter.embedding_requests,
            input_tokens=_sum(self.input_tokens, meter.input_tokens or None),
            output_tokens=_sum(self.output_tokens, meter.output_tokens or None),
            cost=_sum(self.cost, meter.cost or None),
        )


def _sum(one: Number | None, other: Number | None) -> Number | None:
    return other if one is None else one if other is None else one + other
