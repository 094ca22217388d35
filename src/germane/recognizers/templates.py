"""Questions inside prompts that also contain documents and instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from germane.exchange import Context
from germane.recognizers.calls import ModelCall, decoded_variables
from germane.recognizers.results import Source
from germane.recognizers.text import stands_alone
from germane.recognizers.trace import Trace
from germane.recognizers.values import QUESTION_KEYS, find_question

_QUESTION_LABEL: Final = re.compile(
    r"[ \t]*(?:(?:\w+ )?(?:question|query)|follow[- ]up (?:input|question|message)|user (?:input|message))"
    r"[ \t]*:[ \t]*(\S.*)",
    re.IGNORECASE,
)
_CONTEXT_LABEL: Final = re.compile(
    r"^[ \t]*<?(?:(?:\w+ )?(?:context|contexts|documents|passages|sources)|context information is below|chat history)"
    r"[ \t]*[:.>]",
    re.IGNORECASE | re.MULTILINE,
)
_REPLY_LABEL: Final = re.compile(r"[ \t]*(?:\w+ )?(?:answer|question|query)[ \t]*:", re.IGNORECASE)
_FRAMEWORK_SCOPE: Final = re.compile(r"langchain|llama_?index|haystack|dspy|crewai")
MIN_DOCUMENT: Final = 12
"""Minimum number of characters of a document that is looked up in a prompt. Shorter ones may occur by accident."""
_MAX_WORK: Final = 100_000_000
"""Maximum number of characters to compare when documents are looked up in a prompt."""


def question_in_template(trace: Trace, call: ModelCall, documents: Sequence[Context]) -> tuple[str, Source] | None:
    """Return the question in a call's prompt: the inserted text if the prompt is a template, otherwise the whole
    prompt.

    Returns:
        None if the prompt contains documents, or spans are missing, and the question in it is unknown.
    """
    if call.question is None:
        return None
    prompt = call.question.text
    for text, source in _candidates(trace, call):
        if text and text != prompt and stands_alone(text, prompt):
            return text, source
    inserted = [document.text for document in documents if MIN_DOCUMENT <= len(document.text) <= len(prompt)]
    if len(inserted) * len(prompt) > _MAX_WORK:
        return None
    remaining = prompt
    for text in inserted:
        remaining = remaining.replace(text, "")
    is_fragment = trace.tree.is_rootless and "\n" in prompt and _FRAMEWORK_SCOPE.search(call.span.scope) is not None
    labeled = labeled_question(remaining)
    has_labels = labeled is not None and _CONTEXT_LABEL.search(prompt) is not None
    if remaining == prompt and not is_fragment and not has_labels:
        return prompt, call.question_source
    return None if labeled is None else (labeled, call.question_source)


def labeled_question(prompt: str) -> str | None:
    """Return the text after a label at the end of a prompt, which may be followed by a label for the reply."""
    rest, _, line = prompt.rstrip().rpartition("\n")
    if _REPLY_LABEL.fullmatch(line):
        line = rest.rstrip().rpartition("\n")[2]
    labeled = _QUESTION_LABEL.fullmatch(line)
    return None if labeled is None else labeled[1].strip()


def _candidates(trace: Trace, call: ModelCall) -> Iterator[tuple[str, Source]]:
    """Yield recorded texts that may be the question in the prompt, from the most to the least reliable."""
    earlier = [span for span in trace.tree.walk() if span.start <= call.span.start or span in call.spans]
    for span in earlier:
        reading = trace.reading(span)
        if reading.variables is not None:
            variables = decoded_variables(reading.variables.value)
            for name in QUESTION_KEYS:
                if isinstance(text := variables.get(name), str):
                    yield text.strip(), Source(span.span_id, f"{reading.variables.source}.{name}")
    for kinds in (("workflow", "prompt"), ("retriever",)):
        for span in earlier:
            reading = trace.reading(span)
            if reading.kind not in kinds:
                continue
            for raw in reading.inputs:
                if isinstance(raw.content, str):  # of any form, because the prompt confirms it
                    yield raw.content.strip(), Source(span.span_id, raw.source)
                elif (found := find_question(raw.content)) is not None:
                    yield found.text, Source(span.span_id, raw.source)
