"""Nested handlers, and context variables."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Iterator
from typing import Any

import germane
from germane.tracer import suppress_tracing


class TestNesting:
    """The outermost of several nested handlers yields the exchange."""

    def test_nested_handlers_create_spans_but_no_exchanges(self, traced: Any) -> None:
        """Three handlers yield one exchange and nested spans. Attributes that inner handlers set belong to it."""

        @germane.observe
        def third(question: str) -> str:
            germane.set_attribute("depth", 3)
            return question + "3"

        @germane.observe
        def second(question: str) -> str:
            return third(question + "2")

        @germane.observe
        def first(question: str) -> str:
            return second(question + "1")

        assert first("Q") == "Q123"
        assert (traced.exchange.route.rpartition(".")[2], dict(traced.exchange.attributes)) == ("first", {"depth": 3})
        names = ["first", "second", "third"]
        parents = [traced.span(name).parent for name in names]
        assert parents[0] is None
        assert [parent.span_id for parent in parents[1:]] == [traced.span(n).context.span_id for n in names[:2]]
        assert "germane.exchange.id" not in traced.attributes("second")
        assert traced.attributes("third")["input.value"] == "Q12"

    def test_a_nested_handler_that_outlives_the_outer_handler_yields_its_own_exchange(self, traced: Any) -> None:
        """A task that continues after its outer handler has ended gets its own exchange, whenever it started."""
        tasks: list[asyncio.Task[str]] = []
        begun = asyncio.Event

        @germane.observe(route="inner")
        async def inner(question: str, go: asyncio.Event) -> str:
            germane.current_exchange()
            await go.wait()
            germane.add_contexts(["of the inner"])
            germane.set_attribute("who", "inner")
            return question

        @germane.observe(route="outer")
        async def outer(question: str, go: asyncio.Event) -> str:
            tasks.append(asyncio.create_task(inner("begun before", go)))
            await asyncio.sleep(0)
            tasks.append(asyncio.create_task(inner("begun after", go)))
            return question

        async def serve() -> None:
            go = begun()
            await outer("Why?", go)
            go.set()
            await asyncio.gather(*tasks)

        asyncio.run(serve())
        found = {exchange.question: exchange for exchange in traced.exchanges}
        assert set(found) == {"Why?", "begun before", "begun after"}
        assert [len(found[name].contexts) for name in ("Why?", "begun before", "begun after")] == [0, 1, 1]
        assert found["begun before"].attributes == {"who": "inner"}
        assert len({exchange.id for exchange in traced.exchanges}) == 3
        assert len({exchange.trace_id for exchange in traced.exchanges}) == 1

    def test_a_nested_task_belongs_to_the_outermost_handler_that_is_still_running(self, traced: Any) -> None:
        """If the middle handler has ended and the outermost has not, the outermost yields the exchange."""

        @germane.observe(route="third")
        async def third(question: str) -> str:
            await asyncio.sleep(0)
            return question

        @germane.observe(route="second")
        async def second(question: str) -> asyncio.Task[str]:
            return asyncio.create_task(third(question))

        @germane.observe(route="first")
        async def first(question: str) -> str:
            return await (await second(question))

        asyncio.run(first("Why?"))

        assert (traced.exchange.route, len(traced.spans)) == ("first", 3)

    def test_tasks_that_start_tasks_leak_no_memory(self, traced: Any) -> None:
        """A handler that keeps starting its successor does not keep its predecessors alive."""
        kept: list[Any] = []

        @germane.observe
        async def ask(question: str, left: int) -> str:
            recording = germane.tracer.handler_recording.enclosing_recording()
            assert recording is not None
            depth, outer = 0, recording.root
            while outer.outer is not None:
                depth, outer = depth + 1, outer.outer
            kept.append(depth)
            if left:
                kept_task.append(asyncio.create_task(ask(question, left - 1)))
                await asyncio.sleep(0)
            return question

        kept_task: list[asyncio.Task[str]] = []

        async def serve() -> None:
            await ask("Why?", 20)
            for task in kept_task:  # the list grows meanwhile
                await task

        asyncio.run(serve())
        assert max(kept) == 0

    def test_a_stream_has_a_current_exchange_only_while_it_produces_items(self, traced: Any) -> None:
        """A call made by the stream belongs to the stream's exchange; a call made between chunks does not."""
        inner = germane.observe(route="inner")(lambda question: question)

        @germane.observe(route="stream")
        def ask(question: str) -> Iterator[str]:
            yield inner("inside")
            yield "!"

        for _ in ask("Why?"):
            inner("between")

        assert [exchange.route for exchange in traced.exchanges] == ["inner", "inner", "stream"]

    def test_calls_made_by_germane_are_not_captured(self, traced: Any) -> None:
        """An observed judge client yields neither an exchange nor a span."""
        with suppress_tracing():
            assert germane.observe(lambda question: germane.retrieval(lambda q: q)(question))("Why?") == "Why?"

        assert (traced.exchanges, traced.spans) == ([], [])


class TestContextVariables:
    """The application's context variables work as they do without the decorator."""

    VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("of_the_application", default="unset")

    def test_context_variables_that_a_handler_sets_are_visible_to_its_caller(self, traced: Any) -> None:
        """A plain call shares the context of its caller."""
        run = contextvars.copy_context().run
        germane_ask = germane.observe(lambda question: str(self.VARIABLE.set(question)))

        assert run(lambda: (germane_ask("Why?"), self.VARIABLE.get()))[1] == "Why?"

    def test_an_observed_generator_shares_the_context_of_its_consumer(self, traced: Any) -> None:
        """The generator and its consumer see values that are set before and between items."""
        seen: list[str] = []

        @germane.observe
        def ask(question: str) -> Iterator[str]:
            for number in range(2):
                seen.append(self.VARIABLE.get())
                self.VARIABLE.set(f"body {number}")
                yield str(number)

        def consume() -> None:
            self.VARIABLE.set("caller")
            for _ in ask("Why?"):
                seen.append(self.VARIABLE.get())
                self.VARIABLE.set("caller again")

        contextvars.copy_context().run(consume)
        assert seen == ["caller", "body 0", "caller again", "body 1"]

    def test_an_observed_asynchronous_generator_shares_the_context_of_its_consumer(self, traced: Any) -> None:
        """This applies within a single task."""
        seen: list[str] = []

        @germane.observe
        async def ask(question: str) -> AsyncIterator[str]:
            for number in range(2):
                seen.append(self.VARIABLE.get())
                self.VARIABLE.set(f"body {number}")
                yield str(number)

        async def consume() -> None:
            self.VARIABLE.set("caller")
            async for _ in ask("Why?"):
                seen.append(self.VARIABLE.get())
                self.VARIABLE.set("caller again")

        asyncio.run(consume())
        assert seen == ["caller", "body 0", "caller again", "body 1"]
