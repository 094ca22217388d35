"""Spans that instrumentations recorded with real frameworks. ``make spans`` records them again, with newer versions."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from tests.cases import each
from tests.spans.recordings import RecordedTrace, load_recordings

from germane.recognizers import Recognized
from germane.recognizers.recognition import recognize

APPLICATIONS = defaultdict[str, list[RecordedTrace]](list)
for recorded in load_recordings(Path(__file__).parents[1] / "spans" / "recorded"):
    APPLICATIONS[recorded.file].append(recorded)
WITHOUT_DOCUMENTS = {"genai-openai", "logfire-openai", "openai-v2", "openllmetry-openai", "semantic-kernel"}
"""Instrumentations that do not see the retriever: those of a model's client, and Semantic Kernel's."""


@each("name", APPLICATIONS)
def test_each_recorded_application_yields_one_exchange(name: str) -> None:
    """One trace has the question, the answer and the model; further traces are no exchanges, and are not unreadable."""
    results = [recognize(trace.spans, trace.logs) for trace in APPLICATIONS[name]]
    expected = APPLICATIONS[name][0].expected

    (found,) = (result for result in results if result is not None)
    assert isinstance(found, Recognized)
    assert (found.question, found.answer) == (expected["question"], expected["answer"])
    assert found.model
    has_document = any(expected["document"] in context.text for context in found.contexts)
    assert has_document == (name not in WITHOUT_DOCUMENTS)
