"""Shapes of inputs and outputs that frameworks and older versions of instrumentations record."""

from __future__ import annotations

from json import dumps
from typing import Any

from tests.cases import each
from tests.spans.samples import Node, node, parts, trace

from germane.recognizers import Recognized, SpanData, SpanEvent, plain_value
from germane.recognizers.recognition import recognize

KIND = "openinference.span.kind"
QUESTION = "Which trains stop in Lyon?"
ANSWER = "The night train does."
DOCUMENTS = ["Doc one text here.", "Doc two text here."]
PROMPT = f"Use:\n{DOCUMENTS[0]}\n{DOCUMENTS[1]}\n\nQuestion: {QUESTION}\nAnswer:"
LANGCHAIN = "openinference.instrumentation.langchain"
SHAPES: dict[str, tuple[SpanData, ...]] = {}


def llm(question: str = PROMPT, answer: str = ANSWER, **attributes: Any) -> Node:
    """Return OpenInference's span of a model call."""
    names = {
        KIND: "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": question,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": answer,
    }
    return node("LLM", {**names, **attributes})


SHAPES["create_retrieval_chain"] = trace(
    LANGCHAIN,
    node(
        "retrieval_chain",
        {
            KIND: "CHAIN",
            "input.value": dumps({"input": QUESTION, "chat_history": []}),
            "output.value": dumps(
                {
                    "input": QUESTION,
                    "chat_history": [],
                    "context": [{"page_content": d} for d in DOCUMENTS],
                    "answer": ANSWER,
                }
            ),
        },
        llm(),
    ),
)
SHAPES["message_history"] = trace(
    LANGCHAIN,
    node(
        "RunnableWithMessageHistory",
        {
            KIND: "CHAIN",
            "input.value": dumps({"input": QUESTION}),
            "output.value": dumps({"type": "ai", "data": {"content": ANSWER}}),
        },
        node(
            "inner",
            {
                KIND: "CHAIN",
                "input.value": dumps({"input": QUESTION, "history": [{"type": "human", "data": {"content": "Hi"}}]}),
            },
            llm(QUESTION),
        ),
    ),
)
SHAPES["agent_executor"] = trace(
    LANGCHAIN,
    node(
        "AgentExecutor",
        {
            KIND: "CHAIN",
            "input.value": dumps({"input": QUESTION}),
            "output.value": dumps({"input": QUESTION, "output": ANSWER}),
        },
        llm("x"),
        node("search_kb", {KIND: "TOOL", "tool.name": "search_kb", "output.value": dumps(DOCUMENTS)}),
        llm(QUESTION),
    ),
)
SHAPES["retrieval_qa"] = trace(
    LANGCHAIN,
    node(
        "RetrievalQA",
        {
            KIND: "CHAIN",
            "input.value": QUESTION,
            "output.value": dumps(
                {"query": QUESTION, "result": ANSWER, "source_documents": [{"page_content": d} for d in DOCUMENTS]}
            ),
        },
        llm(),
    ),
)
SHAPES["conv_retrieval"] = trace(
    LANGCHAIN,
    node(
        "ConversationalRetrievalChain",
        {
            KIND: "CHAIN",
            "input.value": dumps({"question": QUESTION, "chat_history": [["a", "b"]]}),
            "output.value": dumps({"question": QUESTION, "answer": ANSWER}),
        },
        llm("Rephrase: " + QUESTION, "Lyon trains?"),
        llm(),
    ),
)
SHAPES["langgraph_state"] = trace(
    LANGCHAIN,
    node(
        "LangGraph",
        {
            KIND: "CHAIN",
            "input.value": dumps({"question": QUESTION}),
            "output.value": dumps({"question": QUESTION, "documents": DOCUMENTS, "generation": ANSWER}),
        },
        node(
            "generate",
            {
                KIND: "CHAIN",
                "input.value": dumps({"question": QUESTION, "documents": DOCUMENTS}),
                "output.value": dumps({"generation": ANSWER}),
            },
            llm(),
        ),
    ),
)
SHAPES["haystack_generator"] = trace(
    "openinference.instrumentation.haystack",
    node(
        "Pipeline.run",
        {
            KIND: "CHAIN",
            "input.value": dumps({"data": {"embedder": {"text": QUESTION}, "prompt_builder": {"question": QUESTION}}}),
            "output.value": dumps({"llm": {"replies": [ANSWER], "meta": [{"model": "m"}]}}),
        },
        llm(),
    ),
)
SHAPES["haystack_answers"] = trace(
    "haystack",
    node(
        "haystack.pipeline.run",
        {
            "haystack.pipeline.input_data": dumps(
                {"text_embedder": {"text": QUESTION}, "prompt_builder": {"question": QUESTION}}
            ),
            "haystack.pipeline.output_data": dumps(
                {
                    "answer_builder": {
                        "answers": [
                            {
                                "data": ANSWER,
                                "query": QUESTION,
                                "documents": [{"content": d} for d in DOCUMENTS],
                                "meta": {},
                            }
                        ]
                    }
                }
            ),
            "haystack.pipeline.execution_mode": "sync",
        },
        node(
            "haystack.component.run",
            {
                "haystack.component.type": "OpenAIGenerator",
                "haystack.component.name": "llm",
                "haystack.component.input": dumps({"prompt": PROMPT}),
                "haystack.component.output": dumps({"replies": [ANSWER], "meta": [{"model": "m"}]}),
            },
        ),
    ),
)
SHAPES["haystack_native_root_off"] = trace(
    "haystack",
    node(
        "haystack.pipeline.run",
        {"haystack.pipeline.execution_mode": "sync"},
        node(
            "haystack.component.run",
            {
                "haystack.component.type": "InMemoryBM25Retriever",
                "haystack.component.input": dumps({"query": QUESTION}),
                "haystack.component.output": dumps({"documents": [{"content": d} for d in DOCUMENTS]}),
            },
        ),
        node(
            "haystack.component.run",
            {
                "haystack.component.type": "OpenAIGenerator",
                "haystack.component.name": "llm",
                "haystack.component.input": dumps({"prompt": PROMPT}),
                "haystack.component.output": dumps({"replies": [ANSWER], "meta": [{"model": "m"}]}),
            },
        ),
    ),
)
SHAPES["llamaindex_agent"] = trace(
    "openinference.instrumentation.llama_index",
    node(
        "AgentWorkflow.run",
        {
            KIND: "CHAIN",
            "input.value": dumps({"user_msg": QUESTION, "chat_history": None}),
            "output.value": dumps(
                {
                    "response": {"role": "assistant", "blocks": [{"block_type": "text", "text": ANSWER}]},
                    "tool_calls": [],
                }
            ),
        },
        llm(QUESTION),
    ),
)
SHAPES["llamaindex_stream"] = trace(
    "openinference.instrumentation.llama_index",
    node(
        "RetrieverQueryEngine.query",
        {KIND: "CHAIN", "input.value": QUESTION},
        node(
            "VectorIndexRetriever.retrieve",
            {KIND: "RETRIEVER", "input.value": QUESTION, "retrieval.documents.0.document.content": DOCUMENTS[0]},
        ),
        llm(),
    ),
)
SHAPES["smolagents"] = trace(
    "openinference.instrumentation.smolagents",
    node(
        "CodeAgent.run",
        {KIND: "AGENT", "input.value": dumps({"task": QUESTION, "stream": False}), "output.value": ANSWER},
        llm("New task:\n" + QUESTION),
    ),
)
SHAPES["adk"] = trace(
    "gcp.vertex.agent",
    node(
        "invocation",
        {},
        node(
            "agent_run [x]",
            {},
            node(
                "call_llm",
                {
                    "gen_ai.system": "gcp.vertex.agent",
                    "gen_ai.request.model": "gemini",
                    "gcp.vertex.agent.llm_request": dumps(
                        {"model": "gemini", "config": {}, "contents": [{"role": "user", "parts": [{"text": QUESTION}]}]}
                    ),
                    "gcp.vertex.agent.llm_response": dumps({"content": {"parts": [{"text": ANSWER}], "role": "model"}}),
                },
            ),
        ),
    ),
)
SHAPES["adk_oi"] = trace(
    "openinference.instrumentation.google_adk",
    node(
        "invocation",
        {
            KIND: "CHAIN",
            "input.value": dumps(
                {"user_id": "u", "session_id": "s", "new_message": {"parts": [{"text": QUESTION}], "role": "user"}}
            ),
            "output.value": dumps({"content": {"parts": [{"text": ANSWER}], "role": "model"}, "partial": None}),
        },
        llm(QUESTION),
    ),
)
SHAPES["traceloop_decorator"] = trace(
    "traceloop.tracer",
    node(
        "ask.workflow",
        {
            "traceloop.span.kind": "workflow",
            "traceloop.entity.input": dumps({"args": ["<__main__.App object at 0x7f>", QUESTION], "kwargs": {}}),
            "traceloop.entity.output": dumps(ANSWER),
        },
        node(
            "openai.chat",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": dumps([parts("user", PROMPT)]),
                "gen_ai.output.messages": dumps([parts("assistant", ANSWER)]),
            },
            scope="opentelemetry.instrumentation.openai.v1",
        ),
    ),
)
SHAPES["anthropic_old"] = trace(
    "opentelemetry.instrumentation.anthropic",
    node(
        "anthropic.chat",
        {
            "llm.request.type": "chat",
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": dumps([{"type": "text", "text": QUESTION}]),
            "gen_ai.completion.0.content": ANSWER,
            "gen_ai.completion.0.role": "assistant",
        },
    ),
)
SHAPES["pydantic_old"] = trace(
    "pydantic-ai",
    node(
        "agent run",
        {
            "agent_name": "x",
            "final_result": ANSWER,
            "all_messages_events": dumps(
                [
                    {"event.name": "gen_ai.system.message", "content": "s", "role": "system"},
                    {"event.name": "gen_ai.user.message", "content": QUESTION, "role": "user"},
                    {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": ANSWER},
                ]
            ),
        },
        node(
            "chat m",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "m",
                "events": dumps(
                    [
                        {"event.name": "gen_ai.user.message", "content": QUESTION, "role": "user"},
                        {
                            "event.name": "gen_ai.choice",
                            "index": 0,
                            "message": {"role": "assistant", "content": ANSWER},
                        },
                    ]
                ),
            },
        ),
    ),
)
SHAPES["pydantic_structured"] = trace(
    "pydantic-ai",
    node(
        "invoke_agent x",
        {
            "gen_ai.operation.name": "invoke_agent",
            "final_result": dumps({"city": "Lyon", "stop": True}),
            "pydantic_ai.all_messages": dumps(
                [
                    parts("user", QUESTION),
                    {"role": "assistant", "parts": [{"type": "tool_call", "name": "final_result", "arguments": "{}"}]},
                ]
            ),
        },
        node(
            "chat m",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": dumps([parts("user", QUESTION)]),
                "gen_ai.output.messages": dumps(
                    [{"role": "assistant", "parts": [{"type": "tool_call", "name": "final_result", "arguments": "{}"}]}]
                ),
            },
        ),
    ),
)
SHAPES["vercel_prompt"] = trace(
    "ai",
    node(
        "ai.streamText",
        {"ai.operationId": "ai.streamText", "ai.prompt": dumps({"prompt": QUESTION}), "ai.response.text": ANSWER},
        node(
            "ai.streamText.doStream",
            {
                "ai.operationId": "ai.streamText.doStream",
                "ai.prompt.messages": dumps([{"role": "user", "content": [{"type": "text", "text": QUESTION}]}]),
                "ai.response.text": ANSWER,
            },
        ),
    ),
)
SHAPES["operation_details"] = trace(
    "opentelemetry.util.genai.handler",
    node(
        "chat m",
        {"gen_ai.operation.name": "chat"},
        events=(
            SpanEvent(
                name="gen_ai.client.inference.operation.details",
                attributes={
                    "gen_ai.input.messages": dumps([parts("user", QUESTION)]),
                    "gen_ai.output.messages": dumps([parts("assistant", ANSWER)]),
                },
            ),
        ),
    ),
)
SHAPES["content_events"] = trace(
    "shop",
    node(
        "chat",
        {"gen_ai.system": "x", "gen_ai.request.model": "m"},
        events=(
            SpanEvent(
                name="gen_ai.content.prompt",
                attributes={"gen_ai.prompt": dumps([{"role": "user", "content": QUESTION}])},
            ),
            SpanEvent(
                name="gen_ai.content.completion",
                attributes={"gen_ai.completion": dumps([{"role": "assistant", "content": ANSWER}])},
            ),
        ),
    ),
)
SHAPES["multimodal"] = trace(
    "openinference.instrumentation.openai",
    node(
        "ChatCompletion",
        {
            KIND: "LLM",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.contents.0.message_content.type": "text",
            "llm.input_messages.0.message.contents.0.message_content.text": QUESTION,
            "llm.input_messages.0.message.contents.1.message_content.type": "image",
            "llm.input_messages.0.message.contents.1.message_content.image.image.url": "http://x",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": ANSWER,
        },
    ),
)
SHAPES["logfire_old"] = trace(
    "logfire.openai",
    node(
        "Chat Completion with",
        {
            "logfire.msg_template": "Chat Completion with {request_data[model]!r}",
            "request_data": dumps({"messages": [{"role": "user", "content": QUESTION}], "model": "m"}),
            "response_data": dumps({"message": {"role": "assistant", "content": ANSWER}, "usage": {}}),
            "gen_ai.request.model": "m",
        },
    ),
)
SHAPES["logfire_stream_old"] = trace(
    "logfire.openai",
    node(
        "streaming response from",
        {
            "logfire.msg_template": "streaming response from {request_data[model]!r} took",
            "request_data": dumps({"messages": [{"role": "user", "content": QUESTION}], "model": "m"}),
            "response_data": dumps({"combined_chunk_content": ANSWER, "chunk_count": 3}),
            "gen_ai.request.model": "m",
        },
    ),
)
SHAPES["langfuse_generation"] = trace(
    "langfuse-sdk",
    node(
        "gen",
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.input": dumps([{"role": "user", "content": QUESTION}]),
            "langfuse.observation.output": ANSWER,
        },
    ),
)
SHAPES["sk_dotnet"] = trace(
    "Microsoft.SemanticKernel.Diagnostics",
    node(
        "chat m",
        {"gen_ai.operation.name": "chat.completions", "gen_ai.system": "openai", "gen_ai.request.model": "m"},
        events=(
            SpanEvent(
                name="gen_ai.content.prompt",
                attributes={"gen_ai.prompt": dumps([{"role": "user", "content": QUESTION}])},
            ),
            SpanEvent(
                name="gen_ai.content.completion",
                attributes={"gen_ai.completion": dumps([{"role": "Assistant", "content": ANSWER}])},
            ),
        ),
    ),
)
SHAPES["mcp_tool"] = trace(
    "opentelemetry.instrumentation.genai.openai",
    node(
        "POST",
        {},
        node(
            "chat m",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": dumps([parts("user", QUESTION)]),
                "gen_ai.output.messages": dumps(
                    [{"role": "assistant", "parts": [{"type": "tool_call", "name": "search_docs"}]}]
                ),
            },
        ),
        node(
            "execute_tool search_docs",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "search_docs",
                "gen_ai.tool.call.result": dumps(
                    {"content": [{"type": "text", "text": DOCUMENTS[0]}], "isError": False}
                ),
            },
        ),
        node(
            "chat m",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": dumps(
                    [
                        parts("user", QUESTION),
                        {"role": "tool", "parts": [{"type": "tool_call_response", "response": DOCUMENTS[0]}]},
                    ]
                ),
                "gen_ai.output.messages": dumps([parts("assistant", ANSWER)]),
            },
        ),
    ),
)
SHAPES["responses_raw"] = trace(
    "x",
    node(
        "r",
        {
            KIND: "LLM",
            "input.value": dumps(
                {"input": [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}], "model": "m"}
            ),
            "output.value": dumps(
                {
                    "output": [
                        {"type": "reasoning", "summary": []},
                        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]},
                    ],
                    "model": "m",
                }
            ),
        },
    ),
)
SHAPES["anthropic_raw"] = trace(
    "x",
    node(
        "r",
        {
            KIND: "LLM",
            "input.value": dumps({"messages": [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}]}),
            "output.value": dumps(
                {"id": "x", "role": "assistant", "type": "message", "content": [{"type": "text", "text": ANSWER}]}
            ),
        },
    ),
)
SHAPES["gemini_raw"] = trace(
    "x",
    node(
        "r",
        {
            KIND: "LLM",
            "input.value": dumps({"contents": [{"role": "user", "parts": [{"text": QUESTION}]}]}),
            "output.value": dumps(
                {"candidates": [{"content": {"parts": [{"text": ANSWER}], "role": "model"}, "finish_reason": "STOP"}]}
            ),
        },
    ),
)
SHAPES["rerank"] = trace(
    LANGCHAIN,
    node(
        "c",
        {KIND: "CHAIN", "input.value": QUESTION, "output.value": ANSWER},
        node(
            "R",
            {KIND: "RETRIEVER", **{f"retrieval.documents.{i}.document.content": d for i, d in enumerate(DOCUMENTS)}},
        ),
        node("rr", {KIND: "RERANKER", "reranker.output_documents.0.document.content": DOCUMENTS[1]}),
        llm(),
    ),
)


@each("name", SHAPES)
def test_question_and_answer_are_found_in_every_shape_of_trace(name: str) -> None:
    """Each shape yields the question and the answer."""
    result = recognize(SHAPES[name])

    assert isinstance(result, Recognized), result
    assert (result.question, result.answer) == (
        QUESTION,
        dumps({"city": "Lyon", "stop": True}) if "structured" in name else ANSWER,
    )


@each("name", ["create_retrieval_chain", "retrieval_qa", "langgraph_state", "agent_executor"])
def test_contexts_are_found_in_the_outputs_of_chains_and_tools(name: str) -> None:
    """Without retriever spans, the documents in a chain's output or a tool's result are the contexts."""
    result = recognize(SHAPES[name])

    assert isinstance(result, Recognized)
    assert [context.text for context in result.contexts] == DOCUMENTS


def test_a_value_of_any_depth_can_be_recorded() -> None:
    """The first nine levels of tuples become lists. Deeper levels are not examined."""
    value: Any = "text"
    for _ in range(5000):
        value = (value,)

    found, depth = plain_value(value), 0
    while isinstance(found, list):
        (found,), depth = found, depth + 1
    assert (depth, type(found)) == (9, tuple)


def test_the_reranked_documents_replace_the_retrieved_ones() -> None:
    """The model received the reranked documents."""
    result = recognize(SHAPES["rerank"])

    assert isinstance(result, Recognized)
    assert [context.text for context in result.contexts] == [DOCUMENTS[1]]
