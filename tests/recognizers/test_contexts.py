"""Contexts from functions, tools and messages, and the names in exchanges of recognized traces."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each
from tests.spans.samples import Node, chat, node, parts, trace

from germane.recognizers import Recognized, SpanEvent, Unreadable
from germane.recognizers.attributes import stable_name
from germane.recognizers.recognition import recognize

DOCUMENTS = ["The night train calls at Lyon at 02:10.", "Dogs travel free of charge."]
KIND = "openinference.span.kind"


def recognized(*roots: Node, scope: str = "shop") -> Recognized:
    result = recognize(trace(scope, *roots))
    assert isinstance(result, Recognized), result
    return result


def contexts(*roots: Node) -> list[str]:
    return [context.text for context in recognized(*roots).contexts]


def step(name: str, given: Any, *children: Node, asked: Any = "Which train?") -> Node:
    """Return a step of a workflow."""
    values = {"input.value": json.dumps(asked), "output.value": json.dumps(given)}
    return node(name, {KIND: "CHAIN", **values}, *children)


def answered(documents: list[str], *before: dict[str, Any]) -> Node:
    """Return a model call whose prompt contains documents."""
    return chat("Which train?", "The night train.", parts("system", "Use these:\n" + "\n".join(documents)), *before)


@each("name", ["hole_regeln", "lookup", "подбор", "step_2"])
@each("key", ["", "documents", "sources", "Regeln", "passages"])
@each("wrap", [str, lambda text: {"id": 1, "text": text}, lambda text: {"page_content": text, "metadata": {}}])
def test_documents_that_a_function_returned_for_a_prompt_are_contexts(name: str, key: str, wrap: Any) -> None:
    """Neither the function's name nor that of the list matters: a model received what the function returned."""
    found = [wrap(text) for text in DOCUMENTS]

    function = step(name, {key: found} if key else found)

    assert contexts(step("ask", "The night train.", function, answered(DOCUMENTS))) == DOCUMENTS


def test_texts_that_a_model_wrote_are_not_contexts() -> None:
    """Plans and sub-questions are passed on to other prompts like documents, but nobody retrieved them."""
    plan = "Look up the timetable of the night train."
    planner = chat("Plan the answer to: Which train?", plan)
    parse = step("parse", [plan, "Which trains stop at night in Lyon?"])

    found = contexts(step("ask", "The night train.", planner, parse, answered([plan])))

    assert found == []


def test_a_conversation_that_a_function_loaded_is_not_a_list_of_documents() -> None:
    """Earlier messages are the history of an exchange rather than its contexts."""
    before = [
        {"role": "user", "content": "Is Lyon a city in France?"},
        {"role": "assistant", "content": "Yes, it is a city."},
    ]

    assert contexts(step("ask", "The night train.", step("load", before), answered([], *before))) == []


@each(
    "result",
    [
        DOCUMENTS,
        json.dumps(DOCUMENTS),
        str(DOCUMENTS),
        str([{"id": 1, "text": text} for text in DOCUMENTS]),
        [{"type": "text", "text": text} for text in DOCUMENTS],
        [{"type": "text", "text": json.dumps(DOCUMENTS)}],
        {"results": [{"snippet": text, "score": 0.5} for text in DOCUMENTS]},
    ],
)
@each(
    ("call", "response"),
    [
        (
            {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "find_docs"}]},
            {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "response": None}]},
        ),
        (
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "find_docs", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": None}]},
        ),
        (
            {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "find_docs"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": None},
        ),
        (
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "find_docs"}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": None}}]},
        ),
        (
            {"role": "model", "parts": [{"function_call": {"name": "find_docs", "args": {}}}]},
            {"role": "user", "parts": [{"function_response": {"name": "find_docs", "response": None}}]},
        ),
    ],
)
def test_results_of_search_tools_in_messages_are_contexts(call: Any, response: Any, result: Any) -> None:
    """A tool that no span records leaves its result in the next prompt, in the provider's form. Lists stay lists."""
    returned = json.loads(json.dumps(response).replace("null", json.dumps(result)))
    conversation = [parts("user", "Which train?"), call, returned]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(conversation),
        "gen_ai.output.messages": json.dumps([parts("assistant", "The night train.")]),
    }

    assert contexts(node("chat", attributes)) == DOCUMENTS


def test_results_of_other_tools_and_of_earlier_turns_are_not_contexts() -> None:
    """A clock is no search, and what a tool found for an earlier question is no context of this answer."""

    def used(tool: str, result: str) -> list[dict[str, Any]]:
        return [
            {"role": "assistant", "tool_calls": [{"id": tool, "function": {"name": tool}}]},
            {"role": "tool", "tool_call_id": tool, "content": result},
        ]

    earlier = [parts("user", "Dogs?"), *used("search", "Dogs travel free."), parts("assistant", "They do.")]
    conversation = [*earlier, parts("user", "Which train?"), *used("clock", "It is noon.")]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(conversation),
        "gen_ai.output.messages": json.dumps([parts("assistant", "The night train.")]),
    }

    assert contexts(node("chat", attributes)) == []


def test_an_answer_that_repeats_an_earlier_one_keeps_its_contexts() -> None:
    """People ask again, and get the same answer from documents that were retrieved again."""
    retriever = node("retriever", {KIND: "RETRIEVER", "output.value": json.dumps(DOCUMENTS)})
    before = [parts("user", "Which train?"), parts("assistant", "The night train.")]
    turn = node("ask", {}, retriever, answered(DOCUMENTS, *before))

    assert contexts(turn) == DOCUMENTS


@each("name", ["query_event", "com.example.QueryEnd", "данные", "gen_ai.client.inference.operation.details"])
@each(
    "values",
    [
        {"input.value": "Which train?", "output.value": "The night train."},
        {"query": "Which train?", "response": "The night train."},
        {"query.query_str": "Which train?", "response.response": "The night train.", "response.score": 1},
        {
            "gen_ai.input.messages": json.dumps([parts("user", "Which train?")]),
            "gen_ai.output.messages": json.dumps([parts("assistant", "The night train.")]),
        },
    ],
)
@each("operation", ["chat", "invoke_agent"])
def test_an_event_of_any_name_is_read_like_attributes(name: str, values: dict[str, Any], operation: str) -> None:
    """Instrumentations record texts in events with names of their own, together or one after the other."""
    together = (SpanEvent(name=name, attributes=values),)
    apart = tuple(SpanEvent(name=name, attributes={key: value}) for key, value in values.items())
    for events in (together, apart):
        result = recognized(node("call", {"gen_ai.operation.name": operation}, events=events))

        assert (result.question, result.answer) == ("Which train?", "The night train.")


def test_exceptions_and_other_events_are_not_texts_of_an_exchange() -> None:
    """Neither the message of an exception nor a measurement is a question or an answer."""
    events = (
        SpanEvent(name="exception", attributes={"message": "Which train?", "output": "Traceback"}),
        SpanEvent(name="first chunk", attributes={"response": 12, "query": True}),
    )

    result = recognize(trace("shop", node("call", {"gen_ai.operation.name": "chat"}, events=events)))

    assert isinstance(result, Unreadable)


def test_building_an_index_is_not_an_exchange() -> None:
    """Splitting and embedding documents is no question, so nothing is reported as missing."""
    chunks = json.dumps([{"text": text} for text in DOCUMENTS])
    split = node("Splitter", {KIND: "CHAIN", "output.value": chunks})
    embed = node("embed", {KIND: "EMBEDDING", "embedding.embeddings.0.embedding.text": DOCUMENTS[0]})
    query = node("ask", {KIND: "CHAIN", "input.value": "Which train?"}, embed)

    reasons = [
        recognize(trace("shop", *roots)) for roots in ([split], [node("build", {KIND: "CHAIN"}, embed)], [query])
    ]

    assert [result.reason for result in reasons if isinstance(result, Unreadable)] == [
        "not_an_exchange",
        "not_an_exchange",
        "model_not_traced",
    ]


def test_an_answer_without_a_question_and_a_model_call_lacks_the_question() -> None:
    """If a framework recorded the answer, the reason does not say that the model is not traced."""
    crew = node("crew", {KIND: "CHAIN", "output.value": json.dumps({"raw": "The night train."})})

    result = recognize(trace("shop", crew))

    assert isinstance(result, Unreadable)
    assert result.reason == "no_question"


@each(
    ("recorded", "model"),
    [
        ("openai/gpt-4o", "gpt-4o"),
        ("azure/gpt-4o", "gpt-4o"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("openrouter/openai/gpt-4o", "gpt-4o"),
        ("acme:gpt-4o", "gpt-4o"),
        ("llama3:8b", "llama3:8b"),
    ],
)
@each("attribute", ["gen_ai.request.model", "llm.model_name", "langfuse.observation.model.name"])
def test_the_provider_is_not_part_of_a_models_name(attribute: str, recorded: str, model: str) -> None:
    """A model has one name, whichever gateway or client calls it."""
    call = chat("Which train?", "The night train.", **{attribute: recorded, "gen_ai.provider.name": "acme"})

    assert recognized(call).model == model


@given(number=st.uuids(), other=st.uuids(), prefix=st.sampled_from(["Crew_", "run-", "GET /a/", "task "]))
def test_ids_do_not_make_names_of_spans_distinct(number: Any, other: Any, prefix: str) -> None:
    """Names that differ by a UUID, with or without hyphens, or by a large number are one route."""
    forms = [(str(each), each.hex, str(each.int)) for each in (number, other)]

    for one, another in zip(*forms, strict=True):
        assert stable_name(f"{prefix}{one}.kickoff") == stable_name(f"{prefix}{another}.kickoff")


@each("name", ["chat gpt-4o-mini", "GET /v1/ask", "RAG v2", "step 12", "gpt-4o-2024-08-06", "RunnableSequence"])
def test_names_without_ids_are_kept(name: str) -> None:
    """Versions and small numbers are part of a name."""
    assert stable_name(name) == name


ID = {"gen_ai.response.id": "r1"}


@each(("ids", "others"), [(ID, ID), ({}, {}), (ID, {}), ({}, ID)])
def test_a_clients_spans_without_text_stand_for_instrumented_calls(ids: dict[str, str], others: dict[str, str]) -> None:
    """An SDK that traces itself does not hide the texts that an instrumentation recorded for the same call."""
    names = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "model-7"}
    own = node("messages.create", {**names, **ids}, scope="com.example.sdk")
    recorded, empty, root = trace("shop", node("ask", {}, chat("Which train?", "The night train.", **others), own))
    if not ids or not others:  # without ids, they are the same call if one takes place during the other
        empty = dataclasses.replace(empty, start=recorded.start, end=recorded.end)

    result = recognize([recorded, empty, root])

    assert isinstance(result, Recognized)
    assert result.answer == "The night train."


def test_a_span_without_text_and_with_another_response_is_another_call() -> None:
    """If the call that came last recorded no text, the earlier one did not necessarily give the answer."""
    names = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "model-7"}
    own = node("messages.create", {**names, "gen_ai.response.id": "r2"}, scope="com.example.sdk")
    call = chat("Which train?", "Let me see.", **{"gen_ai.response.id": "r1"})

    assert isinstance(recognize(trace("shop", node("ask", {}, call, own))), Unreadable)


def test_the_parts_of_a_stream_in_events_are_the_answer_unless_the_first_are_missing() -> None:
    """An SDK keeps the last events of a span. A beginning that it dropped must not be missing from the answer."""
    begin = SpanEvent(name="begin", attributes={"query": "Which train?"})
    deltas = tuple(SpanEvent(name="delta", attributes={"delta": text}) for text in ("The ", "night ", "train."))
    agent = {"gen_ai.operation.name": "invoke_agent", "input.value": "Which train?"}

    assert recognized(node("ask", agent, events=(begin, *deltas))).answer == "The night train."
    assert isinstance(recognize(trace("shop", node("ask", agent, events=deltas))), Unreadable)


def test_events_with_a_role_are_a_conversation() -> None:
    """The last message of the assistant is the answer, whatever the events are called, also before other events."""
    turns = (("user", "Dogs?"), ("assistant", "Yes."), ("user", "Which train?"), ("assistant", "The night train."))
    messages = [SpanEvent(name="turn", attributes={"role": role, "content": text}) for role, text in turns]
    events = (*messages, SpanEvent(name="cache", attributes={"state": "stored"}))

    result = recognized(node("ask", {"gen_ai.operation.name": "chat"}, events=events))

    assert (result.question, result.answer, len(result.history)) == ("Which train?", "The night train.", 2)


def test_the_only_text_that_asks_is_the_question_of_a_chain() -> None:
    """Inputs have names in any language. Two texts that ask may both be the question."""
    output = json.dumps({"answer": "The night train."})

    def asked(**inputs: str) -> Any:
        return recognize(
            trace("shop", node("c", {KIND: "CHAIN", "input.value": json.dumps(inputs), "output.value": output}))
        )

    one, two = asked(frage="Which train?", ton="Be kind."), asked(frage="Which train?", gegenfrage="Which day?")

    assert isinstance(one, Recognized)
    assert one.question == "Which train?"
    assert isinstance(two, Unreadable)


def test_arguments_of_a_function_are_texts_rather_than_a_list_of_documents() -> None:
    """A function that gets the documents in one text, and the question, does not have two contexts."""
    generate = step(
        "generate", "The night train.", answered(DOCUMENTS), asked={"args": ["\n".join(DOCUMENTS), "Which?"]}
    )

    assert contexts(step("ask", "The night train.", generate)) == []


def test_only_the_step_that_searches_returns_documents() -> None:
    """A step that also calls the model returns the answer, and an embedding is no search, whatever their names are."""
    embedding = node("search_query", {KIND: "EMBEDDING", "output.value": "A long vector of numbers."})

    assert contexts(step("search_and_answer", "The night train.", embedding, answered([]))) == []


def test_documents_in_very_deep_lists_are_left_out() -> None:
    """The time to read a result does not depend on its nesting."""
    for depth, expected in ((2, DOCUMENTS), (60, [])):
        found = "[" * depth + json.dumps(DOCUMENTS) + "]" * depth
        tool = node("search", {KIND: "RETRIEVER", "output.value": found})

        assert contexts(node("ask", {}, tool, answered([]))) == expected


def test_the_list_with_the_name_of_contexts_is_the_contexts_of_a_prompt() -> None:
    """Other lists among the inputs, such as examples, were not retrieved."""
    inputs = {"question": "Which train?", "examples": ["A bus is a long car."], "context": DOCUMENTS}

    assert contexts(step("ask", "The night train.", answered(DOCUMENTS), asked=inputs)) == DOCUMENTS


def test_texts_without_a_comma_between_them_are_not_joined() -> None:
    """Python would join what NumPy writes as two texts."""
    found = "['The night train.' 'Dogs travel free.']"
    tool = node("search", {KIND: "TOOL", "tool.name": "search", "output.value": found})

    assert contexts(node("ask", {}, tool, answered([]))) == ["The night train.", "Dogs travel free."]


@each(
    "found",
    [
        "[Document(page_content='The night train.', metadata={'at': datetime.date(2026, 3, 1)})]",
        "[NodeWithScore(node=TextNode(id_='7', kind=<ObjectType.TEXT: '1'>, text='The night train.'), score=0.5)]",
        "page_content='The night train.' metadata={'source': <app.Source object at 0x7f2a>}",
        "array(['The night train.'], dtype=object)",
    ],
)
def test_objects_that_a_tool_returned_as_text_are_read(found: str) -> None:
    """Traced functions often record the representation of their result."""
    tool = node("search", {KIND: "TOOL", "tool.name": "search", "output.value": found})

    assert contexts(node("ask", {}, tool, answered([]))) == ["The night train."]


def test_a_model_in_a_document_is_not_the_model_that_was_called() -> None:
    """Shops sell models, too."""
    output = {"answer": "The X1.", "sources": [{"text": "The X1 has a fan.", "model": "X1"}]}
    call = {"openinference.span.kind": "LLM", "input.value": "Which laptop?", "output.value": "The X1."}

    assert recognized(step("ask", output, node("call", call), asked="Which laptop?")).model is None
