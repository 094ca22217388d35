"""Tests of the corpus."""

from __future__ import annotations

from collections import Counter

import pytest

from germane.demo.corpus import ROUTES, DemoCorpus, split_sentences


def test_each_demo_route_has_twenty_passages_and_fifty_questions(corpus: DemoCorpus) -> None:
    """All routes have the same size."""
    assert Counter(passage.route for passage in corpus.passages) == dict.fromkeys(ROUTES, 20)
    assert Counter(question.route for question in corpus.questions) == dict.fromkeys(ROUTES, 50)


def test_each_passage_of_the_corpus_belongs_to_one_route(corpus: DemoCorpus) -> None:
    """Together, the passages and questions of all routes are the whole corpus, in order."""
    assert [passage for route in ROUTES for passage in corpus.passages_for(route)] == list(corpus.passages)
    assert [question for route in ROUTES for question in corpus.questions_for(route)] == list(corpus.questions)


def test_the_corpus_contains_no_duplicates(corpus: DemoCorpus) -> None:
    """Every id, text, question and sentence is unique."""
    sentences = [sentence for passage in corpus.passages for sentence in split_sentences(passage.text)]

    for values in (
        [passage.id for passage in corpus.passages],
        [question.text for question in corpus.questions],
        sentences,
    ):
        assert len(set(values)) == len(values)


def test_each_passage_has_questions_on_its_route(corpus: DemoCorpus) -> None:
    """Two or three questions lead to each passage."""
    routes = {passage.id: passage.route for passage in corpus.passages}
    asked = Counter(question.passage_id for question in corpus.questions)

    assert asked.keys() == routes.keys()
    assert set(asked.values()) == {2, 3}
    assert all(question.route == routes[question.passage_id] for question in corpus.questions)


def test_passages_are_short_and_contain_several_sentences(corpus: DemoCorpus) -> None:
    """Passages are a few complete sentences, each an answer by itself. Questions end with a question mark."""
    for passage in corpus.passages:
        sentences = split_sentences(passage.text)
        assert 2 <= len(sentences) <= 4
        assert all(sentence.endswith(".") and 4 <= len(sentence.split()) <= 25 for sentence in sentences)
    assert all(question.text.endswith("?") for question in corpus.questions)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two.", ["One.", "Two."]),
        ("Needs 3.11 or newer. Is it? Yes!", ["Needs 3.11 or newer.", "Is it?", "Yes!"]),
        ("No end", ["No end"]),
    ],
)
def test_sentences_end_at_punctuation_before_a_space(text: str, sentences: list[str]) -> None:
    """A decimal point does not end a sentence."""
    assert split_sentences(text) == sentences
