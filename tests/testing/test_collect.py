"""Collecting exchanges in a test."""

from __future__ import annotations

import pytest

import germane
from germane.errors import UsageError
from germane.testing import collect, strict


@germane.observe
def ask(question: str) -> str:
    return question.upper()


def test_exchanges_are_collected_inside_the_block_only() -> None:
    """What is called in the block stands in the list; what is called after it does not."""
    with collect() as exchanges:
        ask("a")
    ask("b")

    assert [(exchange.question, exchange.answer, exchange.service) for exchange in exchanges] == [("a", "A", "test")]


def test_strict_lets_errors_of_selectors_through() -> None:
    """In strict mode a selector that does not fit fails the call, so that a test sees it."""

    @germane.observe(answer="text")
    def reply(question: str) -> dict[str, str]:
        return {"answer": question}

    with collect(), strict(), pytest.raises(UsageError, match="has no 'text'"):
        reply("a")
