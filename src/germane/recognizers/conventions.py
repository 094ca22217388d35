"""The attribute conventions that germane recognizes, in order of precedence. The generic one is last.

To support another instrumentation, add a :class:`Convention` to :data:`CONVENTIONS`: which scopes it owns, what its
spans stand for, and which attributes contain inputs, outputs and documents. The values are read in the same way for all
conventions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from germane.recognizers.events import CHOICE_EVENT, QUESTION_EVENT
from germane.recognizers.reading import Convention, Kind
from germane.recognizers.results import UnreadableReason
from germane.recognizers.spans import SpanData

_KIND_ATTRIBUTES: Final = (
    "openinference.span.kind",
    "langsmith.span.kind",  # LangSmith also gives retrievers and prompts the operation of a model
    "gen_ai.operation.name",
    "traceloop.span.kind",
    "langfuse.observation.type",
    "mlflow.spanType",
    "llm.request.type",
)
_KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys(("chain", "agent", "workflow", "task", "span", "unknown", "parser", "framework"), "workflow"),
    **dict.fromkeys(("invoke_agent", "invoke_workflow", "agent_step", "execute_task"), "workflow"),
    **dict.fromkeys(("llm", "chat_model", "generation", "chat", "completion", "text_completion"), "model"),
    **dict.fromkeys(("generate_content", "responses"), "model"),
    **dict.fromkeys(("retriever", "retrieval", "vector_db_retrieve"), "retriever"),
    **dict.fromkeys(("reranker", "rerank"), "reranker"),
    **dict.fromkeys(("tool", "execute_tool"), "tool"),
    **dict.fromkeys(("embedding", "embeddings"), "embedding"),
    **dict.fromkeys(("evaluator", "evaluation", "guardrail"), "evaluator"),
    "prompt": "prompt",
    "create_agent": "other",
}
"""The words for kinds of spans in all conventions, in lower case."""
_CLASS_KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys(("Ranker", "Rerank", "Reranker", "Postprocessor"), "reranker"),
    **dict.fromkeys(("Embedder", "Embedding"), "embedding"),
    "Retriever": "retriever",
    "Generator": "model",
    "Builder": "prompt",
    "Agent": "workflow",
    "ToolInvoker": "tool",
}
"""Endings of the class names of frameworks' components."""
_HAYSTACK_PARTS: Final = ("component", "agent", "agent.step.llm", "agent.step.tool")
_BEGINNINGS: Final[dict[str, Kind]] = {
    **dict.fromkeys(("haystack.pipeline.run", "haystack.async_pipeline.run", "haystack.agent.run"), "workflow"),
    "haystack.agent.step.llm": "model",
    "haystack.agent.step.tool": "tool",
    "haystack.agent.step.": "other",
    "haystack.agent.step": "workflow",
    **dict.fromkeys(("ai.toolCall", "Function:", "MCP"), "tool"),
    **dict.fromkeys(("ai.embed", "ai.rerank"), "embedding"),
    **dict.fromkeys(("Chat Completion", "Responses API", "streaming response"), "model"),
    **dict.fromkeys(("Message with", "Completion with"), "model"),
    **dict.fromkeys(("ai.generate", "ai.stream", "OpenAI Agents trace", "Agent run", "Task:", "Turn"), "workflow"),
    "Guardrail": "evaluator",
}
"""Beginnings of the names that Haystack, the AI SDK and Logfire give to operations."""
_LLAMA_INDEX_EVENTS: Final[dict[str, Kind]] = {
    "LLM": "model",
    "Retrieval": "retriever",
    "ReRank": "reranker",
    "Embedding": "embedding",
}
_GENAI_INPUTS: Final = ("gen_ai.input.messages", "gen_ai.retrieval.query.text", "gen_ai.prompt")
_GENAI_OUTPUTS: Final = ("gen_ai.output.messages", "gen_ai.tool.call.result", "gen_ai.completion")
_GENAI_LIBRARIES: Final = ("genai", "openai_v2", "google_genai", "vertexai")
_OPENLLMETRY_LIBRARIES: Final = (
    *("agno", "anthropic", "bedrock", "chromadb", "cohere", "crewai", "google_generativeai", "groq", "haystack"),
    *("lancedb", "langchain", "llamaindex", "marqo", "mcp", "milvus", "mistralai", "ollama", "openai", "openai_agents"),
    *("pinecone", "qdrant", "replicate", "sagemaker", "together", "transformers", "watsonx", "weaviate", "writer"),
)
_GENAI_FIX: Final = "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY in the application's environment"
_MODEL_FIX: Final = (
    "also install the instrumentation of the client that calls the model, such as "
    "opentelemetry-instrumentation-genai-openai"
)


def _text(span: SpanData, name: str) -> str:
    """Return a text attribute. MLflow encodes texts as JSON, so quotes are removed."""
    value: Any = span.attributes.get(name)
    return value.strip('"') if isinstance(value, str) else ""


def _kind_at_start(name: str, kinds: Mapping[str, Kind]) -> Kind | None:
    """Return the kind of the first beginning that a name has."""
    return next((kind for beginning, kind in kinds.items() if name.startswith(beginning)), None)


def _class_kind(name: str) -> Kind | None:
    """Return the kind of a framework's component, from the name of its class."""
    return next((kind for ending, kind in _CLASS_KINDS.items() if name.endswith(ending)), None)


def _generic_kind(span: SpanData) -> Kind:
    """Return the kind of a span, from the attributes of any convention."""
    attributes = span.attributes
    words = (_text(span, name).lower() for name in _KIND_ATTRIBUTES)
    known = next((_KINDS[word] for word in words if word in _KINDS), None)
    if known == "model" and "openinference.span.kind" in attributes:
        # LlamaIndex's chat engine writes its history in a span of kind LLM, often in a trace of its own. The span of a
        # call has the model's name even if content capture is off, and a span that the application creates has an
        # output.
        is_call = "output.value" in attributes or span.status == "ERROR"
        return "model" if is_call or any(name.startswith("llm.") for name in attributes) else "other"
    if known is not None:
        return known
    if attributes.keys() & {"gen_ai.request.model", "gen_ai.response.model", "llm.model_name"}:
        return "model"
    return "workflow" if attributes.keys() & _WORKFLOW_ATTRIBUTES else "other"


def _openllmetry_kind(span: SpanData) -> Kind:
    kind = _generic_kind(span)
    if kind == "workflow" and _text(span, "traceloop.span.kind") == "task":
        # LlamaIndex's components are all tasks, and their names are those of their classes.
        component = _class_kind(_text(span, "traceloop.entity.name").removesuffix(".task"))
        return component if component in {"retriever", "reranker", "embedding"} else kind
    return kind


def _llama_index_kind(span: SpanData) -> Kind:
    for event in span.events:
        return _kind_at_start(event.name, _LLAMA_INDEX_EVENTS) or "workflow"
    return _class_kind(span.name.partition(".")[0]) or "other"


def _haystack_kind(span: SpanData) -> Kind:
    kind = _kind_at_start(span.name, _BEGINNINGS)
    return kind or _class_kind(_text(span, "haystack.component.type")) or "other"


def _vercel_kind(span: SpanData) -> Kind:
    operation = _text(span, "ai.operationId") or span.name
    if operation.endswith((".doGenerate", ".doStream")):
        return "model"
    return _kind_at_start(operation, _BEGINNINGS) or "other"


def _logfire_kind(span: SpanData) -> Kind:
    return _kind_at_start(_text(span, "logfire.msg_template") or span.name, _BEGINNINGS) or _generic_kind(span)


def _pydantic_ai_kind(span: SpanData) -> Kind:
    kind = _generic_kind(span)
    if span.name in {"agent run", "chat"} or "agent_name" in span.attributes:
        return "workflow" if "chat" not in span.name else kind
    return "tool" if span.name.startswith("running tool:") else kind


CONVENTIONS: Final = (
    Convention(
        name="OpenInference",
        scopes=("openinference",),
        markers=("openinference.span.kind",),
        kind_of=_generic_kind,
        inputs=("input.value",),
        outputs=("output.value",),
        flat_inputs=("llm.input_messages", "llm.prompts"),
        flat_outputs=("llm.output_messages", "llm.choices"),
        variables="llm.prompt_template.variables",
        content_fix=(
            "unset OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS and the other OPENINFERENCE_HIDE_ variables "
            "in the application's environment"
        ),
        model_fix="also install the OpenInference instrumentation of the client that calls the model",
    ),
    Convention(
        name="Haystack",
        scopes=("haystack",),
        markers=(
            *("haystack.pipeline.execution_mode", "haystack.pipeline.max_runs_per_component"),
            *("haystack.component.name", "haystack.agent.max_steps", "haystack.agent.step", "haystack.tool.name"),
            *("haystack.agent.step.llm.input", "haystack.agent.step.llm.output"),
        ),
        kind_of=_haystack_kind,
        inputs=("haystack.pipeline.input_data", *(f"haystack.{part}.input" for part in _HAYSTACK_PARTS)),
        outputs=("haystack.pipeline.output_data", *(f"haystack.{part}.output" for part in _HAYSTACK_PARTS)),
        content_fix="set HAYSTACK_CONTENT_TRACING_ENABLED=true in the application's environment",
    ),
    Convention(
        name="LlamaIndex",
        scopes=("llamaindex",),
        kind_of=_llama_index_kind,
        model_fix=(
            "use openinference-instrumentation-llama-index, because llama-index-observability-otel does not record "
            "the answers of streams"
        ),
    ),
    Convention(
        name="Pydantic AI",
        scopes=("pydantic-ai",),
        kind_of=_pydantic_ai_kind,
        inputs=("gen_ai.input.messages", "pydantic_ai.all_messages", "all_messages_events", "events"),
        outputs=(
            *("gen_ai.output.messages", "final_result", "gen_ai.tool.call.result", "tool_response"),
            *("pydantic_ai.all_messages", "all_messages_events", "events"),
        ),
        object_outputs=("final_result",),
        names=("agent_name",),
        content_fix="call Agent.instrument_all(InstrumentationSettings(include_content=True)) in the application",
    ),
    Convention(
        name="Logfire",
        scopes=("logfire",),
        kind_of=_logfire_kind,
        inputs=("gen_ai.input.messages", "events", "raw_input", "request_data"),
        outputs=("gen_ai.output.messages", "events", "response", "response_data", "output"),
        names=("name",),
        splits_streams=True,
        content_fix="remove the scrubbing of messages from logfire.configure()",
    ),
    Convention(
        name="Vercel AI SDK",
        scopes=("ai",),
        markers=("ai.operationId",),
        kind_of=_vercel_kind,
        inputs=("ai.prompt.messages", "ai.prompt", "ai.toolCall.args"),
        outputs=("ai.response.text", "ai.result.text", "ai.response.object", "ai.result.object", "ai.toolCall.result"),
        object_outputs=("ai.response.object", "ai.result.object"),
        names=("ai.telemetry.functionId",),
        hides_separately=True,
        content_fix="set recordInputs and recordOutputs to true in the SDK's telemetry settings",
    ),
    Convention(
        name="Semantic Kernel",
        scopes=(
            *("semantic_kernel", "Microsoft.SemanticKernel"),
            *("Microsoft.Extensions.AI", "Experimental.Microsoft.Extensions.AI"),
        ),
        kind_of=_generic_kind,
        inputs=_GENAI_INPUTS,
        outputs=_GENAI_OUTPUTS,
        content_fix=(
            "set SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true in the application's "
            "environment, and export its log records"
        ),
    ),
    Convention(
        name="OpenTelemetry GenAI",
        scopes=(
            *(f"opentelemetry.instrumentation.{library}" for library in _GENAI_LIBRARIES),
            *("opentelemetry.util.genai", "gen_ai"),
        ),
        kind_of=_generic_kind,
        inputs=_GENAI_INPUTS,
        outputs=_GENAI_OUTPUTS,
        flat_inputs=("gen_ai.prompt",),
        flat_outputs=("gen_ai.completion",),
        content_fix=_GENAI_FIX,
        documents_fix=(
            "OpenTelemetry's GenAI instrumentations never record the texts of documents; use OpenInference for the "
            "retriever, or decorate it with @germane.retrieval"
        ),
        model_fix=_MODEL_FIX,
    ),
    Convention(
        name="OpenLLMetry",
        scopes=("traceloop", *(f"opentelemetry.instrumentation.{library}" for library in _OPENLLMETRY_LIBRARIES)),
        markers=("traceloop.span.kind",),
        kind_of=_openllmetry_kind,
        inputs=("traceloop.entity.input", "gen_ai.input.messages", "gen_ai.task.input", "gen_ai.prompt"),
        outputs=(
            *("traceloop.entity.output", "gen_ai.output.messages", "gen_ai.task.output", "crewai.crew.result"),
            *("gen_ai.tool.call.result", "gen_ai.completion"),
        ),
        flat_inputs=("gen_ai.prompt", "llm.prompts"),
        flat_outputs=("gen_ai.completion", "llm.completions"),
        content_fix="set TRACELOOP_TRACE_CONTENT=true in the application's environment",
        model_fix="also install OpenLLMetry's instrumentation of the client that calls the model",
    ),
)
_GENERIC_INPUTS: Final = (
    *("input.value", "traceloop.entity.input", *_GENAI_INPUTS, "langfuse.observation.input", "langfuse.trace.input"),
    *("mlflow.spanInputs", "gcp.vertex.agent.llm_request", "ai.prompt.messages", "ai.prompt"),
)
_GENERIC_OUTPUTS: Final = (
    *("output.value", "traceloop.entity.output", *_GENAI_OUTPUTS, "langfuse.observation.output"),
    *("langfuse.trace.output", "mlflow.spanOutputs", "gcp.vertex.agent.llm_response", "ai.response.text"),
)
_WORKFLOW_ATTRIBUTES: Final = frozenset({*_GENERIC_INPUTS, *_GENERIC_OUTPUTS})
MARKERS: Final = (
    *(marker for convention in CONVENTIONS for marker in convention.markers),
    *_KIND_ATTRIBUTES,
    *("gen_ai.system", "gen_ai.provider.name", "gen_ai.request.model", "input.value", "output.value"),
)
"""Attributes that mark a span of a language model application, in a scope of any name."""
GENERIC: Final = Convention(
    name="generic",
    markers=MARKERS,
    kind_of=_generic_kind,
    inputs=_GENERIC_INPUTS,
    outputs=_GENERIC_OUTPUTS,
    flat_inputs=("llm.input_messages", "gen_ai.prompt", "llm.prompts"),
    flat_outputs=("llm.output_messages", "gen_ai.completion", "llm.completions"),
    documents=("gen_ai.retrieval.documents",),
    flat_documents=("reranker.output_documents", "retrieval.documents"),
    variables="gen_ai.prompt.variable",
    model_fix=_MODEL_FIX,
)
"""Reads the attributes of all conventions. Its values also complete those of the convention that owns the scope."""


def convention_for(span: SpanData) -> Convention | None:
    """Return the convention that a span follows, according to its scope or else an attribute; None if there is none."""
    if (owner := _owner_of(span.scope)) is not None:
        return owner
    return next((each for each in (*CONVENTIONS, GENERIC) if not span.attributes.keys().isdisjoint(each.markers)), None)


@lru_cache(maxsize=1_000)
def _owner_of(scope: str) -> Convention | None:
    return next((convention for convention in CONVENTIONS if convention.owns(scope)), None)


def is_watched_scope(scope: str) -> bool:
    """Return whether an instrumentation scope belongs to a known convention."""
    return _owner_of(scope) is not None


def fix_for(reason: UnreadableReason, scope: str, instrumentation: str = "") -> str:
    """Return one sentence that says how to fix the unreadable traces of a scope.

    ``instrumentation`` is the name of their convention, if known, for scopes that the application names.
    """
    named = next((convention for convention in CONVENTIONS if convention.name == instrumentation), GENERIC)
    convention = _owner_of(scope) or named
    if reason is UnreadableReason.CONTENT_CAPTURE_OFF:
        return convention.content_fix or reason.fix
    if reason is UnreadableReason.MODEL_NOT_TRACED:
        return convention.model_fix or reason.fix
    return reason.fix


def content_attributes(scope: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the attributes, events and log records in which a scope records questions, and answers.

    A name also stands for the names that begin with it and a dot, such as ``llm.input_messages.0.message.content``. For
    a scope that belongs to no convention, the attributes of all conventions are returned.
    """
    convention = _owner_of(scope) or GENERIC
    questions = dict.fromkeys((*convention.inputs, *convention.flat_inputs, QUESTION_EVENT))
    answers = dict.fromkeys((*convention.outputs, *convention.flat_outputs, CHOICE_EVENT))
    # What tools get and return is neither the question nor the answer.
    tools = {name for name in (*questions, *answers) if "tool" in name.lower()}
    return tuple(name for name in questions if name not in tools), tuple(name for name in answers if name not in tools)


def documents_fix_for(scope: str) -> str:
    """Return one sentence that says how to record the texts of documents, if the instrumentation omits them."""
    return (_owner_of(scope) or GENERIC).documents_fix
