"""Captured data: question, answer, contexts, history and attributes, taken from calls or set by the handler."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.cases import each

import germane
from germane.errors import UsageError
from germane.exchange import Context, Message
from germane.tracer import Call


def captured_question(traced: Any, function: Any, *args: Any, **kwargs: Any) -> str | None:
    """Call a handler, and return the captured question."""
    function(*args, **kwargs)
    question: str | None = traced.exchange.question
    return question


class TestQuestion:
    """The question is read from the arguments of the call."""

    def test_the_first_text_argument_is_the_question(self, traced: Any) -> None:
        """Arguments that are not text are skipped."""
        assert captured_question(traced, germane.observe(lambda k, question, lang: "a"), 3, "Why?", "en") == "Why?"

    def test_keyword_arguments_are_considered_in_signature_order(self, traced: Any) -> None:
        """The order in the call does not matter."""
        assert (
            captured_question(traced, germane.observe(lambda question, lang: "a"), lang="en", question="Why?") == "Why?"
        )

    def test_the_self_argument_of_a_method_is_not_the_question(self, traced: Any) -> None:
        """``self`` is skipped, even if it is text."""

        class Asker(str):
            __slots__ = ()

            @germane.observe
            def ask(self, question: str) -> str:
                return question

        assert captured_question(traced, Asker("me").ask, "Why?") == "Why?"

    @each("binding", [classmethod, staticmethod])
    @each("order", ["above", "below"])
    def test_class_methods_and_static_methods_can_be_observed(self, traced: Any, binding: Any, order: str) -> None:
        """The decorator works above and below ``classmethod`` and ``staticmethod``."""

        traced.clear()

        def ask(*args: Any) -> str:
            return str(args[-1])

        made = germane.observe(binding(ask)) if order == "above" else binding(germane.observe(ask))

        assert captured_question(traced, type("Asker", (), {"ask": made})().ask, "Why?") == "Why?"

    @each(
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
    def test_a_question_selector_reads_the_arguments(self, traced: Any, selector: Any, expected: str | None) -> None:
        """A path begins with the name of an argument, which may be a default. A callable takes the call or nothing."""

        traced.clear()

        @germane.observe(question=selector)
        def ask(body: Any, lang: str = "en") -> str:
            return "a"

        assert (
            captured_question(traced, ask, SimpleNamespace(query="Why?", turns=[{"text": "first"}, {"text": "last"}]))
            == expected
        )

    @each("selector", ["", "a..b", ".a", 3, object()])
    def test_an_invalid_selector_is_rejected_at_decoration(self, selector: Any) -> None:
        """A typo raises an error when the module is imported."""
        with pytest.raises(UsageError):
            germane.observe(question=selector)(lambda question: "a")

    def test_an_unknown_capture_mode_is_rejected_at_decoration(self) -> None:
        """The error shows the value."""
        with pytest.raises(UsageError, match=r"^capture must be .*, not 'all'$"):
            germane.observe(capture="all")(lambda question: "a")  # type: ignore[call-overload]

    @each("option", ["route", "attributes", "join", "redact"])
    def test_an_option_with_the_wrong_type_is_rejected_at_decoration(self, option: str) -> None:
        """The error names the option and its value."""
        with pytest.raises(UsageError, match=f"^{option} must be .*, not 3$"):
            germane.observe(**{option: 3})(lambda question: "a")  # type: ignore[call-overload]

    def test_the_question_is_read_before_the_handler_runs(self, traced: Any) -> None:
        """A handler that changes its arguments does not change the captured question."""

        @germane.observe(question="body.q")
        def ask(body: dict[str, str]) -> str:
            body["q"] = "changed"
            return "a"

        assert captured_question(traced, ask, {"q": "Why?"}) == "Why?"

    @each("function", [max, dict.fromkeys, "{}".format])
    def test_built_in_functions_can_be_observed(self, traced: Any, function: Any) -> None:
        """Functions without a signature are called and captured like any other."""
        traced.clear()
        assert germane.observe(function)("Why?") == function("Why?")
        assert traced.exchange.question == "Why?"

    def test_a_query_selector_reads_the_arguments_of_a_retriever(self, traced: Any) -> None:
        """``query=`` accepts the same selectors as ``question=``."""
        germane.retrieval(source="docs", query="body.text")(lambda body: ["a"])({"text": "Why?"})

        assert traced.attributes("docs")["gen_ai.retrieval.query.text"] == "Why?"

    def test_selector_functions_get_a_call_object_with_the_arguments_by_name(self) -> None:
        """Defaults are included."""
        call = Call(lambda question, k=3, **more: None, ("Why?",), {"x": 1})

        assert dict(call.arguments) == {"question": "Why?", "k": 3, "more": {"x": 1}}


@dataclass
class Document:
    """The shape of a LangChain document."""

    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


class NodeWithScore:
    """The shape of a LlamaIndex node, whose fields are properties."""

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
    """The return value of a retriever becomes the contexts of the exchange."""

    @each("name", RETRIEVED)
    def test_contexts_in_the_types_of_common_frameworks_need_no_selector(self, traced: Any, name: str) -> None:
        """Texts, mappings, objects, pairs with scores, and arrays are recognized."""
        traced.clear()
        returned, expected = RETRIEVED[name]
        search = germane.retrieval(lambda query: returned)

        @germane.observe
        def ask(question: str) -> str:
            assert search(question) is returned
            return "a"

        ask("Why?")

        assert list(traced.exchange.contexts) == expected

    @each("returned", [[object()], [{"other": "a"}], [3.5, object()], object()])
    def test_contexts_without_text_are_reported_on_the_retriever_span(self, traced: Any, returned: Any) -> None:
        """The caller gets the return value unchanged. The span names the selector to set."""
        traced.clear()
        search = germane.retrieval(source="docs")(lambda query: returned)

        assert search("Why?") is returned
        assert "select its attribute or key with content=" in traced.attributes("docs")["germane.capture.error"]

    def test_selectors_read_the_text_id_and_score_of_a_context(self, traced: Any) -> None:
        """``contexts``, ``content``, ``id`` and ``score`` find parts with other names."""

        @germane.retrieval(contexts="hits.0", content="doc.body", id="meta.0", score=lambda hit: 1 - hit["distance"])
        def search(query: str) -> Any:
            return {"hits": [[{"doc": {"body": "a"}, "meta": ["x"], "distance": 0.25}]]}

        germane.observe(lambda question: str(search(question)))("Why?")

        assert list(traced.exchange.contexts) == [Context("a", "x", 0.75)]

    def test_a_retriever_can_be_a_generator(self, traced: Any) -> None:
        """The items are the contexts, even if the generator is closed early. Asynchronous generators also work."""

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

    def test_a_retriever_can_be_a_coroutine_function(self, traced: Any) -> None:
        """All contexts from parallel retrievals are added."""

        @germane.retrieval
        async def search(query: str) -> list[str]:
            await asyncio.sleep(0)
            return [query]

        @germane.observe
        async def ask(question: str) -> str:
            return str(await asyncio.gather(search("a"), search("b")))

        asyncio.run(ask("Why?"))

        assert {context.text for context in traced.exchange.contexts} == {"a", "b"}

    def test_duplicate_contexts_are_stored_once(self, traced: Any) -> None:
        """A text that two retrievers return becomes one context."""
        search = germane.retrieval(lambda query: ["a", query])

        germane.observe(lambda question: str([search("x"), search("y")]))("Why?")

        assert [context.text for context in traced.exchange.contexts] == ["a", "x", "y"]

    def test_a_contexts_selector_reads_the_return_value_of_the_handler(self, traced: Any) -> None:
        """``contexts=`` reads them from the same value as the answer."""
        germane.observe(answer="text", contexts="sources")(lambda q: {"text": "A", "sources": ["a", "b"]})("Why?")

        assert (traced.exchange.answer, len(traced.exchange.contexts)) == ("A", 2)

    def test_a_handler_can_add_contexts(self, traced: Any) -> None:
        """Added contexts belong to the exchange, and are recorded on a retrieval span."""

        @germane.observe
        def ask(question: str) -> str:
            germane.add_contexts([{"body": "a", "nr": 1}], content="body", id="nr")
            germane.add_contexts("b")
            return "A"

        ask("Why?")

        assert list(traced.exchange.contexts) == [Context("a", "1"), Context("b")]
        assert [span.name for span in traced.spans] == ["retrieval ask", "retrieval ask", "invoke_workflow ask"]

    def test_a_retriever_outside_a_handler_creates_only_a_span(self, traced: Any) -> None:
        """There is no exchange to add the contexts to."""
        assert germane.retrieval(source="docs")(lambda query: ["a"])("Why?") == ["a"]
        assert (traced.exchanges, traced.span().name) == ([], "retrieval docs")

    def test_a_handler_called_by_a_retriever_yields_no_separate_exchange(self, traced: Any) -> None:
        """The inner handler's answer is not recorded as a separate exchange."""
        inner = germane.observe(route="inner")(lambda query: "rewritten")
        search = germane.retrieval(lambda query: [inner(query)])

        germane.observe(route="outer")(lambda question: search(question)[0].upper())("Why?")

        assert (traced.exchange.route, traced.exchange.contexts[0].text) == ("outer", "rewritten")


class TestAttributes:
    """Attributes, ids and history of an exchange."""

    def test_model_prompt_version_session_and_user_are_fields_of_the_exchange(self, traced: Any) -> None:
        """They are stored as text. Other attributes keep their type, and None removes an attribute."""

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

    @each("value", [object(), [1], {"a": 1}, float, ...])
    def test_an_invalid_attribute_is_reported_on_the_span(self, traced: Any, value: Any) -> None:
        """A value that spans cannot hold is dropped."""
        traced.clear()
        germane.observe(attributes={"odd": lambda: value})(lambda question: "a")("Why?")

        assert dict(traced.exchange.attributes) == {}
        assert "attribute odd" in traced.attributes()["germane.capture.error"]

    def test_functions_for_the_current_exchange_have_no_effect_outside_a_handler(self, traced: Any) -> None:
        """Without a current exchange, attributes and contexts are dropped and ids are None."""
        germane.set_attribute("a", "b")
        germane.add_contexts(["a"])

        assert (germane.current_exchange().id, germane.current_exchange().trace_id, traced.spans) == (None, None, [])

    def test_current_exchange_returns_the_ids_of_the_outermost_exchange(self, traced: Any) -> None:
        """This also applies in inner handlers and retrievers."""

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

    def test_the_history_is_read_from_common_message_formats(self, traced: Any) -> None:
        """Pairs, mappings, objects and texts are messages. Messages without text are omitted."""
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

    @each("kind", ["coroutine", "generator", "object"])
    def test_a_history_without_messages_is_reported(self, traced: Any, kind: str) -> None:
        """If the selector returns a coroutine or another object without text, the history is dropped."""

        traced.clear()

        async def later() -> list[str]:
            return ["earlier"]

        coroutine = later()
        values = {"coroutine": coroutine, "generator": (turn for turn in ["earlier"]), "object": object()}

        germane.observe(history=lambda: values[kind])(lambda question: "a")("Why?")
        coroutine.close()

        assert traced.exchange.history == ()
        assert f"history: {kind} is not a message" in traced.attributes()["germane.capture.error"]
