"""Recognition of recorded traces whose question, answer, contexts, session, user and model are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.spans.recordings import RecordedTrace, load_recordings

from germane.recognizers import Recognized, Unreadable
from germane.recognizers.recognition import recognize

SHARED = Path(__file__).resolve().parents[3] / "shared" / "spans"
RECORDINGS = list(load_recordings(SHARED)) if SHARED.is_dir() else []
UNREADABLE = {
    "logfire_openai-1": "answered_elsewhere",
    "openllmetry_langgraph_agent-0": "not_an_exchange",
    "otel_genai_dspy-0": "model_not_traced",
    "otel_genai_llama_index-0": "model_not_traced",
    "otel_genai_openai_agents-0": "model_not_traced",
}
"""Recordings without a question or an answer, and the reason that is reported."""
WITHOUT_CONTEXTS = (
    *("logfire_openai-", "openinference_openai-", "openllmetry_openai-", "otel_genai_openai-", "otel_openai_v2"),
    *("semantic_kernel", "vercel_ai_sdk_LegacyOpenTelemetry-0", "vercel_ai_sdk_LegacyOpenTelemetry-1"),
    *("vercel_ai_sdk_OpenTelemetry-0", "vercel_ai_sdk_OpenTelemetry-1"),
)
"""Recordings of calls of a model alone: the documents, if any, are part of an instruction."""
OTHER_DOCUMENTS = ("haystack_native_otel", "openinference_haystack")
"""Recordings of an application with other documents than the expected ones."""
IN_ONE_TEXT = (
    *("logfire_openai_agents", "openinference_openai_agents", "openllmetry_openai_agents", "otel_genai_langchain"),
    *("oi_crewai", "strands_legacy", "tl_anthropic_tools"),
)
"""Recordings whose tool or prompt has all documents in one text, which is one context."""
WITHOUT_MODEL = ("oi_crewai",)
"""Recordings that do not contain the name of the model."""

pytestmark = pytest.mark.skipif(not RECORDINGS, reason="the recordings are not part of the repository")


def is_expected(recorded: RecordedTrace, result: Recognized) -> bool:
    return (recorded.expected["question"], recorded.expected["answer"]) == (result.question, result.answer)


def expected_parts(recorded: RecordedTrace) -> dict[str, Any]:
    """Return the other parts that a recording states and contains."""
    name, parts = str(recorded), {key: recorded.expected.get(key) for key in ("session", "user", "model")}
    if name.startswith(WITHOUT_MODEL):
        del parts["model"]
    contexts = recorded.expected["contexts"]
    if not name.startswith(OTHER_DOCUMENTS):
        in_one_text = {"\n".join(contexts)} if name.startswith(IN_ONE_TEXT) else set(contexts)
        parts["contexts"] = set() if name.startswith(WITHOUT_CONTEXTS) else in_one_text
    return {key: value for key, value in parts.items() if value is not None}


def test_recordings_of_real_instrumentations_yield_the_expected_exchange() -> None:
    """Recorded traces yield the expected question, answer, contexts, session, user and model, or a reason."""
    wrong = {}
    for recorded in RECORDINGS:
        result = recognize(recorded.spans, recorded.logs)
        if isinstance(result, Unreadable):
            is_right = UNREADABLE.get(str(recorded)) == result.reason
        else:
            assert isinstance(result, Recognized)
            found = {"session": result.session, "user": result.user, "model": result.model}
            parts = {**found, "contexts": {context.text for context in result.contexts}}
            is_right = is_expected(recorded, result) and expected_parts(recorded).items() <= parts.items()
        if not is_right:
            wrong[str(recorded)] = result

    assert wrong == {}


@given(data=st.data())
def test_recordings_with_missing_spans_never_yield_a_wrong_pair(data: st.DataObject) -> None:
    """Recorded traces of frameworks without some of their spans never yield a wrong pair. Of plain calls that follow
    each other, a missing one leaves no sign.
    """
    recorded = data.draw(st.sampled_from([each for each in RECORDINGS if not each.file.startswith("shape_")]))
    kept = [span for span in recorded.spans if data.draw(st.integers(0, 3), label=span.name)]

    result = recognize(kept, recorded.logs) if kept else None

    if isinstance(result, Recognized):
        assert is_expected(recorded, result)
