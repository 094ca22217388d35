"""Small traces, made by hand, that follow the conventions of other instrumentations, with any texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from germane.recognizers import LogData, SpanData, SpanEvent

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The texts of one exchange."""

    question: str = "Which trains stop in Lyon?"
    answer: str = "The night train and the regional express do."
    documents: tuple[str, ...] = ("The night train calls at Lyon at 02:10.", "Dogs travel free of charge.")
    history: tuple[tuple[str, str], ...] = ()
    """Earlier messages as pairs of role and text."""

    @property
    def prompt(self) -> str:
        """A prompt with documents and the question."""
        return f"Use these passages.\n{chr(10).join(self.documents)}\n\nQuestion: {self.question}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A span with its children."""

    name: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    children: tuple[Node, ...] = ()
    scope: str | None = None
    """None for the scope of the parent."""
    events: tuple[SpanEvent, ...] = ()
    status: str = "UNSET"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A trace, and which parts of the exchange it contains."""

    spans: tuple[SpanData, ...]
    logs: tuple[LogData, ...] = ()
    has_contexts: bool = True
    has_history: bool = False
    needs_query: bool = False
    """Whether the question alone is only known from the query of a retriever."""


def node(name: str, attributes: Mapping[str, Any] | None = None, *children: Node, **others: Any) -> Node:
    """Return a span with its children."""
    return Node(name=name, attributes=attributes or {}, children=children, **others)


def trace(scope: str, *roots: Node, trace_id: str = TRACE_ID) -> tuple[SpanData, ...]:
    """Return the spans of a trace in the order of their ends, as an exporter gets them."""
    spans: list[SpanData] = []
    clock = 1_000

    def add(top: Node, parent_id: str | None, scope: str) -> None:
        nonlocal clock
        clock += 1
        start, span_id = clock, f"{clock:016x}"
        for child in top.children:
            add(child, span_id, top.scope or scope)
        clock += 1
        spans.append(
            SpanData(
                trace_id=trace_id,
                span_id=span_id,
                parent_id=parent_id,
                name=top.name,
                scope=top.scope or scope,
                attributes=top.attributes,
                events=top.events,
                start=start,
                end=clock,
                status=top.status,
            )
        )

    for root in roots:
        add(root, None, scope)
    return tuple(spans)


def messages(texts: Texts, *more: Mapping[str, Any], content: str = "content") -> list[Any]:
    """Return the conversation up to the question, and further messages."""
    turns = (*texts.history, ("user", texts.question))
    return [*({"role": role, content: text} for role, text in turns), *more]


def parts(role: str, text: str) -> dict[str, Any]:
    """Return a message with parts."""
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def flat(prefix: str, conversation: list[Any], start: int = 0) -> dict[str, Any]:
    """Return messages as OpenInference's attributes."""
    return {
        f"{prefix}.{number}.message.{key}": value
        for number, message in enumerate(conversation, start)
        for key, value in message.items()
    }


def flat_documents(texts: Texts) -> dict[str, Any]:
    """Return documents as OpenInference's attributes."""
    return {f"retrieval.documents.{number}.document.content": text for number, text in enumerate(texts.documents)}


def chat(question: str, answer: str, *before: dict[str, Any], **more: str) -> Node:
    """Return the span of a model call."""
    asked = [*before, parts("user", question)]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps([parts("assistant", answer)]),
        **more,
    }
    return node("chat", attributes, scope="opentelemetry.instrumentation.genai.openai")


CALL = {"type": "tool_call", "id": "c1", "name": "search_docs", "arguments": {"query": "x"}}


def openinference_langchain(texts: Texts) -> Sample:
    """A chain of a retriever, a prompt and a model."""
    joined = "\n".join(texts.documents)
    kind = "openinference.span.kind"
    variables = json.dumps({"context": joined, "question": texts.question})
    spans = trace(
        "openinference.instrumentation.langchain",
        node(
            "RunnableSequence",
            {kind: "CHAIN", "input.value": texts.question, "output.value": texts.answer, "session.id": "s-9"},
            node(
                "RunnableParallel<context,question>",
                {
                    kind: "CHAIN",
                    "input.value": texts.question,
                    "output.value": variables,
                    "output.mime_type": "application/json",
                },
                node(
                    "RunnableSequence",
                    {kind: "CHAIN", "input.value": texts.question, "output.value": joined},
                    node(
                        "Trains",
                        {kind: "RETRIEVER", "input.value": texts.question, "user.id": "u-9", **flat_documents(texts)},
                    ),
                ),
            ),
            node("ChatPromptTemplate", {kind: "PROMPT", "llm.prompt_template.variables": variables}),
            node(
                "ChatModel",
                {
                    kind: "LLM",
                    "llm.model_name": "model-7",
                    **flat("llm.input_messages", [{"role": "user", "content": texts.prompt}]),
                    **flat("llm.output_messages", [{"role": "assistant", "content": texts.answer}]),
                },
            ),
        ),
    )
    return Sample(spans=spans)


def openinference_langgraph(texts: Texts) -> Sample:
    """An agent whose tool uses a retriever. The root has LangChain's dump of messages."""
    kind = "openinference.span.kind"
    dump = [
        *({"type": {"user": "human"}.get(role, "ai"), "data": {"content": text}} for role, text in texts.history),
        {"type": "human", "data": {"content": texts.question}},
        {"type": "ai", "data": {"content": "", "tool_calls": [{"name": "search_docs"}]}},
        {"type": "tool", "data": {"content": "\n".join(texts.documents), "name": "search_docs"}},
    ]
    output = {"messages": [*dump, {"type": "ai", "data": {"content": texts.answer, "tool_calls": []}}]}
    spans = trace(
        "openinference.instrumentation.langchain",
        node(
            "LangGraph",
            {
                kind: "CHAIN",
                "input.value": json.dumps({"messages": messages(texts)}),
                "output.value": json.dumps(output),
                "metadata": json.dumps({"thread_id": "t-9"}),
            },
            node(
                "ChatModel",
                {
                    kind: "LLM",
                    **flat("llm.input_messages", messages(texts)),
                    "llm.output_messages.0.message.role": "assistant",
                    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "search_docs",
                },
            ),
            node(
                "search_docs",
                {kind: "TOOL", "tool.name": "search_docs", "output.value": "\n".join(texts.documents)},
                node("Trains", {kind: "RETRIEVER", "input.value": "x", **flat_documents(texts)}),
            ),
            node(
                "ChatModel",
                {
                    kind: "LLM",
                    "llm.model_name": "model-7",
                    **flat(
                        "llm.input_messages",
                        messages(texts, {"role": "assistant"}, {"role": "tool", "content": "\n".join(texts.documents)}),
                    ),
                    **flat("llm.output_messages", [{"role": "assistant", "content": texts.answer}]),
                },
            ),
        ),
    )
    return Sample(spans=spans, has_history=True)


def openinference_llamaindex(texts: Texts) -> Sample:
    """A query engine."""
    kind = "openinference.span.kind"
    spans = trace(
        "openinference.instrumentation.llama_index",
        node(
            "RetrieverQueryEngine.query",
            {kind: "CHAIN", "input.value": texts.question, "output.value": texts.answer},
            node(
                "VectorIndexRetriever.retrieve",
                {kind: "RETRIEVER", "input.value": texts.question, **flat_documents(texts)},
            ),
            node(
                "CompactAndRefine.synthesize",
                {kind: "CHAIN", "input.value": texts.question, "output.value": texts.answer},
                node(
                    "OpenAI.chat",
                    {
                        kind: "LLM",
                        "output.value": f"assistant: {texts.answer}",
                        "llm.model_name": "model-7",
                        **flat("llm.input_messages", [{"role": "user", "content": texts.prompt}]),
                        **flat("llm.output_messages", [{"role": "assistant", "content": texts.answer}]),
                    },
                ),
            ),
        ),
    )
    return Sample(spans=spans)


def openinference_haystack(texts: Texts) -> Sample:
    """A pipeline whose output is a Python representation."""
    kind = "openinference.span.kind"
    output = {"llm": {"replies": [f"ChatMessage(_role='assistant', _content=[TextContent(text={texts.answer!r})])"]}}
    data = {"retriever": {"query": texts.question}, "prompt_builder": {"question": texts.question}}
    spans = trace(
        "openinference.instrumentation.haystack",
        node(
            "Pipeline.run",
            {kind: "CHAIN", "input.value": json.dumps({"data": data}), "output.value": json.dumps(output)},
            node(
                "Retriever.run",
                {kind: "RETRIEVER", "input.value": json.dumps(data["retriever"]), **flat_documents(texts)},
            ),
            node(
                "Generator.run",
                {
                    kind: "LLM",
                    "llm.model_name": "model-7",
                    **flat("llm.input_messages", [{"role": "user", "content": texts.prompt}]),
                    **flat("llm.output_messages", [{"role": "assistant", "content": texts.answer}]),
                },
            ),
        ),
    )
    return Sample(spans=spans)


def openinference_responses(texts: Texts) -> Sample:
    """A request to the Responses API, with numbered contents."""
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "model-7",
        **flat("llm.input_messages", [{"role": "system", "content": "Be brief."}, *messages(texts)]),
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.contents.0.message_content.type": "text",
        "llm.output_messages.0.message.contents.0.message_content.text": texts.answer,
    }
    spans = trace("openinference.instrumentation.openai", node("Response", attributes))
    return Sample(spans=spans, has_contexts=False, has_history=True)


def openinference_agents(texts: Texts) -> Sample:
    """An agent whose root has no content, and whose messages are numbered from 1."""
    kind = "openinference.span.kind"
    first = {kind: "LLM", "llm.model_name": "model-7", **flat("llm.input_messages", messages(texts), 1)}
    loop = messages(texts, {"role": "assistant"}, {"role": "tool", "content": "\n".join(texts.documents)})
    spans = trace(
        "openinference.instrumentation.openai_agents",
        node(
            "trip-planner",
            {kind: "AGENT"},
            node(
                "turn",
                {kind: "CHAIN"},
                node(
                    "response",
                    {
                        **first,
                        "llm.output_messages.0.message.role": "assistant",
                        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
                    },
                ),
                node(
                    "search_docs",
                    {kind: "TOOL", "tool.name": "search_docs", "output.value": json.dumps(texts.documents)},
                ),
            ),
            node(
                "turn",
                {kind: "CHAIN"},
                node(
                    "response",
                    {
                        **first,
                        **flat("llm.input_messages", loop, 1),
                        **flat("llm.output_messages", [{"role": "assistant", "content": texts.answer}]),
                    },
                ),
            ),
        ),
    )
    return Sample(spans=spans, has_history=True)


def openinference_dspy(texts: Texts) -> Sample:
    """A program with fields; its model call has a template."""
    kind = "openinference.span.kind"
    output = {"reasoning": "Because.", "answer": texts.answer}
    spans = trace(
        "openinference.instrumentation.dspy",
        node(
            "Rag.forward",
            {
                kind: "CHAIN",
                "input.value": json.dumps({"question": texts.question}),
                "output.value": json.dumps(output),
            },
            node(
                "Predict.forward",
                {
                    kind: "CHAIN",
                    "input.value": json.dumps({"context": texts.documents, "question": texts.question}),
                    "output.value": json.dumps(output),
                },
                node(
                    "LM.__call__",
                    {
                        kind: "LLM",
                        "llm.model_name": "model-7",
                        **flat(
                            "llm.input_messages",
                            [
                                {"role": "system", "content": DSPY_INSTRUCTIONS},
                                {"role": "user", "content": dspy_prompt(texts)},
                            ],
                        ),
                        **flat("llm.output_messages", [{"role": "assistant", "content": dspy_reply(texts)}]),
                    },
                ),
            ),
        ),
    )
    return Sample(spans=spans)


DSPY_INSTRUCTIONS = """Your input fields are:
1. `context` (str):
2. `question` (str):
Your output fields are:
1. `reasoning` (str):
2. `answer` (str):
All interactions will be structured in the following way, with the appropriate values filled in.

[[ ## context ## ]]
{context}

[[ ## question ## ]]
{question}

[[ ## reasoning ## ]]
{reasoning}
"""


def dspy_prompt(texts: Texts) -> str:
    """Return the prompt that DSPy makes."""
    items = "\n".join(f"[{number}] «{text}»" for number, text in enumerate(texts.documents, 1))
    fields = f"[[ ## context ## ]]\n{items}\n\n[[ ## question ## ]]\n{texts.question}"
    return f"{fields}\n\nRespond with the corresponding output fields, starting with the field `[[ ## reasoning ## ]]`."


def dspy_reply(texts: Texts) -> str:
    """Return the reply that DSPy asks for."""
    return f"[[ ## reasoning ## ]]\nBecause.\n\n[[ ## answer ## ]]\n{texts.answer}\n\n[[ ## completed ## ]]"


def genai_dspy(texts: Texts) -> Sample:
    """DSPy's model call alone: everything is inside the template."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "model-7",
        "gen_ai.input.messages": json.dumps([parts("system", DSPY_INSTRUCTIONS), parts("user", dspy_prompt(texts))]),
        "gen_ai.output.messages": json.dumps([parts("assistant", dspy_reply(texts))]),
    }
    return Sample(spans=trace("opentelemetry.instrumentation.genai.dspy", node("chat model-7", attributes)))


def openllmetry_langchain(texts: Texts) -> Sample:
    """A chain with everything in ``traceloop.entity`` attributes."""

    def task(name: str, kind: str, inputs: Any, outputs: Any, *children: Node) -> Node:
        attributes = {
            "traceloop.span.kind": kind,
            "traceloop.entity.name": name,
            "traceloop.workflow.name": "trip-planner",
            "gen_ai.operation.name": "invoke_agent" if kind == "workflow" else "execute_task",
            "traceloop.entity.input": json.dumps(
                {"inputs": inputs, "tags": [], "metadata": {}, "kwargs": {"name": name}}
            ),
            "traceloop.entity.output": json.dumps({"outputs": outputs, "kwargs": {"tags": []}}),
            "traceloop.association.properties.user_id": "u-9",
        }
        return node(name, attributes, *children)

    joined = "\n".join(texts.documents)
    documents = {"documents": [{"page_content": text, "metadata": {}} for text in texts.documents]}
    spans = trace(
        "opentelemetry.instrumentation.langchain",
        task(
            "RunnableSequence",
            "workflow",
            {"question": texts.question},
            texts.answer,
            task(
                "RunnableSequence",
                "task",
                {"question": texts.question},
                joined,
                node(
                    "vector_db_retrieve R",
                    {
                        "gen_ai.operation.name": "vector_db_retrieve",
                        "traceloop.span.kind": "task",
                        "traceloop.entity.input": json.dumps({"query": texts.question}),
                        "traceloop.entity.output": json.dumps(documents),
                    },
                ),
            ),
            node(
                "ChatModel.chat",
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.request.model": "model-7",
                    "gen_ai.input.messages": json.dumps([parts("user", texts.prompt)]),
                    "gen_ai.output.messages": json.dumps([parts("assistant", texts.answer)]),
                },
            ),
        ),
    )
    return Sample(spans=spans)


def openllmetry_langgraph(texts: Texts) -> Sample:
    """An agent whose root has no content, and whose messages are dumps of constructors."""

    def dump(name: str, text: str, **more: Any) -> dict[str, Any]:
        return {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", name],
            "kwargs": {"content": text, **more},
        }

    names = {"user": "HumanMessage", "assistant": "AIMessage"}
    history = [dump(names[role], text) for role, text in texts.history]
    output = [
        *history,
        dump("HumanMessage", texts.question),
        dump("AIMessage", "", tool_calls=[{"name": "search_docs"}]),
        dump("ToolMessage", "\n".join(texts.documents)),
        dump("AIMessage", texts.answer, tool_calls=[]),
    ]
    spans = trace(
        "opentelemetry.instrumentation.langchain",
        node(
            "invoke_agent LangGraph",
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "t-9"},
            node(
                "LangGraph.workflow",
                {
                    "traceloop.span.kind": "workflow",
                    "gen_ai.operation.name": "invoke_agent",
                    "traceloop.entity.input": json.dumps({"inputs": {"messages": messages(texts)}, "tags": []}),
                    "traceloop.entity.output": json.dumps({"outputs": {"messages": output}}),
                },
                node(
                    "execute_tool search_docs",
                    {
                        "traceloop.span.kind": "tool",
                        "gen_ai.operation.name": "execute_tool",
                        "gen_ai.tool.name": "search_docs",
                        "traceloop.entity.output": json.dumps(
                            {"output": dump("ToolMessage", json.dumps(texts.documents))}
                        ),
                    },
                ),
                node(
                    "ChatModel.chat",
                    {
                        "gen_ai.operation.name": "chat",
                        "gen_ai.request.model": "model-7",
                        "gen_ai.input.messages": json.dumps(
                            [*(parts(*turn) for turn in texts.history), parts("user", texts.question)]
                        ),
                        "gen_ai.output.messages": json.dumps([parts("assistant", texts.answer)]),
                    },
                ),
            ),
        ),
    )
    return Sample(spans=spans, has_history=True)


def openllmetry_llamaindex(texts: Texts) -> Sample:
    """A query engine whose model call is not traced, and whose documents are JSON inside JSON."""

    def task(name: str, kind: str, inputs: Any, outputs: Any, *children: Node) -> Node:
        attributes = {
            "traceloop.span.kind": kind,
            "traceloop.entity.name": name,
            "traceloop.entity.input": json.dumps(inputs),
            "traceloop.entity.output": json.dumps(outputs),
        }
        return node(name, attributes, *children)

    documents = [json.dumps({"node": {"id_": "n", "text": text}, "score": 0.5}) for text in texts.documents]
    spans = trace(
        "opentelemetry.instrumentation.llamaindex",
        task(
            "RetrieverQueryEngine.workflow",
            "workflow",
            {"str_or_query_bundle": texts.question},
            {"response": texts.answer, "metadata": {}},
            task("VectorIndexRetriever.task", "task", {"str_or_query_bundle": texts.question}, documents),
            task(
                "CompactAndRefine.task",
                "task",
                {"query_str": texts.question, "text_chunks": texts.documents},
                texts.answer,
            ),
        ),
    )
    return Sample(spans=spans)


def genai_langchain(texts: Texts) -> Sample:
    """A chain with content in the model call only; documents have no text."""
    spans = trace(
        "opentelemetry.instrumentation.genai.langchain",
        node(
            "invoke_workflow trip-planner",
            {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "trip-planner"},
            node(
                "retrieval",
                {
                    "gen_ai.operation.name": "retrieval",
                    "gen_ai.retrieval.query.text": texts.question,
                    "gen_ai.retrieval.documents": '[{"id":"d0","score":null}]',
                },
            ),
            node(
                "chat model-7",
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.request.model": "model-7",
                    "gen_ai.conversation.id": "t-9",
                    "gen_ai.input.messages": json.dumps([parts("user", texts.prompt)]),
                    "gen_ai.output.messages": json.dumps([parts("assistant", texts.answer)]),
                },
            ),
        ),
    )
    return Sample(spans=spans, has_contexts=False, needs_query=True)


def genai_openai(texts: Texts) -> Sample:
    """A single model call inside an HTTP request."""
    spans = trace(
        "opentelemetry.instrumentation.fastapi",
        node(
            "POST /ask",
            {"http.request.method": "POST"},
            node(
                "chat model-7",
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.request.model": "model-7",
                    "gen_ai.input.messages": json.dumps(
                        [
                            parts("system", "Be brief."),
                            *(parts(*turn) for turn in texts.history),
                            parts("user", texts.question),
                        ]
                    ),
                    "gen_ai.output.messages": json.dumps([parts("assistant", texts.answer)]),
                },
                scope="opentelemetry.instrumentation.genai.openai",
            ),
        ),
    )
    return Sample(spans=spans, has_contexts=False, has_history=True)


def log_events(texts: Texts) -> Sample:
    """A model call whose messages are log records."""
    spans = trace(
        "opentelemetry.instrumentation.openai_v2",
        node("chat model-7", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "model-7"}),
    )
    turns = (("system", "Be brief."), *texts.history, ("user", texts.question))
    logs = [
        LogData(
            trace_id=TRACE_ID, span_id=spans[0].span_id, event_name=f"gen_ai.{role}.message", body={"content": text}
        )
        for role, text in turns
    ]
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": texts.answer}}
    logs.append(LogData(trace_id=TRACE_ID, span_id=spans[0].span_id, event_name="gen_ai.choice", body=choice))
    return Sample(spans=spans, logs=tuple(logs), has_contexts=False, has_history=True)


def semantic_kernel(texts: Texts) -> Sample:
    """An agent whose question is only in log records of the trace, as JSON."""
    spans = trace(
        "semantic_kernel.utils.telemetry.agent_diagnostics.decorators",
        node(
            "invoke_agent trip-planner",
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "trip-planner",
                "gen_ai.input.messages": "[]",
                "gen_ai.output.messages": json.dumps([{"role": "assistant", "content": texts.answer}]),
            },
            node("chat model-7", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "model-7"}),
        ),
    )
    turns = (*texts.history, ("user", texts.question))
    logs = [
        LogData(
            trace_id=TRACE_ID, event_name=f"gen_ai.{role}.message", body=json.dumps({"role": role, "content": text})
        )
        for role, text in turns
    ]
    choice = json.dumps({"message": {"role": "assistant", "content": texts.answer}})
    logs.append(LogData(trace_id=TRACE_ID, attributes={"event.name": "gen_ai.choice"}, body=choice))
    return Sample(spans=spans, logs=tuple(logs), has_contexts=False, has_history=True)


def span_events(texts: Texts) -> Sample:
    """A model call whose messages are events of its span."""
    turns = (*texts.history, ("user", texts.question))
    events = [SpanEvent(name=f"gen_ai.{role}.message", attributes={"content": text}) for role, text in turns]
    message = json.dumps({"role": "assistant", "content": texts.answer})
    events.append(SpanEvent(name="gen_ai.choice", attributes={"index": 0, "message": message}))
    attributes = {"gen_ai.system": "openai", "gen_ai.request.model": "model-7"}
    spans = trace("shop", node("chat model-7", attributes, events=tuple(events)))
    return Sample(spans=spans, has_contexts=False, has_history=True)


def older_flat(texts: Texts) -> Sample:
    """A model call with one attribute per message."""
    attributes = {"gen_ai.system": "OpenAI", "llm.request.type": "chat", "gen_ai.request.model": "model-7"}
    for number, (role, text) in enumerate((*texts.history, ("user", texts.question))):
        attributes |= {f"gen_ai.prompt.{number}.role": role, f"gen_ai.prompt.{number}.content": text}
    attributes |= {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": texts.answer}
    spans = trace("opentelemetry.instrumentation.openai.v1", node("openai.chat", attributes))
    return Sample(spans=spans, has_contexts=False, has_history=True)


def haystack(texts: Texts) -> Sample:
    """A pipeline traced by Haystack itself, under the tracer name of the application."""
    documents = {
        "documents": [
            {"id": f"d{number}", "content": text, "score": 1.5} for number, text in enumerate(texts.documents)
        ]
    }
    reply = {"role": "assistant", "meta": {"model": "model-7"}, "content": [{"text": texts.answer}]}
    data = {"retriever": {"query": texts.question}, "prompt_builder": {"question": texts.question}}
    spans = trace(
        "my-application",
        node(
            "haystack.pipeline.run",
            {
                "haystack.pipeline.execution_mode": "sync",
                "haystack.pipeline.input_data": json.dumps(data),
                "haystack.pipeline.output_data": json.dumps({"llm": {"replies": [reply]}}),
            },
            node(
                "haystack.component.run",
                {
                    "haystack.component.name": "retriever",
                    "haystack.component.type": "InMemoryBM25Retriever",
                    "haystack.component.input": json.dumps({"query": texts.question}),
                    "haystack.component.output": json.dumps(documents),
                },
            ),
            node(
                "haystack.component.run",
                {
                    "haystack.component.name": "llm",
                    "haystack.component.type": "OpenAIChatGenerator",
                    "haystack.component.input": json.dumps(
                        {"messages": [{"role": "user", "content": [{"text": texts.prompt}]}]}
                    ),
                    "haystack.component.output": json.dumps({"replies": [reply]}),
                },
            ),
        ),
    )
    return Sample(spans=spans)


def pydantic_ai(texts: Texts) -> Sample:
    """An agent with all messages on its span."""
    history = [parts(*turn) for turn in texts.history]
    asked = [*history, parts("user", texts.question)]
    result = {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "result": list(texts.documents)}]}
    loop = [*asked, {"role": "assistant", "parts": [CALL]}, result]
    spans = trace(
        "pydantic-ai",
        node(
            "invoke_agent trip-planner",
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "trip-planner",
                "final_result": texts.answer,
                "pydantic_ai.all_messages": json.dumps([*loop, parts("assistant", texts.answer)]),
            },
            node(
                "chat model-7",
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.request.model": "model-7",
                    "gen_ai.input.messages": json.dumps(asked),
                    "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [CALL]}]),
                },
            ),
            node(
                "execute_tool search_docs",
                {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": "search_docs",
                    "gen_ai.tool.call.result": json.dumps(texts.documents),
                },
            ),
            node(
                "chat model-7",
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.request.model": "model-7",
                    "gen_ai.input.messages": json.dumps(loop),
                    "gen_ai.output.messages": json.dumps([parts("assistant", texts.answer)]),
                },
            ),
        ),
    )
    return Sample(spans=spans, has_history=True)


def logfire_agents(texts: Texts) -> Sample:
    """An agent whose messages are in an ``events`` attribute."""
    asked = [
        {"event.name": f"gen_ai.{role}.message", "role": role, "content": text}
        for role, text in (*texts.history, ("user", texts.question))
    ]
    call = {"event.name": "gen_ai.assistant.message", "role": "assistant", "tool_calls": [{"id": "c1"}]}
    result = {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "content": "found"}
    choice = {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": texts.answer}}
    spans = trace(
        "logfire.openai_agents",
        node(
            "OpenAI Agents trace: {name}",
            {"logfire.msg_template": "OpenAI Agents trace: {name}", "name": "trip-planner", "group_id": "s-9"},
            node(
                "Responses API",
                {
                    "logfire.msg_template": "Responses API with",
                    "gen_ai.request.model": "model-7",
                    "gen_ai.operation.name": "chat",
                    "events": json.dumps([*asked, call]),
                },
            ),
            node(
                "Function: {name}",
                {
                    "logfire.msg_template": "Function: {name}",
                    "name": "search_docs",
                    "output": json.dumps(texts.documents),
                },
            ),
            node(
                "Responses API",
                {
                    "logfire.msg_template": "Responses API with",
                    "gen_ai.request.model": "model-7",
                    "gen_ai.operation.name": "chat",
                    "events": json.dumps([*asked, call, result, choice]),
                },
            ),
        ),
    )
    return Sample(spans=spans, has_history=True)


def vercel(texts: Texts) -> Sample:
    """The Vercel AI SDK: the answer's message also contains the calls of earlier steps."""
    asked = [*(parts(*turn) for turn in texts.history), parts("user", texts.question)]
    documents = [{"id": f"d{number}", "content": text} for number, text in enumerate(texts.documents)]
    result = {"type": "tool_call_response", "id": "c1", "response": documents}
    answer = parts("assistant", texts.answer)
    spans = trace(
        "gen_ai",
        node(
            "invoke_agent model-7",
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "trip-planner",
                "gen_ai.request.model": "model-7",
                "gen_ai.input.messages": json.dumps(asked),
                "gen_ai.output.messages": json.dumps([{**answer, "parts": [*answer["parts"], CALL, result]}]),
            },
            node(
                "step 1",
                {"gen_ai.operation.name": "agent_step"},
                node(
                    "chat model-7",
                    {
                        "gen_ai.operation.name": "chat",
                        "gen_ai.request.model": "model-7",
                        "gen_ai.input.messages": json.dumps(asked),
                        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [CALL]}]),
                    },
                ),
                node(
                    "execute_tool search",
                    {
                        "gen_ai.operation.name": "execute_tool",
                        "gen_ai.tool.name": "search",
                        "gen_ai.tool.call.result": json.dumps(documents),
                    },
                ),
            ),
            node(
                "step 2",
                {"gen_ai.operation.name": "agent_step"},
                node(
                    "chat model-7",
                    {
                        "gen_ai.operation.name": "chat",
                        "gen_ai.request.model": "model-7",
                        "gen_ai.input.messages": json.dumps(
                            [*asked, {"role": "assistant", "parts": [CALL]}, {"role": "tool", "parts": [result]}]
                        ),
                        "gen_ai.output.messages": json.dumps([answer]),
                    },
                ),
            ),
        ),
    )
    return Sample(spans=spans, has_history=True)


def vercel_legacy(texts: Texts) -> Sample:
    """The Vercel AI SDK's older attributes."""
    names = {"ai.telemetry.functionId": "trip-planner", "ai.model.id": "model-7"}
    documents = [{"id": f"d{number}", "content": text} for number, text in enumerate(texts.documents)]
    prompt = [
        {"role": role, "content": [{"type": "text", "text": text}]}
        for role, text in (*texts.history, ("user", texts.question))
    ]
    spans = trace(
        "ai",
        node(
            "ai.generateText",
            {
                "ai.operationId": "ai.generateText",
                "ai.prompt": json.dumps({"system": "Be brief.", "messages": messages(texts)}),
                "ai.response.text": texts.answer,
                "ai.telemetry.metadata.sessionId": "s-9",
                **names,
            },
            node(
                "ai.generateText.doGenerate",
                {
                    "ai.operationId": "ai.generateText.doGenerate",
                    "ai.response.text": "",
                    "ai.prompt.messages": json.dumps(prompt),
                    **names,
                },
            ),
            node(
                "ai.toolCall",
                {
                    "ai.operationId": "ai.toolCall",
                    "ai.toolCall.name": "search",
                    "ai.toolCall.result": json.dumps(documents),
                },
            ),
            node(
                "ai.generateText.doGenerate",
                {
                    "ai.operationId": "ai.generateText.doGenerate",
                    "ai.response.text": texts.answer,
                    "ai.prompt.messages": json.dumps(
                        [
                            *prompt,
                            {"role": "assistant", "content": [{"type": "tool-call", "toolName": "search"}]},
                            {"role": "tool", "content": [{"type": "tool-result", "output": {"value": documents}}]},
                        ]
                    ),
                    **names,
                },
            ),
        ),
    )
    return Sample(spans=spans, has_history=True)


def langfuse(texts: Texts) -> Sample:
    """Langfuse's decorator around a function, with a generation inside."""
    kind = "langfuse.observation.type"
    spans = trace(
        "langfuse-sdk",
        node(
            "ask",
            {
                kind: "span",
                "langfuse.observation.input": json.dumps({"args": [texts.question], "kwargs": {}}),
                "langfuse.observation.output": texts.answer,
                "langfuse.session.id": "s-9",
            },
            node(
                "search",
                {
                    kind: "retriever",
                    "langfuse.observation.input": "x",
                    "langfuse.observation.output": json.dumps(texts.documents),
                },
            ),
            node(
                "model",
                {
                    kind: "generation",
                    "gen_ai.request.model": "model-7",
                    "langfuse.observation.input": json.dumps([{"role": "user", "content": texts.prompt}]),
                    "langfuse.observation.output": json.dumps({"role": "assistant", "content": texts.answer}),
                },
            ),
        ),
    )
    return Sample(spans=spans)


def mlflow(texts: Texts) -> Sample:
    """MLflow's spans: every attribute is JSON."""
    documents = [{"page_content": text, "metadata": {}} for text in texts.documents]
    spans = trace(
        "mlflow.ask",
        node(
            "ask",
            {
                "mlflow.spanType": '"CHAIN"',
                "mlflow.spanInputs": json.dumps({"question": texts.question}),
                "mlflow.spanOutputs": json.dumps(texts.answer),
            },
            node(
                "search",
                {
                    "mlflow.spanType": '"RETRIEVER"',
                    "mlflow.spanInputs": '{"query": "x"}',
                    "mlflow.spanOutputs": json.dumps(documents),
                },
            ),
            node(
                "model",
                {
                    "mlflow.spanType": '"CHAT_MODEL"',
                    "mlflow.spanInputs": json.dumps({"messages": [{"role": "user", "content": texts.prompt}]}),
                    "mlflow.spanOutputs": json.dumps(
                        {"choices": [{"message": {"role": "assistant", "content": texts.answer}}]}
                    ),
                },
            ),
        ),
    )
    return Sample(spans=spans)


def strands(texts: Texts) -> Sample:
    """Strands in its default mode: messages in events, in the format of Bedrock, and a search tool."""
    asked = [
        SpanEvent(name=f"gen_ai.{role}.message", attributes={"content": json.dumps([{"text": text}])})
        for role, text in (*texts.history, ("user", texts.question))
    ]
    use = {"toolUse": {"toolUseId": "c1", "name": "search_docs", "input": {"query": "x"}}}
    found = {"toolResult": {"toolUseId": "c1", "content": [{"text": text} for text in texts.documents]}}
    loop = [
        SpanEvent(name="gen_ai.assistant.message", attributes={"content": json.dumps([use])}),
        SpanEvent(name="gen_ai.tool.message", attributes={"content": json.dumps([found])}),
    ]

    def choice(message: str, reason: str) -> SpanEvent:
        return SpanEvent(name="gen_ai.choice", attributes={"message": message, "finish_reason": reason})

    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "model-7"}
    answer = choice(json.dumps([{"text": texts.answer}]), "end_turn")
    spans = trace(
        "strands.telemetry.tracer",
        node(
            "invoke_agent trip-planner",
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "trip-planner", "session.id": "s-9"},
            node("chat", chat, events=(*asked, choice(json.dumps([use]), "tool_use"))),
            node(
                "execute_tool search_docs",
                {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search_docs"},
                events=(choice(json.dumps(found["toolResult"]["content"]), ""),),
            ),
            node("chat", chat, events=(*asked, *loop, answer)),
            events=(asked[-1], choice(f"{texts.answer}\n", "end_turn")),
        ),
    )
    return Sample(spans=spans, has_history=True)


def llama_index_events(texts: Texts) -> Sample:
    """LlamaIndex's own package: spans without attributes, and events with flattened objects."""
    nodes = json.dumps(
        [{"node": {"id_": str(n), "text": text}, "score": 1.0} for n, text in enumerate(texts.documents)]
    )
    prompt = [{"role": "user", "blocks": [{"block_type": "text", "text": texts.prompt}]}]
    reply = json.dumps([{"block_type": "text", "text": texts.answer}])

    def event(name: str, **attributes: Any) -> SpanEvent:
        return SpanEvent(name=name, attributes={name.replace("__", "."): value for name, value in attributes.items()})

    spans = trace(
        "llamaindex.opentelemetry.tracer",
        node(
            "RetrieverQueryEngine.query",
            {},
            node(
                "VectorIndexRetriever.retrieve",
                {},
                node(
                    "MockEmbedding.get_query_embedding", events=(event("EmbeddingEndEvent", chunks=[texts.question]),)
                ),
                events=(
                    event("RetrievalStartEvent", str_or_query_bundle__query_str=texts.question),
                    event("RetrievalEndEvent", str_or_query_bundle__query_str=texts.question, nodes=nodes),
                ),
            ),
            node(
                "Model.chat",
                events=(
                    event("LLMChatStartEvent", messages=json.dumps(prompt), model_dict__model_name="model-7"),
                    event(
                        "LLMChatEndEvent",
                        messages=json.dumps(prompt),
                        response__message__role="assistant",
                        response__message__blocks=reply,
                    ),
                ),
            ),
            events=(
                event("QueryStartEvent", query=texts.question),
                event(
                    "QueryEndEvent",
                    query__query_str=texts.question,
                    response__response=texts.answer,
                    response__source_nodes=nodes,
                ),
            ),
        ),
    )
    return Sample(spans=spans)


def langsmith(texts: Texts) -> Sample:
    """LangSmith: retrievers have the operation of an embedding, and prompts that of a model."""

    def step(kind: str, operation: str, asked: Any, given: Any, *children: Node, **more: str) -> Node:
        attributes = {"langsmith.span.kind": kind, "gen_ai.operation.name": operation, **more}
        attributes |= {"gen_ai.prompt": json.dumps(asked), "gen_ai.completion": json.dumps(given)}
        return node(kind, attributes, *children)

    documents = [{"page_content": text, "type": "Document"} for text in texts.documents]
    prompt = {"messages": [[{"type": "constructor", "id": ["HumanMessage"], "kwargs": {"content": texts.prompt}}]]}
    reply = {"generations": [[{"text": texts.answer, "type": "ChatGeneration"}]]}
    spans = trace(
        "langsmith",
        step(
            "chain",
            "chain",
            {"question": texts.question},
            {"output": texts.answer},
            step("retriever", "embeddings", {"query": texts.question}, {"documents": documents}),
            step("prompt", "chat", {"question": texts.question}, {"output": prompt}),
            step("llm", "chat", prompt, reply, **{"gen_ai.request.model": "model-7"}),
            **{"langsmith.metadata.session_id": "s-9"},
        ),
    )
    return Sample(spans=spans)


def plain_functions(texts: Texts) -> Sample:
    """Functions of the application under Traceloop's decorators, of which one returns the documents."""

    def function(kind: str, name: str, asked: str, given: Any, *children: Node) -> Node:
        attributes = {"traceloop.span.kind": kind, "traceloop.entity.name": name}
        attributes["traceloop.entity.input"] = json.dumps({"args": [asked], "kwargs": {}})
        attributes["traceloop.entity.output"] = json.dumps(given)
        return node(f"{name}.{kind}", attributes, *children)

    spans = trace(
        "traceloop.tracer",
        function(
            "workflow",
            "ask",
            texts.question,
            texts.answer,
            function("task", "normalize", texts.question, texts.question),
            function("task", "retrieve", texts.question, texts.documents),
            node(
                "openai.chat",
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.input.messages": json.dumps([parts("user", texts.prompt)]),
                    "gen_ai.output.messages": json.dumps([parts("assistant", texts.answer)]),
                },
                scope="opentelemetry.instrumentation.openai.v1",
            ),
        ),
    )
    return Sample(spans=spans)


def crewai(texts: Texts) -> Sample:
    """CrewAI without an instrumentation of the model's client: a crew with inputs, an agent and its tool."""
    kind = "openinference.span.kind"
    output = {"raw": texts.answer, "pydantic": None, "tasks_output": [{"raw": texts.answer, "description": "Answer."}]}
    spans = trace(
        "openinference.instrumentation.crewai",
        node(
            "Crew_8c168cfb-5493-48ed-9e71-b85541e513a6.kickoff",
            {
                kind: "CHAIN",
                "input.value": json.dumps({"question": texts.question}),
                "output.value": json.dumps(output),
            },
            node(
                "Clerk._execute_core",
                {kind: "AGENT", "output.value": json.dumps(output)},
                node(
                    "search_docs.run",
                    {kind: "TOOL", "tool.name": "search_docs", "output.value": json.dumps(texts.documents)},
                ),
            ),
        ),
    )
    return Sample(spans=spans)


def tool_loop(texts: Texts) -> Sample:
    """A loop of tool calls, with the tool's results in messages alone, and the text-free spans of the client itself."""
    use = {"role": "assistant", "parts": [CALL]}
    found = {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "response": list(texts.documents)}]}
    asked = [*(parts(role, text) for role, text in texts.history), parts("user", texts.question)]

    def call(number: int, prompt: list[Any], reply: Any) -> tuple[Node, Node]:
        names = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "model-7", "gen_ai.response.id": str(number)}
        recorded = {"gen_ai.input.messages": json.dumps(prompt), "gen_ai.output.messages": json.dumps([reply])}
        return (
            node("chat", {**names, **recorded}, scope="opentelemetry.instrumentation.anthropic"),
            node("messages.create", names, scope="com.example.sdk"),
        )

    first, last = call(1, asked, use), call(2, [*asked, use, found], parts("assistant", texts.answer))
    return Sample(spans=trace("shop", node("GET /ask", {}, *first, *last)), has_history=True)


SAMPLES: Mapping[str, Callable[[Texts], Sample]] = {
    function.__name__: function
    for function in (
        openinference_langchain,
        openinference_langgraph,
        openinference_llamaindex,
        openinference_haystack,
        openinference_responses,
        openinference_agents,
        openinference_dspy,
        genai_dspy,
        openllmetry_langchain,
        openllmetry_langgraph,
        openllmetry_llamaindex,
        genai_langchain,
        genai_openai,
        log_events,
        semantic_kernel,
        span_events,
        older_flat,
        haystack,
        pydantic_ai,
        logfire_agents,
        vercel,
        vercel_legacy,
        langfuse,
        mlflow,
        strands,
        llama_index_events,
        langsmith,
        plain_functions,
        crewai,
        tool_loop,
    )
}
"""A function per convention that makes a trace with the given texts."""
