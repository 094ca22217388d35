"""Selection of the model call that gave the answer.

Applications also call models for other purposes: they rewrite the question before the answer, and they write a title,
suggest follow-up questions or check the answer after it.

- A call whose prompt contains the answer of an earlier call works on that answer, so the earlier call gave it. But if
  the earlier text is a query (for a retriever, or a question in the later prompt), the later call gave the answer.
  It also did if it combines the answers of several calls, such as summaries of documents.
- Of two calls, the one with retrieved documents in its prompt gave the answer. A short reply, such as a grade of the
  documents, is an exception.
- If two calls got the same question and nothing else decides, the trace is ambiguous.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from germane.exchange import Context
from germane.recognizers.calls import ModelCall, answer_in
from germane.recognizers.reading import RawValue
from germane.recognizers.spans import SpanData
from germane.recognizers.templates import MIN_DOCUMENT, labeled_question
from germane.recognizers.text import MAX_DEPTH, stands_alone
from germane.recognizers.trace import Trace
from germane.recognizers.values import is_component_output

_MAX_CALLS: Final = 20
"""Maximum number of calls, from the end of the trace, that are compared with each other."""
_MAX_DOCUMENTS: Final = 100
_LONG: Final = 40
"""Minimum number of characters of a text that does not occur in a prompt by accident."""
_MAX_STRINGS: Final = 1_000
_QUESTION_MARKS: Final = ("?", "\uff1f", "\u061f", "\u037e")


class Answering(NamedTuple):
    """The model call that gave the answer, if any, and whether the choice is ambiguous."""

    call: ModelCall | None
    is_ambiguous: bool = False
    """Whether another call may have given the answer as well."""


def answering_call(
    trace: Trace, calls: Sequence[ModelCall], documents: Sequence[Context], outputs: Sequence[RawValue]
) -> Answering:
    """Return the call that gave the answer.

    Args:
        trace: The trace.
        calls: Its model calls, in the order of their start times.
        documents: The retrieved documents.
        outputs: The outputs of the outermost step that contains all calls. If the answers of some calls are among
            them, no other call gave the answer.
    """
    returned = set()
    for raw in outputs:
        answer = answer_in(raw)
        if not is_component_output(raw.content) and any(call.answer == answer for call in calls):
            returned = {answer}
            break
        returned |= {text for value in (raw.value, raw.content) for text in texts_in(value)}
    confirmed = [call for call in calls if call.answer is not None and call.answer in returned]
    if confirmed and len({call.answer for call in confirmed}) == 1:
        return Answering(confirmed[-1])
    candidates = list(confirmed or calls)[-_MAX_CALLS:]
    if len(candidates) < 2:
        return Answering(candidates[-1] if candidates else None)
    comparison = _Comparison(trace, candidates, documents)
    answering = candidates.pop()
    while (earlier := comparison.answer_before(answering, candidates)) is not None:
        del candidates[candidates.index(earlier) :]
        answering = earlier
    return Answering(answering, any(comparison.is_ambiguous(call, answering) for call in candidates))


class _Comparison:
    def __init__(self, trace: Trace, calls: Sequence[ModelCall], documents: Sequence[Context]) -> None:
        self.trace = trace
        self._inputs: dict[str, frozenset[str]] = {}
        texts = [document.text for document in documents if len(document.text) >= MIN_DOCUMENT][:_MAX_DOCUMENTS]
        self._documents = {
            call.span.span_id: {text for text in texts if any(text in prompt for prompt in call.prompts)}
            for call in calls
        }
        self._queries = {
            text
            for span in trace.tree.spans
            if trace.kind(span) in {"retriever", "reranker", "tool", "embedding"}
            for text in _input_texts(trace, span)
        }

    def answer_before(self, later: ModelCall, calls: Sequence[ModelCall]) -> ModelCall | None:
        """Return the last call before ``later`` that provided the answer: ``later`` processes its answer, or only it
        has the documents.
        """
        found = [call for call in reversed(calls) if self._is_answer_before(call, later)]
        return None if self._is_combined(found, later) else next(iter(found), None)

    def _is_combined(self, calls: Sequence[ModelCall], later: ModelCall) -> bool:
        """Return whether ``later`` combines the answers of calls with different prompts, such as summaries."""
        parts = [call for call in calls if call.answer is not None and _contains(call.answer, later.prompt)]
        return any(
            a.prompts != b.prompts
            and a.answer != b.answer
            and not any(_contains(a.answer or "", text) for text in b.prompts)
            and not any(_contains(b.answer or "", text) for text in a.prompts)
            for a, b in itertools.combinations(parts, 2)
        )

    def _is_answer_before(self, earlier: ModelCall, later: ModelCall) -> bool:
        answer = earlier.answer
        if answer is None or continues_conversation(answer, later):
            return False
        if later.continued == answer:
            return True
        had, has = self._documents[earlier.span.span_id], self._documents[later.span.span_id]
        if has - had:
            return False
        is_given = _contains(answer, later.prompt) or any(
            answer in inputs for inputs in self._step_inputs(later, earlier)
        )
        if had and not has and later.answer is not None:
            # A grade of the documents is shorter than the answer, whose prompt may contain an excerpt of them.
            return is_given or len(answer) >= len(later.answer)
        return is_given and later.prompt != answer and not self._is_query(answer, later)

    def _step_inputs(self, call: ModelCall, other: ModelCall) -> Iterator[frozenset[str]]:
        """Yield the inputs of each step that contains one call but not the other."""
        for step in self.trace.tree.ancestors(call.span):
            if self.trace.tree.contains(step, other.span):
                return
            if self.trace.kind(step) == "workflow":
                if step.span_id not in self._inputs:
                    self._inputs[step.span_id] = frozenset(_input_texts(self.trace, step))
                yield self._inputs[step.span_id]

    def _is_query(self, text: str, later: ModelCall) -> bool:
        """Return whether an earlier call returned a question or a query rather than an answer."""
        return text in self._queries or text.endswith(_QUESTION_MARKS) or labeled_question(later.prompt) == text

    def is_ambiguous(self, earlier: ModelCall, answering: ModelCall) -> bool:
        """Return whether two calls may have answered the same question, and nothing shows which answer the user got."""
        answer, asked, question = earlier.answer, earlier.question, answering.question
        if answer is None or asked is None or question is None or answer == answering.answer:
            return False
        if self._documents[answering.span.span_id] - self._documents[earlier.span.span_id]:
            return False
        if continues_conversation(answer, answering) or earlier.continued is not None:
            return False
        if question.text == answer:  # a rewritten question, or a check of the answer
            return not self._is_query(answer, answering)
        if any(_contains(answer, text) for text in answering.prompts) or answer in self._queries:
            return False
        is_template = labeled_question(question.text) == asked.text
        return not is_template and (asked.text == question.text or stands_alone(asked.text, question.text))


def continues_conversation(answer: str, later: ModelCall) -> bool:
    """Return whether a call received an answer as an earlier message that the user or a tool replied to."""
    messages = later.messages
    return any(
        message.role == "assistant"
        and message.text.strip() == answer
        and any(reply.role in {"user", "tool"} for reply in messages[index + 1 :])
        for index, message in enumerate(messages)
    )


def _contains(answer: str, prompt: str) -> bool:
    """Return whether a prompt contains an answer. Short texts such as keywords may occur in it by accident."""
    if len(answer) >= _LONG:
        return answer in prompt
    before, found, after = prompt.partition(answer)
    is_part = before.rstrip(" ")[-1:].isalnum() or after.lstrip(" ")[:1].isalnum()
    return stands_alone(answer, prompt) or (len(answer) >= MIN_DOCUMENT and bool(found) and not is_part)


def _input_texts(trace: Trace, span: SpanData) -> Iterator[str]:
    """Yield the texts in a span's inputs that may be an earlier answer or a query."""
    for raw in trace.reading(span).inputs:
        yield from texts_in(raw.content)


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts in a recorded value: the value itself, and all texts nested in it."""
    pending, number = [(value, 0)], 0
    while pending and number < _MAX_STRINGS:
        number += 1
        item, depth = pending.pop()
        if isinstance(item, str):
            yield item.strip()
        elif depth <= MAX_DEPTH and isinstance(item, (list, dict)):
            inner = list(item.values() if isinstance(item, dict) else item)[:_MAX_STRINGS]
            pending += [(part, depth + 1) for part in reversed(inner)]
