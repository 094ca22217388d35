"""Tests of the demo's application, before and after its fault."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from germane.demo import BROKEN_ROUTE
from germane.demo.application import Documentation
from germane.demo.corpus import ROUTES, DemoCorpus, split_sentences
from germane.tracer import observed_routes


def _answers(application: Documentation, corpus: DemoCorpus, route: str) -> dict[str, str]:
    async def ask() -> dict[str, str]:
        return {each.text: await application.ask(route, each.text) for each in corpus.questions_for(route)}

    return asyncio.run(ask())


def _hits(application: Documentation, corpus: DemoCorpus, route: str) -> float:
    """Return the share of a route's questions for which the correct passage ranks first."""

    async def search() -> list[bool]:
        return [
            (await application.search(each.text, route))[0]["id"] == each.passage_id
            for each in corpus.questions_for(route)
        ]

    found = asyncio.run(search())
    return sum(found) / len(found)


@pytest.mark.parametrize("route", ROUTES)
def test_the_healthy_index_finds_the_correct_passage(
    application: Documentation, corpus: DemoCorpus, route: str
) -> None:
    """For at least 95% of the questions, the passage that answers the question comes first."""
    assert _hits(application, corpus, route) >= 0.95


@pytest.mark.parametrize("route", ROUTES)
def test_the_demo_answers_with_a_sentence_from_the_correct_passage(
    application: Documentation, corpus: DemoCorpus, route: str
) -> None:
    """Answers are quoted from the documentation, nearly always from the correct passage."""
    answers = _answers(application, corpus, route)
    sentences = {passage.id: split_sentences(passage.text) for passage in corpus.passages_for(route)}
    right = [answers[each.text] in sentences[each.passage_id] for each in corpus.questions_for(route)]

    assert set(answers.values()) <= {sentence for passage in sentences.values() for sentence in passage}
    assert sum(right) / len(right) >= 0.95


def test_the_simulated_fault_affects_only_its_route(application: Documentation, corpus: DemoCorpus) -> None:
    """Every answer from the broken route changes, and none comes from the correct passage."""
    before = {route: _answers(application, corpus, route) for route in ROUTES}

    application.indexes[BROKEN_ROUTE].corrupt()
    after = {route: _answers(application, corpus, route) for route in ROUTES}

    assert [route for route in ROUTES if after[route] != before[route]] == [BROKEN_ROUTE]
    assert not before[BROKEN_ROUTE].items() & after[BROKEN_ROUTE].items()
    assert _hits(application, corpus, BROKEN_ROUTE) <= 0.05


def test_the_broken_route_still_answers_in_sentences(application: Documentation, corpus: DemoCorpus) -> None:
    """Nothing fails, and the answers are well formed."""
    application.indexes[BROKEN_ROUTE].corrupt()
    sentences = {
        sentence for passage in corpus.passages_for(BROKEN_ROUTE) for sentence in split_sentences(passage.text)
    }

    assert set(_answers(application, corpus, BROKEN_ROUTE).values()) <= sentences


def test_search_returns_the_nearest_contexts_first(application: Documentation) -> None:
    """A search returns three passages with id, text and score, as the retrieval decorator expects."""
    contexts = asyncio.run(application.search("How do I clean the rain gauge?", "setup"))

    assert [set(context) for context in contexts] == [{"id", "text", "score"}] * 3
    assert contexts[0]["id"] == "setup/rain-gauge"
    assert contexts == sorted(contexts, key=lambda context: -context["score"])


def test_each_route_of_the_demo_is_an_observed_handler() -> None:
    """Handlers are decorated with the route names, and remain coroutine functions."""
    assert set(ROUTES) <= set(observed_routes())
    assert all(inspect.iscoroutinefunction(getattr(Documentation, route)) for route in ROUTES)
