"""What is captured: question, answer, contexts, history and attributes; and how a handler may add to it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import germane
from germane.errors import UsageError
from germane.exchange import Context, Message
from germane.tracer import Call


def asked(traced: Any, function: Any, *args: Any, **kwargs: Any) -> str | None:
    """The question found in a call."""
    function(*args, **kwargs)
    question: str | None = traced.exchange.question
    return question


class TestQuestion:
    """Where the question is found."""

    def test_it_is_the_first_text(self, traced: Any) -> None:
        """Arguments that are no text are passed over."""
        assert asked(traced, germane.observe(lambda k, question, lang: "a"), 3, "Why?", "en") == "Why?"

    def test_keyword_arguments_are_taken_in_the_order_of_the_signature(self, traced: Any) -> None:
        """Not in the order in which the caller names them."""
        assert asked(traced, germane.observe(lambda question, lang: "a"), lang="en", question="Why?") == "Why?"

    def test_the_instance_of_a_method_is_no_question(self, traced: Any) -> None:
        """A method's own object is passed over, also when it is text."""

        class Asker(str):
            __slots__ = ()

            @germane.observe
            def ask(self, question: str) -> str:
                return question

        assert asked(traced, Asker("me").ask, "Why?") == "Why?"

    @pytest.mark.parametrize("binding", [classmethod, staticmethod])
    @pytest.mark.parametrize("order", ["above", "below"])
    def test_class_and_static_methods(self, traced: Any, binding: Any, order: str) -> None:
        """The decorator may stand on either side of theirs."""

        def ask(*args: Any) -> str:
            return str(args[-1])

        made = germane.observe(binding(ask)) if order == "above" else binding(germane.observe(ask))

        assert asked(traced, type("Asker", (), {"ask": made})().ask, "Why?") == "Why?"

    @pytest.mark.parametrize(
        ("selector", "expected"),
        [
            ("body.query", "Why?"),
            ("body.turns.-1.text", "last"),
            ("lang", "en"),
            (lambda call: call.arguments["lang"], "en"),
            (lambda call: call.args[0].query, "Why?"),
            (lambda: "from elsewhere", "from elsewhere"),
            ("body.missing", None),
            ("nobody", None),
            ("body.turns.7", None),
        ],
    )
    def test_a_selector_says_where_it_is(self, traced: Any, selector: Any, expected: str | None) -> None:
        """A path begins with an argument's name, defaults count; a callable gets the call, or nothing."""

        @germane.observe(question=selector)
        def ask(body: Any, lang: str = "en") -> str:
            return "a"

        assert (
            asked(traced, ask, SimpleNamespace(query="Why?", turns=[{"text": "first"}, {"text": "last"}])) == expected
        )

    @pytest.mark.parametrize("selector", ["", "a..b", ".a", 3, object()])
    def test_a_selector_that_makes_no_sense_is_refused_at_once(self, selector: Any) -> None:
        """A typo is an error where it stands, not in production."""
        with pytest.raises(UsageError):
            germane.observe(question=selector)(lambda question: "a")

    def test_an_unknown_capture_is_refused_at_once(self) -> None:
        """So is a mode that does not exist."""
        with pytest.raises(UsageError, match="capture='all'"):
            germane.observe(capture="all")(lambda question: "a")  # type: ignore[call-overload]

    @pytest.mark.parametrize("option", ["route", "attributes", "join", "redact"])
    def test_an_option_of_the_wrong_kind_is_refused_at_once(self, option: str) -> None:
        """It is named, with what it was."""
        with pytest.raises(UsageError, match=f"^{option}=3: must be a "):
            germane.observe(**{option: 3})(lambda question: "a")  # type: ignore[call-overload]

    def test_it_is_read_before_the_handler_can_change_it(self, traced: Any) -> None:
        """What the caller asked counts, not what the handler made of it."""

        @germane.observe(question="body.q")
        def ask(body: dict[str, str]) -> str:
            body["q"] = "changed"
            return "a"

        assert asked(traced, ask, {"q": "Why?"}) == "Why?"

    @pytest.mark.parametrize("function", [max, dict.fromkeys, "{}".format])
    def test_built_in_functions(self, traced: Any, function: Any) -> None:
        """Those that do not tell their signature are called and read all the same."""
        assert germane.observe(function)("Why?") == function("Why?")
        assert traced.exchange.question == "Why?"

    def test_a_retrievers_query_is_found_likewise(self, traced: Any) -> None:
        """`query=` takes what `question=` takes."""
        germane.retrieval(source="docs", query="body.text")(lambda body: ["a"])({"text": "Why?"})

        assert traced.attributes("docs")["gen_ai.retrieval.query.text"] == "Why?"

    def test_a_call_shows_its_arguments_by_name(self) -> None:
        """Defaults are filled in."""
        call = Call(lambda question, k=3, **more: None, ("Why?",), {"x": 1})

        assert dict(call.arguments) == {"question": "Why?", "k": 3, "more": {"x": 1}}


@dataclass
class Document:
    """As LangChain has it."""

    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


class NodeWithScore:
    """As LlamaIndex has it: everything through properties."""

    score = 0.25

    @property
    def text(self) -> str:
        return "Reset it."

    @property
    def node_id(self) -> str:
        return "n1"


RETRIEVED: dict[str, tuple[Any, list[Context]]] = {
    "texts": (["a", "b"], [Context("a"), Context("b")]),
    "tuple": (("a", "b"), [Context("a"), Context("b")]),
    "deque": (deque(["a"]), [Context("a")]),
    "one text": ("a", [Context("a")]),
    "bytes": ([b"a"], [Context("a")]),
    "nothing": (None, []),
    "none": ([], []),
    "mappings": ([{"text": "a", "id": 7, "score": 1}], [Context("a", "7", 1.0)]),
    "one mapping": ({"content": "a"}, [Context("a")]),
    "odd mapping": ([OrderedDict(page_content="a")], [Context("a")]),
    "LangChain": ([Document("a", id="d1"), Document("b")], [Context("a", "d1"), Context("b")]),
    "LangChain with scores": ([(Document("a"), 0.5)], [Context("a", None, 0.5)]),
    "FAISS scores": ([(Document("a"), np.float32(0.5))], [Context("a", None, 0.5)]),
    "scored texts": ([("a", 1)], [Context("a", None, 1.0)]),
    "LlamaIndex": ([NodeWithScore()], [Context("Reset it.", "n1", 0.25)]),
    "numpy": (np.array(["a", "b"]), [Context("a"), Context("b")]),
    "ours": ([Context("a", "x", 2.0)], [Context("a", "x", 2.0)]),
    "no number": ([{"text": "a", "score": float("nan")}], [Context("a")]),
    "too many": ([str(n) for n in range(500)], [Context(str(n)) for n in range(100)]),
}


class TestContexts:
    """What a retriever returns becomes the contexts."""

    @pytest.mark.parametrize("name", RETRIEVED)
    def test_the_shapes_of_the_frameworks_are_known(self, traced: Any, name: str) -> None:
        """Texts, mappings, objects, pairs with scores, arrays: no selector is needed."""
        returned, expected = RETRIEVED[name]
        search = germane.retrieval(lambda query: returned)

        @germane.observe
        def ask(question: str) -> str:
            assert search(question) is returned
            return "a"

        ask("Why?")

        assert list(traced.exchange.contexts) == expected

    @pytest.mark.parametrize("returned", [[object()], [{"other": "a"}], [3.5, object()], object()])
    def test_what_has_no_text_is_told(self, traced: Any, returned: Any) -> None:
        """The retriever's caller gets what it returned; the span says what is missing."""
        search = germane.retrieval(source="docs")(lambda query: returned)

        assert search("Why?") is returned
        assert "name its attribute or key with content=" in traced.attributes("docs")["germane.capture.error"]

    def test_selectors_name_the_parts(self, traced: Any) -> None:
        """`contexts`, `content`, `id` and `score` find what has other names."""

        @germane.retrieval(contexts="hits.0", content="doc.body", id="meta.0", score=lambda hit: 1 - hit["distance"])
        def search(query: str) -> Any:
            return {"hits": [[{"doc": {"body": "a"}, "meta": ["x"], "distance": 0.25}]]}

        germane.observe(lambda question: str(search(question)))("Why?")

        assert list(traced.exchange.contexts) == [Context("a", "x", 0.75)]

    def test_a_generator_may_retrieve(self, traced: Any) -> None:
        """What it yields are the contexts, also when it is dropped early; so with asynchronous ones."""

        @germane.retrieval
        def search(query: str) -> Iterator[str]:
            yield from ["a", "b", "c"]

        @germane.retrieval
        async def search_later(query: str) -> AsyncIterator[dict[str, str]]:
            yield {"text": "d"}

        @germane.observe
        async def ask(question: str) -> str:
            stream = search(question)
            assert [next(stream), next(stream)] == ["a", "b"]
            stream.close()
            return str([found async for found in search_later(question)])

        asyncio.run(ask("Why?"))

        assert [context.text for context in traced.exchange.contexts] == ["a", "b", "d"]

    def test_an_asynchronous_retriever(self, traced: Any) -> None:
        """A coroutine function retrieves as a function does; parallel ones add up."""

        @germane.retrieval
        async def search(query: str) -> list[str]:
            await asyncio.sleep(0)
            return [query]

        @germane.observe
        async def ask(question: str) -> str:
            return str(await asyncio.gather(search("a"), search("b")))

        asyncio.run(ask("Why?"))

        assert {context.text for context in traced.exchange.contexts} == {"a", "b"}

    def test_the_same_context_counts_once(self, traced: Any) -> None:
        """Two retrievers that find the same text make one context."""
        search = germane.retrieval(lambda query: ["a", query])

        germane.observe(lambda question: str([search("x"), search("y")]))("Why?")

        assert [context.text for context in traced.exchange.contexts] == ["a", "x", "y"]

    def test_contexts_in_what_the_handler_returns(self, traced: Any) -> None:
        """`contexts=` finds them beside the answer."""
        germane.observe(answer="text", contexts="sources")(lambda q: {"text": "A", "sources": ["a", "b"]})("Why?")

        assert (traced.exchange.answer, len(traced.exchange.contexts)) == ("A", 2)

    def test_add_contexts(self, traced: Any) -> None:
        """Without a retriever function a handler says what it used; the span is a retrieval's."""

        @germane.observe
        def ask(question: str) -> str:
            germane.add_contexts([{"body": "a", "nr": 1}], content="body", id="nr")
            germane.add_contexts("b")
            return "A"

        ask("Why?")

        assert list(traced.exchange.contexts) == [Context("a", "1"), Context("b")]
        assert [span.name for span in traced.spans] == ["retrieval ask", "retrieval ask", "invoke_workflow ask"]

    def test_a_retriever_by_itself_is_a_span(self, traced: Any) -> None:
        """Outside a handler there is no exchange to belong to."""
        assert germane.retrieval(source="docs")(lambda query: ["a"])("Why?") == ["a"]
        assert (traced.exchanges, traced.span().name) == ([], "retrieval docs")

    def test_a_handler_inside_a_retriever_is_inner(self, traced: Any) -> None:
        """A retriever that asks another handler is still part of the outermost exchange."""
        inner = germane.observe(route="inner")(lambda query: "rewritten")
        search = germane.retrieval(lambda query: [inner(query)])

        germane.observe(route="outer")(lambda question: search(question)[0].upper())("Why?")

        assert (traced.exchange.route, traced.exchange.contexts[0].text) == ("outer", "rewritten")


class TestAttributes:
    """What else is kept with an exchange."""

    def test_some_have_columns(self, traced: Any) -> None:
        """Model, prompt version, session and user have fields of their own, as text."""

        @germane.observe(attributes={"tenant": "tenant", "model": lambda: "m1", "absent": lambda: None})
        def ask(question: str, tenant: str) -> str:
            germane.set_attribute("prompt_version", 7)
            germane.set_attribute("session", "s")
            germane.set_attribute("user", "u")
            germane.set_attribute("k", 3)
            germane.set_attribute("cached", True)
            germane.set_attribute("gone", "x")
            germane.set_attribute("gone", None)
            return "a"

        ask("Why?", "acme")

        exchange = traced.exchange
        assert (exchange.model, exchange.prompt_version, exchange.session, exchange.user) == ("m1", "7", "s", "u")
        assert dict(exchange.attributes) == {"tenant": "acme", "k": 3, "cached": True}
        shown = traced.attributes()
        assert {name: shown[name] for name in ("session.id", "gen_ai.conversation.id", "user.id")} == {
            "session.id": "s",
            "gen_ai.conversation.id": "s",
            "user.id": "u",
        }
        assert (shown["gen_ai.request.model"], shown["germane.prompt_version"]) == ("m1", 7)

    @pytest.mark.parametrize("value", [object(), [1], {"a": 1}, float, ...])
    def test_what_is_no_attribute_is_told(self, traced: Any, value: Any) -> None:
        """A value that no span can hold is left out, and the span says so."""
        germane.observe(attributes={"odd": lambda: value})(lambda question: "a")("Why?")

        assert dict(traced.exchange.attributes) == {}
        assert "attribute odd" in traced.attributes()["germane.capture.error"]

    def test_outside_a_handler_nothing_is_kept(self, traced: Any) -> None:
        """The calls for inside a handler do nothing elsewhere, also where tracing is off."""
        germane.set_attribute("a", "b")
        germane.add_contexts(["a"])

        assert (germane.current_exchange().id, germane.current_exchange().trace_id, traced.spans) == (None, None, [])

    def test_the_current_exchange_has_the_ids(self, traced: Any) -> None:
        """The handle's id is the exchange's, in inner handlers and retrievers too."""

        @germane.retrieval
        def search(query: str) -> list[str]:
            return [str(germane.current_exchange().id)]

        inner = germane.observe(lambda question: search(question)[0])
        seen = []

        @germane.observe
        def ask(question: str) -> str:
            handle = germane.current_exchange()
            seen.append((handle.id, handle.trace_id))
            return inner(question)

        answer = ask("Why?")

        assert seen == [(traced.exchange.id, traced.exchange.trace_id)]
        assert answer == traced.exchange.id

    def test_history(self, traced: Any) -> None:
        """Earlier turns may be pairs, mappings, objects, texts; one that has no text is none."""
        turns = [
            ("user", "a"),
            {"role": "assistant", "content": "b"},
            SimpleNamespace(type="human", content="c"),
            "d",
            Message("system", "e"),
            {"role": "assistant", "content": None, "tool_calls": ["search"]},
            {"text": "f"},
        ]

        germane.observe(history="turns")(lambda question, turns: "a")("Why?", turns)

        assert [(turn.role, turn.content) for turn in traced.exchange.history] == [
            ("user", "a"),
            ("assistant", "b"),
            ("human", "c"),
            ("user", "d"),
            ("system", "e"),
            ("user", "f"),
        ]
