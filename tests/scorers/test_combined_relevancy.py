"""Combined relevancy: a weighted mean of four parts, and the handling of missing parts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.cases import each

from germane.errors import ScoringError, SettingsError
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.scorers import CombinedRelevancy, build_scorers, run_scorer
from germane.scorers.metrics.combined_relevancy import WEIGHTS
from germane.settings import load_settings
from germane.testing import FakeJudge

Make = Callable[..., Exchange]
VALUES = {"answer_relevancy": 0.8, "direct_relevancy": 0.75, "question_coverage": 0.5, "intent_match": 1.0}
REVERSE, DIRECT, COVERAGE, INTENT = VALUES


class Scripted:
    """Part that returns its scripted results."""

    requires = frozenset({"question", "answer"})
    range = (-1.0, 1.0)

    def __init__(self, name: str, results: Any, made: str) -> None:
        self.name = name
        self.fingerprint = f"{name}-1"
        self.results = results
        self.made = made
        self.asked = 0

    async def score(self, exchange: Exchange) -> Score:
        self.asked += 1
        if isinstance(self.results, Exception):
            raise self.results
        return Score(
            scorer=self.name, fingerprint=self.made, value=self.results, label="l", explanation=f"{self.name} says so",
            judge="j", input_tokens=10, output_tokens=1, cost=0.5,
        )  # fmt: skip


def parts(made: str = "made", **results: Any) -> dict[str, Scripted]:
    """Return the four parts, with results from VALUES by default."""
    return {name: Scripted(name, results.get(name, value), made) for name, value in VALUES.items()}


def failed(reason: UnscoredReason, **more: Any) -> ScoringError:
    """Return the error raised by a part without a value."""
    return ScoringError(reason, "as asked", **more)


def test_combined_relevancy_is_the_weighted_mean_of_four_parts(exchange: Make, score: Any) -> None:
    """The weights are 0.30, 0.25, 0.25 and 0.20, in the order of the parts."""
    (result,) = score(CombinedRelevancy(parts()), exchange())

    assert result.value == pytest.approx(0.30 * 0.8 + 0.25 * 0.75 + 0.25 * 0.5 + 0.20 * 1.0, abs=1e-9)
    assert result.value == pytest.approx(0.7525, abs=1e-9)
    assert (result.label, result.judge, result.input_tokens, result.output_tokens, result.cost) == (
        "mostly_relevant",
        "j",
        40,
        4,
        2,
    )
    assert result.explanation == (
        "answer_relevancy 0.80 (weight 0.30), direct_relevancy 0.75 (weight 0.25), "
        "question_coverage 0.50 (weight 0.25), intent_match 1.00 (weight 0.20)."
    )
    assert result.details["missing"] == []
    assert result.details["parts"][COVERAGE] == {
        "value": 0.5, "weight": 0.25, "label": "l", "explanation": "question_coverage says so", "fingerprint": "made",
    }  # fmt: skip


def test_a_negative_cosine_counts_as_zero(exchange: Make, score: Any) -> None:
    """Answer relevancy can be as low as -1, but the combined value cannot. The original value is kept."""
    low = dict.fromkeys(VALUES, 0.0)

    (result,) = score(CombinedRelevancy(parts(**low | {REVERSE: -0.4})), exchange())

    assert (result.value, result.details["parts"][REVERSE]["value"]) == (0.0, -0.4)


@each("missing", VALUES)
def test_a_permanently_failed_part_is_excluded_from_the_mean_and_recorded(
    exchange: Make, score: Any, missing: str
) -> None:
    """The label, explanation, details and fingerprint record it. Such scores are never averaged with complete ones."""
    whole, found = (
        score(CombinedRelevancy(parts(**results)), exchange())[0]
        for results in ({}, {missing: failed(UnscoredReason.UNPARSABLE)})
    )

    rest = [name for name in VALUES if name != missing]
    expected = sum(WEIGHTS[name] * VALUES[name] for name in rest) / sum(WEIGHTS[name] for name in rest)
    assert found.value == pytest.approx(expected, abs=1e-9)
    assert found.label.endswith(" (incomplete)")
    assert f"without {missing} (unparsable)" in found.explanation
    assert found.details["missing"] == [missing]
    assert found.details["parts"][missing]["reason"] == "unparsable"
    assert found.details["parts"][missing]["value"] is None
    assert found.fingerprint != whole.fingerprint


def test_a_missing_part_can_be_configured_to_fail_the_score(exchange: Make, score: Any) -> None:
    """The score has the reason of the first missing part."""
    results = {DIRECT: failed(UnscoredReason.OUT_OF_RANGE), INTENT: failed(UnscoredReason.UNPARSABLE)}

    (result,) = score(CombinedRelevancy(parts(**results), missing="fail"), exchange())

    assert (result.value, result.reason) == (None, UnscoredReason.OUT_OF_RANGE)
    assert result.explanation == "no value for direct_relevancy, intent_match: as asked"


def test_combined_relevancy_has_no_value_if_every_part_is_missing(exchange: Make, score: Any) -> None:
    """Missing parts never result in a value of 0."""
    results = dict.fromkeys(VALUES, failed(UnscoredReason.UNPARSABLE)) | {
        REVERSE: failed(UnscoredReason.NO_USABLE_QUESTION)
    }

    (result,) = score(CombinedRelevancy(parts(**results)), exchange())

    assert (result.value, result.reason) == (None, UnscoredReason.NO_USABLE_QUESTION)


@each("missing", ["renormalize", "fail"])
def test_a_temporary_part_failure_postpones_the_score(exchange: Make, score: Any, missing: Any) -> None:
    """A temporary failure never produces a value. The delay that the server requested is passed on."""
    results = {
        COVERAGE: failed(UnscoredReason.JUDGE_RATE_LIMITED, retry_after=7.0),
        DIRECT: failed(UnscoredReason.UNPARSABLE),
    }

    (result,) = score(CombinedRelevancy(parts(**results), missing=missing), exchange())

    assert (result.value, result.reason, result.details) == (
        None,
        UnscoredReason.JUDGE_RATE_LIMITED,
        {"retry_after": 7.0},
    )


def test_a_retry_requests_only_the_missing_parts(exchange: Make, score: Any) -> None:
    """Results of other parts are reused, which reduces the load on a busy judge."""
    results = parts(**{COVERAGE: failed(UnscoredReason.JUDGE_TIMEOUT)})
    combined = CombinedRelevancy(results)

    score(combined, exchange())
    results[COVERAGE].results = 0.5
    retried, repeated = score(combined, exchange(), exchange())

    assert retried.value == repeated.value == pytest.approx(0.7525, abs=1e-9)
    assert {name: part.asked for name, part in results.items()} == {REVERSE: 2, DIRECT: 2, COVERAGE: 3, INTENT: 2}


def test_results_of_parts_are_reused_only_for_the_same_exchange(exchange: Make, score: Any) -> None:
    """Rows of a data set can share an id and still get their own results."""
    results = parts(**{COVERAGE: failed(UnscoredReason.JUDGE_TIMEOUT)})
    combined = CombinedRelevancy(results)

    score(combined, exchange(answer="You pay by card."))
    results[COVERAGE].results = 0.5
    score(combined, exchange(answer="In a month."))

    assert {name: part.asked for name, part in results.items()} == dict.fromkeys(results, 2)


def test_weights_of_the_four_parts_can_be_configured(exchange: Make, score: Any) -> None:
    """A part that is not listed or has a weight of 0 is neither called nor required."""
    results = parts()
    weights = {REVERSE: 3, INTENT: 1, DIRECT: 0}

    (result,) = score(CombinedRelevancy(results, weights=weights), exchange())

    assert result.value == pytest.approx((3 * 0.8 + 1.0) / 4, abs=1e-9)
    assert {name: part.asked for name, part in results.items()} == {REVERSE: 1, DIRECT: 0, COVERAGE: 0, INTENT: 1}
    assert list(CombinedRelevancy({INTENT: results[INTENT]}, weights={INTENT: 1}).scorers) == [INTENT]


@each(
    ("weights", "message"),
    [
        ({REVERSE: -0.1}, "answer_relevancy must be 0 or more, not -0.1"),
        ({REVERSE: float("nan")}, "must be 0 or more"),
        ({REVERSE: float("inf")}, "must be 0 or more"),
        ({REVERSE: 0, INTENT: 0.0}, "at least one must be greater than 0"),
        ({}, "at least one must be greater than 0"),
        ({"reverse": 1}, "unknown part reverse; the parts are answer_relevancy, direct_relevancy"),
        ({REVERSE: "1"}, "must be a number, not '1'"),
        ({REVERSE: True}, "must be a number, not True"),
        ([0.5, 0.5], "must be a mapping of part names"),
    ],
)
def test_invalid_weights_are_rejected(weights: Any, message: str) -> None:
    """The error is raised before any request."""
    with pytest.raises((ValueError, TypeError), match=message):
        CombinedRelevancy(parts(), weights=weights)


def test_an_invalid_policy_or_an_unknown_part_is_rejected() -> None:
    """This covers a nonexistent policy, and a weighted part that was not passed."""
    with pytest.raises(ValueError, match="missing must be renormalize or fail, not 'ignore'"):
        CombinedRelevancy(parts(), missing="ignore")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ValueError, match="there is no scorer for intent_match"):
        CombinedRelevancy({name: part for name, part in parts().items() if name != INTENT})


def fingerprints(scorer: CombinedRelevancy, exchange: Exchange, score: Any) -> tuple[str, str]:
    """Return the fingerprints of the scorer and of its score."""
    return scorer.fingerprint, score(scorer, exchange)[0].fingerprint


def test_the_fingerprint_covers_weights_and_the_parts_used(exchange: Make, score: Any) -> None:
    """The scorer's own fingerprint covers the configured parts. Update these lines if one changes on purpose."""
    plain = fingerprints(CombinedRelevancy(parts()), exchange(), score)
    other: Mapping[str, Any] = dict.fromkeys(WEIGHTS, 0.25)

    assert plain == ("7cff6cc55ca2", "da87acfad28f")
    assert fingerprints(CombinedRelevancy(parts(made="other")), exchange(), score)[1] != plain[1]
    assert set(fingerprints(CombinedRelevancy(parts(), weights=other), exchange(), score)) & set(plain) == set()


def wired(fake: FakeJudge, exchange: Exchange, *names: str, **options: Any) -> list[Score]:
    """Score an exchange with the scorer from the settings and its real parts, over HTTP."""
    settings = load_settings(
        service="tests", **fake.settings(), scorers=names, scorer_options={"combined_relevancy": options}
    )

    fake.first_token = {"4": 1.0}

    async def score_it() -> list[Score]:
        scorer_set = build_scorers(settings)
        try:
            return await asyncio.gather(*(run_scorer(scorer, exchange) for scorer in scorer_set.scorers))
        finally:
            await scorer_set.aclose()

    return asyncio.run(score_it())


@pytest.mark.usefixtures("bare")
def test_parts_share_requests_with_configured_scorers(exchange: Make, fake: FakeJudge) -> None:
    """A part that is also configured as a scorer has the same value, and the judge is called once."""
    combined, coverage = wired(fake, exchange(), "combined_relevancy", "question_coverage")

    parts = combined.details["parts"]
    values = {name: min(max(part["value"], 0.0), 1.0) for name, part in parts.items()}
    assert list(parts) == list(WEIGHTS)
    assert combined.value == pytest.approx(sum(WEIGHTS[name] * value for name, value in values.items()), abs=1e-9)
    assert parts[COVERAGE]["fingerprint"] == coverage.fingerprint
    assert len([request for request in fake.chat_requests if "sub_questions" in request.text]) == 1


@pytest.mark.usefixtures("bare")
def test_a_part_without_weight_is_not_created(exchange: Make, fake: FakeJudge) -> None:
    """The scorer for such a part may not be configured."""
    (combined,) = wired(fake, exchange(), "combined_relevancy", weights={INTENT: 1, COVERAGE: 1})

    assert (list(combined.details["parts"]), len(fake.chat_requests), fake.embedding_requests) == (
        [COVERAGE, INTENT],
        2,
        [],
    )


@pytest.mark.parametrize("options", [{"weights": {"intent": 1}}, {"weights": 3}, {"missing": "zero"}, {"wieghts": {}}])
@pytest.mark.usefixtures("bare")
def test_errors_about_invalid_options_name_the_setting(exchange: Make, fake: FakeJudge, options: Any) -> None:
    """Errors are raised at startup."""
    with pytest.raises(SettingsError, match=r"^setting scorer_options\.combined_relevancy: "):
        wired(fake, exchange(), "combined_relevancy", **options)
