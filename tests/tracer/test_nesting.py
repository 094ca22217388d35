"""Handlers inside handlers, and the context that they run in."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Iterator
from typing import Any

import germane
from germane.tracer import suppress_tracing


class TestNesting:
    """Of nested handlers the outermost yields the exchange."""

    def test_inner_handlers_are_spans(self, traced: Any) -> None:
        """One exchange for three handlers, whose spans are nested; attributes of inner ones belong to it."""

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

    def test_an_inner_handler_that_outlives_the_outer_yields_its_own(self, traced: Any) -> None:
        """A task goes on when its starter is done: it has its own exchange, whether it began before or after that."""
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

    def test_a_task_of_a_task_belongs_to_the_handler_that_still_runs(self, traced: Any) -> None:
        """The middle one is over, the outermost is not: it yields the exchange."""

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

    def test_tasks_that_start_tasks_keep_no_chain(self, traced: Any) -> None:
        """A handler that starts its successor for ever does not hold on to its predecessors."""
        kept: list[Any] = []

        @germane.observe
        async def ask(question: str, left: int) -> str:
            recording = germane.tracer.recording.enclosing_recording()
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
            for task in kept_task:  # it grows meanwhile
                await task

        asyncio.run(serve())
        assert max(kept) == 0

    def test_a_stream_keeps_its_exchange_until_its_end(self, traced: Any) -> None:
        """What is called while a stream is produced is inside; what is called between its chunks is not."""
        inner = germane.observe(route="inner")(lambda question: question)

        @germane.observe(route="stream")
        def ask(question: str) -> Iterator[str]:
            yield inner("inside")
            yield "!"

        for _ in ask("Why?"):
            inner("between")

        assert [exchange.route for exchange in traced.exchanges] == ["inner", "inner", "stream"]

    def test_inside_our_own_work_nothing_is_captured(self, traced: Any) -> None:
        """A judge's client that is observed makes no exchange and no span."""
        with suppress_tracing():
            assert germane.observe(lambda question: germane.retrieval(lambda q: q)(question))("Why?") == "Why?"

        assert (traced.exchanges, traced.spans) == ([], [])


class TestContextVariables:
    """Context variables of the application are as without the decorator."""

    VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("of_the_application", default="unset")

    def test_a_function_sets_them_for_its_caller(self, traced: Any) -> None:
        """A plain call shares its caller's context."""
        run = contextvars.copy_context().run
        germane_ask = germane.observe(lambda question: str(self.VARIABLE.set(question)))

        assert run(lambda: (germane_ask("Why?"), self.VARIABLE.get()))[1] == "Why?"

    def test_a_generator_sees_and_sets_those_of_whoever_advances_it(self, traced: Any) -> None:
        """Set before and between yields, on both sides."""
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

    def test_an_asynchronous_generator_does_so_too(self, traced: Any) -> None:
        """Within one task its body shares the context of its reader."""
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
