"""User-defined scorers in `evaluate`."""

from __future__ import annotations

from typing import Any

import pytest

import germane
from germane import registry
from germane.errors import UsageError
from germane.exchange import Exchange

pytestmark = pytest.mark.usefixtures("bare")
ROWS = [{"question": "How do I pay?", "answer": answer} for answer in ("By card.", "raise", "much", "-nan", None)]


@pytest.fixture(autouse=True)
def declarations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty the registry, which is shared by the whole process."""
    monkeypatch.setattr(registry, "_declarations", {})


def brevity(exchange: Exchange) -> float:
    """Return the number assigned to the answer."""
    return {"By card.": 0.5, "much": 7.0, "-nan": float("nan")}[exchange.answer or ""]


async def calm(exchange: Exchange) -> float:
    """Return the number assigned to the answer, from a coroutine."""
    return brevity(exchange)


@pytest.mark.parametrize("function", [brevity, calm])
def test_invalid_results_of_custom_scorers_have_a_reason(function: Any) -> None:
    """Exceptions, values outside the range and non-numbers are neither scores nor part of the mean."""
    evaluation = germane.evaluate(ROWS, [function])

    (summary,) = evaluation.summary()
    assert [(score.value, score.reason) for score in evaluation.scores] == [
        (0.5, None), (None, "scorer_error"), (None, "out_of_range"), (None, "out_of_range"), (None, "missing_input"),
    ]  # fmt: skip
    assert (summary.scorer, summary.estimate and summary.estimate.mean) == (function.__name__, 0.5)


def test_functions_scorer_names_and_scorer_objects_can_be_mixed() -> None:
    """An undeclared function is named after itself; a single function needs no list."""

    @germane.scorer(name="politeness", requires={"answer"})
    def tone(exchange: Exchange) -> float:
        return 0.25

    def scores(given: Any) -> dict[str, float | None]:
        return {score.scorer: score.value for score in germane.evaluate(ROWS[:1], given).scores}

    assert scores(["politeness", brevity, calm]) == {"politeness": 0.25, "brevity": 0.5, "calm": 0.5}
    assert scores(tone) == scores("politeness") == scores([tone, "politeness", tone]) == {"politeness": 0.25}
    assert scores(brevity) == {"brevity": 0.5}


@pytest.mark.parametrize(
    ("given", "numeric"),
    [
        ([3], "3 is not a scorer: it has no name"),
        (3, "3 is not a scorer"),
        ([brevity, brevity], "each scorer needs a unique name: brevity, brevity"),
        ([lambda exchange: 0.5], "invalid scorer name '<lambda>'"),
    ],
)
def test_invalid_scorers_are_rejected(given: Any, numeric: str) -> None:
    """The error is raised before any row is scored."""
    with pytest.raises(UsageError, match=numeric):
        germane.evaluate(ROWS, given)
