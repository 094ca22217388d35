"""Type assertions about decorated functions, checked by mypy and never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, assert_type

import germane


@germane.observe
def ask(question: str, *, k: int = 3) -> str:
    return question * k


@germane.observe(question="question", attributes={"k": lambda call: call.arguments["k"]}, capture="store")
async def ask_later(question: str, k: int) -> list[str]:
    return [question] * k


@germane.observe(chunk="delta.text", join="".join, redact=str.upper)
def stream(question: str) -> Iterator[str]:
    yield question


@germane.observe()
async def stream_later(question: str) -> AsyncIterator[bytes]:
    yield question.encode()


@germane.retrieval
def search(query: str) -> list[str]:
    return [query]


@germane.retrieval(content="page_content", id="metadata.id", score=lambda hit: hit.score)
async def search_later(query: str) -> list[dict[str, str]]:
    return [{"page_content": query}]


class Asker:
    @germane.observe
    def ask(self, question: str) -> int:
        return len(question)

    @classmethod
    @germane.observe
    def make(cls, name: str) -> Asker:
        return cls()

    @germane.observe
    @staticmethod
    def help(name: str) -> str:
        return name


assert_type(ask("a", k=2), str)
assert_type(stream("a"), Iterator[str])
assert_type(stream_later("a"), AsyncIterator[bytes])
assert_type(search("a"), list[str])
later: Callable[[str, int], Coroutine[Any, Any, list[str]]] = ask_later
found_later: Callable[[str], Coroutine[Any, Any, list[dict[str, str]]]] = search_later
assert_type(Asker().ask("a"), int)
assert_type(Asker.make("a"), Asker)
assert_type(Asker.help("a"), str)
assert_type(germane.current_exchange().id, str | None)

typed: Callable[[str], Iterator[str]] = stream
ask(3)  # type: ignore[arg-type]  # the decorated function still rejects it
ask()  # type: ignore[call-arg]  # as above
germane.observe(qestion="a")  # type: ignore[call-overload]  # a misspelled option
germane.observe(capture="all")  # type: ignore[call-overload]  # no such mode
