"""Relevancy metrics by their names in the settings, and their options."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from germane.errors import SettingsError
from germane.scorers import AnswerRelevancy, DirectRelevancy, GuardedRelevancy, Noncommittal, ScorerSet, build_scorers
from germane.settings import Settings
from germane.testing import FakeJudge


def bench_of(fake: FakeJudge, name: str, **options: Any) -> ScorerSet:
    """Return what the settings make of one scorer."""
    return build_scorers(Settings(**fake.settings(), scorers=(name,), scorer_options={name: options}))


def made(fake: FakeJudge, name: str, **options: Any) -> Any:
    """Return the scorer of that name, its connections closed."""
    bench = bench_of(fake, name, **options)
    asyncio.run(bench.aclose())
    return bench.scorers[0]


def test_each_has_its_name(fake: FakeJudge) -> None:
    """And the judge of the settings, where it needs one."""
    kinds = {
        "answer_relevancy": AnswerRelevancy,
        "direct_relevancy": DirectRelevancy,
        "guarded_relevancy": GuardedRelevancy,
        "noncommittal": Noncommittal,
    }
    for name, kind in kinds.items():
        assert isinstance(made(fake, name), kind)
        assert made(fake, name).name == name


def test_a_judge_that_compares_needs_no_embedder(fake: FakeJudge) -> None:
    """None is made."""
    bench = bench_of(fake, "answer_relevancy", similarity="judge")
    asyncio.run(bench.aclose())

    assert bench.embedder is None
    assert bench.scorers[0].range == (0.0, 1.0)


def test_rules_alone_need_no_judge(fake: FakeJudge) -> None:
    """None is made unless it is asked for."""
    assert made(fake, "noncommittal").judge is None
    assert made(fake, "noncommittal", judge=True).judge is not None


def test_every_option_may_be_set(fake: FakeJudge) -> None:
    """By the names of the keyword arguments."""
    answer = made(
        fake, "answer_relevancy", generated_questions=5, judge_detects_refusals=True, remove_question_echo=False
    )
    direct = made(fake, "direct_relevancy", remove_question_echo=False, logprobs=False)

    assert (answer.generated_questions, answer.judge_detects_refusals, answer.remove_question_echo) == (5, True, False)
    assert (direct.remove_question_echo, direct.rater.logprobs) == (False, False)


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("answer_relevancy", {"similarity": "taste"}, r"similarity must be 'embedding' or 'judge', not 'taste'"),
        ("answer_relevancy", {"generated_questions": 11}, r"generated_questions must be from 1 to 10, not 11"),
        ("answer_relevancy", {"colour": 1}, r"unexpected keyword argument 'colour'"),
        ("direct_relevancy", {"colour": 1}, r"unexpected keyword argument 'colour'"),
        ("guarded_relevancy", {"colour": 1}, r"unexpected keyword argument 'colour'"),
        ("noncommittal", {"judge": "gpt"}, r"judge must be true or false, not 'gpt'"),
    ],
)
def test_wrong_options_are_refused_with_their_setting(
    fake: FakeJudge, name: str, options: Mapping[str, Any], why: str
) -> None:
    """Before anything is scored."""
    with pytest.raises(SettingsError, match=rf"setting scorer_options\.{name}: .*{why}"):
        bench_of(fake, name, **options)


def test_options_of_a_misspelt_scorer_are_refused(fake: FakeJudge) -> None:
    """They would be missed by nobody."""
    misspelt = Settings(**fake.settings(), scorer_options={"answer_relevency": {"generated_questions": 5}})

    with pytest.raises(
        SettingsError,
        match=r"scorer_options: 'answer_relevency' is not a built-in scorer; those are .*answer_relevancy",
    ):
        build_scorers(misspelt)
