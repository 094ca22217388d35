"""Reasons why a trace is unreadable, and what to do."""

from __future__ import annotations

from dataclasses import replace
from json import dumps
from typing import Any

from tests.cases import each
from tests.spans.samples import Node, node, parts, trace

from germane.recognizers import Recognized, SpanData, Unreadable
from germane.recognizers.recognition import recognize

KIND = "openinference.span.kind"
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
EMPTY = [{"role": role, "parts": [{"type": "text"}]} for role in ("user", "assistant")]
TOOL_CALL = [{"role": "assistant", "parts": [{"type": "tool_call", "name": "search", "arguments": "{}"}]}]


def vercel(name: str, **attributes: str) -> Node:
    named = {key.replace("_", "."): value for key, value in attributes.items()}
    return node(name, {"ai.operationId": name, **named})


def lost_parent(spans: tuple[SpanData, ...]) -> tuple[SpanData, ...]:
    return tuple(replace(span, parent_id="f" * 16) for span in spans)


@each(
    ("spans", "reason"),
    [
        (
            trace(
                "pydantic-ai",
                node(
                    "invoke_agent",
                    {"gen_ai.operation.name": "invoke_agent", "pydantic_ai.all_messages": dumps(EMPTY)},
                    node(
                        "chat",
                        {
                            **CHAT,
                            "gen_ai.input.messages": dumps(EMPTY[:1]),
                            "gen_ai.output.messages": dumps(EMPTY[1:]),
                        },
                    ),
                ),
            ),
            "content_capture_off",
        ),
        (lost_parent(trace("opentelemetry.instrumentation.genai.openai", node("chat", CHAT))), "content_capture_off"),
        (
            trace(
                "openinference.instrumentation.openai_agents",
                node("workflow", {KIND: "AGENT"}, node("response", {KIND: "LLM"}, status="ERROR")),
            ),
            "call_failed",
        ),
        (
            trace(
                "openinference.instrumentation.llama_index",
                node("write_response_to_history", {KIND: "LLM", "input.value": dumps({"memory": "Memory(size=1)"})}),
            ),
            "not_an_exchange",
        ),
        (
            trace(
                "gen_ai",
                node(
                    "chat",
                    {
                        **CHAT,
                        "gen_ai.input.messages": dumps([parts("user", "Why?")]),
                        "gen_ai.output.messages": dumps(TOOL_CALL),
                    },
                ),
            ),
            "not_an_exchange",
        ),
        (
            trace(
                "opentelemetry.instrumentation.openai.v1",
                node("openai.embeddings", {"llm.request.type": "embedding", "gen_ai.request.model": "m"}),
            ),
            "not_an_exchange",
        ),
        (trace("ai", vercel("ai.streamText.doStream", ai_response_text="Because.")), "content_capture_off"),
        (
            trace(
                "ai",
                vercel(
                    "ai.generateText.doGenerate", ai_prompt=dumps({"prompt": "Why?"}), ai_response_finishReason="stop"
                ),
            ),
            "content_capture_off",
        ),
        (
            trace("ai", vercel("ai.streamText.doStream", ai_prompt=dumps({"prompt": "Why?"}))),
            "no_answer",
        ),
    ],
)
def test_the_reason_for_an_unreadable_trace_names_what_is_missing(spans: tuple[SpanData, ...], reason: str) -> None:
    """The reason is the cause, not a consequence of it."""
    result = recognize(spans)

    assert isinstance(result, Unreadable)
    assert result.reason == reason


@each(
    ("attributes", "name", "fix"),
    [
        (
            {"haystack.component.name": "llm", "haystack.component.type": "OpenAIChatGenerator"},
            "haystack.component.run",
            "HAYSTACK_CONTENT_TRACING_ENABLED=true",
        ),
        ({"ai.operationId": "ai.generateText.doGenerate"}, "ai.generateText.doGenerate", "recordInputs"),
    ],
)
def test_the_fix_for_an_unreadable_trace_matches_its_instrumentation(
    attributes: dict[str, Any], name: str, fix: str
) -> None:
    """Applications may choose the name of the tracer, so the scope does not always name the instrumentation."""
    result = recognize(trace("my-app", node(name, attributes)))

    assert isinstance(result, Unreadable)
    assert result.reason == "content_capture_off"
    assert fix in result.fix


def test_an_agent_of_haystack_yields_an_exchange() -> None:
    """Its spans have the application's scope and attributes of their own."""
    question, answer = "Which trains stop in Lyon?", "The night train does."
    message = {"role": "user", "meta": {}, "name": None, "content": [{"text": question}]}
    reply = {"role": "assistant", "meta": {"model": "m"}, "name": None, "content": [{"text": answer}]}
    agent = node(
        "haystack.agent.run",
        {
            "haystack.agent.max_steps": 10,
            "haystack.agent.input": dumps({"messages": [message], "streaming_callback": None}),
            "haystack.agent.output": dumps({"messages": [message, reply]}),
        },
        node(
            "haystack.agent.step",
            {"haystack.agent.step": 0},
            node(
                "haystack.agent.step.tool",
                {"haystack.tool.name": "search_docs", "haystack.agent.step.tool.output": "Trains: night train."},
            ),
        ),
        node(
            "haystack.agent.step",
            {"haystack.agent.step": 1},
            node(
                "haystack.agent.step.llm",
                {
                    "haystack.agent.step.llm.input": "{'messages': [ChatMessage(_role=<ChatRole.USER: 'user'>)]}",
                    "haystack.agent.step.llm.output": dumps({"replies": [reply]}),
                },
            ),
        ),
    )

    result = recognize(trace("my-app", agent))

    assert isinstance(result, Recognized)
    assert (result.question, result.answer) == (question, answer)
    assert [context.text for context in result.contexts] == ["Trains: night train."]


@each("missing", ["null", "None", " null ", '""'])
def test_what_serializers_write_for_a_missing_value_is_not_a_text(missing: str) -> None:
    """JSON's null and Python's None are neither a question nor an answer, unless a message of a model contains them."""
    texts = {
        "gen_ai.input.messages": dumps([parts("user", "Why?")]),
        "gen_ai.output.messages": dumps([parts("assistant", "So.")]),
    }
    operation = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}

    for attribute, reason in (("gen_ai.input.messages", "no_question"), ("gen_ai.output.messages", "no_answer")):
        found = recognize(trace("shop", node("chat", {**operation, **texts, attribute: missing})))
        assert isinstance(found, Unreadable)
        assert found.reason == reason

    said = {
        "gen_ai.input.messages": dumps([parts("user", missing)]),
        "gen_ai.output.messages": dumps([parts("assistant", missing)]),
    }
    found = recognize(trace("shop", node("chat", {**operation, **said})))
    assert isinstance(found, Recognized)
    assert (found.question, found.answer) == (missing.strip(), missing.strip())


@each("length", [1, 3, 20, 40])
def test_json_that_was_cut_off_is_not_a_text(length: int) -> None:
    """OpenTelemetry's SDKs cut long attributes at a configured length, so that messages are not valid JSON."""
    messages = {"gen_ai.input.messages": dumps([parts("user", "Why is the sky blue, and the sun yellow?")])}
    messages["gen_ai.output.messages"] = dumps([parts("assistant", "Because short waves are scattered more.")])

    for cut_off in (["gen_ai.input.messages"], ["gen_ai.output.messages"], list(messages)):
        cut = {name: value[:-length] if name in cut_off else value for name, value in messages.items()}
        found = recognize(trace("shop", node("chat", {**CHAT, **cut})))
        assert isinstance(found, Unreadable)
        assert found.reason == "content_cut"
        assert "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT" in found.fix


def test_a_question_about_json_is_a_question() -> None:
    """Text after JSON, or JSON that was cut off within a message, was written by the user."""
    for question in ('{"a": 1} is what?', '{"a": 1, "b": [', '[{"role": "user", "content": "hi'):
        messages = {"gen_ai.input.messages": dumps([parts("user", question)])}
        messages["gen_ai.output.messages"] = dumps([parts("assistant", "JSON.")])
        chain = {KIND: "CHAIN", "input.value": question, "output.value": "JSON."}

        found = recognize(trace("shop", node("chain", chain, node("chat", {**CHAT, **messages}))))

        assert isinstance(found, Recognized)
        assert found.question == question
