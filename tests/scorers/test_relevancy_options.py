"""Relevancy scorers and their options in the settings."""

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
    """Return a bench with one scorer built from settings."""
    return build_scorers(Settings(**fake.settings(), scorers=(name,), scorer_options={name: options}))


def made(fake: FakeJudge, name: str, **options: Any) -> Any:
    """Return the scorer with this name, with its connections closed."""
    bench = bench_of(fake, name, **options)
    asyncio.run(bench.aclose())
    return bench.scorers[0]


def test_every_relevancy_scorer_can_be_configured_by_name(fake: FakeJudge) -> None:
    """A scorer that needs a judge uses the configured one."""
    kinds = {
        "answer_relevancy": AnswerRelevancy,
        "direct_relevancy": DirectRelevancy,
        "guarded_relevancy": GuardedRelevancy,
        "noncommittal": Noncommittal,
    }
    for name, kind in kinds.items():
        assert isinstance(made(fake, name), kind)
        assert made(fake, name).name == name


def test_rating_similarities_with_the_judge_needs_no_embedder(fake: FakeJudge) -> None:
    """No embedder is created."""
    bench = bench_of(fake, "answer_relevancy", similarity="judge")
    asyncio.run(bench.aclose())

    assert bench.embedder is None
    assert bench.scorers[0].range == (0.0, 1.0)


def test_refusal_rules_without_votes_need_no_judge(fake: FakeJudge) -> None:
    """No judge is created unless the option requires one."""
    assert made(fake, "noncommittal").judge is None
    assert made(fake, "noncommittal", judge=True).judge is not None


def test_every_relevancy_option_can_be_set(fake: FakeJudge) -> None:
    """Options have the names of the keyword arguments."""
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
def test_errors_about_invalid_options_name_the_setting(
    fake: FakeJudge, name: str, options: Mapping[str, Any], why: str
) -> None:
    """Errors are raised before anything is scored."""
    with pytest.raises(SettingsError, match=rf"setting scorer_options\.{name}: .*{why}"):
        bench_of(fake, name, **options)


def test_options_for_an_unknown_scorer_are_rejected(fake: FakeJudge) -> None:
    """Otherwise, a misspelled name would go unnoticed."""
    misspelt = Settings(**fake.settings(), scorer_options={"answer_relevency": {"generated_questions": 5}})

    with pytest.raises(
        SettingsError,
        match=r"scorer_options: 'answer_relevency' is not a built-in scorer; built-in scorers: .*answer_relevancy",
    ):
        build_scorers(misspelt)
