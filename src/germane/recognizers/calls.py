"""The language model calls in a trace, and the turn that each belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from germane.language import asks
from germane.recognizers.messages import ChatMessage, final_answer, read_messages, user_texts
from germane.recognizers.reading import RawValue
from germane.recognizers.results import Source
from germane.recognizers.spans import SpanData
from germane.recognizers.text import (
    decode,
    field_names,
    is_missing,
    is_text,
    prompt_fields,
    stands_alone,
    template_fields,
    texts_in,
)
from germane.recognizers.trace import Trace
from germane.recognizers.values import QUESTION_KEYS, QuestionValue, find_answer, find_question

_INTERNAL_TO = frozenset({"model", "retriever", "reranker", "tool", "embedding"})
"""Kinds of spans whose model calls are internal to them: they rewrite a query, for example."""
_RESPONSE_ID = "gen_ai.response.id"


@dataclass(slots=True, kw_only=True)
class ModelCall:
    """One model call. Frameworks and clients may each record a span for the same call, nested in each other."""

    span: SpanData
    """The outermost span."""
    spans: tuple[SpanData, ...]
    question: QuestionValue | None = None
    """The user's last message, with the messages before it."""
    question_source: Source
    answer: str | None = None
    answer_source: Source
    template_fields: Mapping[str, str] = field(default_factory=dict)
    """Fields of a DSPy prompt."""
    has_content: bool = False
    """Whether any text of its input or output was recorded."""
    is_tool_call: bool = False
    """Whether the model called a tool instead of giving an answer."""

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The messages that the model received: those up to the user's last message, and those after it."""
        return () if self.question is None else self.question.messages

    @property
    def prompt(self) -> str:
        """The user's last message; empty if it was not recorded."""
        return "" if self.question is None else self.question.text

    @property
    def prompts(self) -> tuple[str, ...]:
        """The prompts that the model received as plain text."""
        return tuple(message.text for message in self.messages) or ((self.prompt,) if self.prompt else ())

    @property
    def background(self) -> str:
        """The other messages than the user's last one, such as the system's and the results of tools, which may contain
        documents.
        """
        texts = [message.text for message in self.messages if message.text.strip() != self.prompt]
        results = [used.result for message in self.messages for used in message.tool_results]
        return "\n".join([*texts, *texts_in(results)])

    @property
    def has_tool_results(self) -> bool:
        """Whether the model got the results of tools."""
        return any(message.tool_results for message in self.messages)

    @property
    def continued(self) -> str | None:
        """The assistant message at the end of the prompt, which the model continues, if any.

        A call that gets one does not answer the user's last message: it summarizes the conversation, for example.
        """
        last = next((message for message in reversed(self.messages) if message.role != "system"), None)
        return last.text.strip() if last is not None and last.is_answer and last.text.strip() != self.answer else None


def read_calls(trace: Trace) -> list[ModelCall]:
    """Return the trace's model calls in the order of their start times, without those inside retrievers and tools."""
    models = [span for span in trace.tree.spans if trace.kind(span) == "model"]
    outer = [
        span for span in models if not any(trace.kind(parent) in _INTERNAL_TO for parent in trace.tree.ancestors(span))
    ]
    if not outer:  # all of them are inside a tool or retriever, which is the whole trace
        outer = [span for span in models if not any(trace.kind(p) == "model" for p in trace.tree.ancestors(span))]
    calls = [_read_call(trace, span) for span in outer]
    return [call for call in calls if call.has_content or not any(_is_same_call(call.span, other) for other in calls)]


def _is_same_call(span: SpanData, other: ModelCall) -> bool:
    """Return whether a span without content stands for a call whose content another instrumentation recorded."""
    if not other.has_content:
        return False
    response = span.attributes.get(_RESPONSE_ID)
    recorded = [each.attributes[_RESPONSE_ID] for each in other.spans if _RESPONSE_ID in each.attributes]
    if response and recorded:
        return response in recorded
    return other.span.scope != span.scope and other.span.start <= span.start and span.end <= other.span.end


def _read_call(trace: Trace, span: SpanData) -> ModelCall:
    spans = tuple(inner for inner in trace.tree.walk(span) if trace.kind(inner) == "model")
    nowhere = Source(span.span_id, "")
    call = ModelCall(span=span, spans=spans, question_source=nowhere, answer_source=nowhere)
    readings = trace.readings(spans)
    inputs = _messages_first((inner.span_id, raw) for inner, reading in readings for raw in reading.inputs)
    outputs = _messages_first((inner.span_id, raw) for inner, reading in readings for raw in reading.outputs)
    for span_id, raw in inputs:
        if (question := find_question(raw.content)) is not None:
            call.question, call.question_source = question, Source(span_id, raw.source)
            break
    if call.question is not None and (instructions := _instructions(spans)):
        messages = call.question.messages or (ChatMessage("user", call.question.text),)
        call.question = call.question._replace(messages=(ChatMessage("system", instructions), *messages))
    _read_answer(call, outputs)
    is_cut = any(
        isinstance(raw.value, str) and raw.content is None and not is_missing(raw.value) for _, raw in inputs + outputs
    )
    call.has_content = call.has_content or is_cut or call.question is not None or call.answer is not None
    if span.status == "ERROR":  # a failed stream leaves the beginning of an answer
        call.answer = None
    _read_template(call)
    return call


def _instructions(spans: Iterable[SpanData]) -> str:
    """Return the system's message that is recorded apart from the others. If it was cut off, it is its raw value."""
    values = (span.attributes.get("gen_ai.system_instructions") for span in spans)
    return next(("\n".join(texts_in(decode(value) or value)) for value in values if value), "")


def _messages_first(values: Iterable[tuple[str, RawValue]]) -> list[tuple[str, RawValue]]:
    """Sort values so that messages, which have a role each, come before texts, which may look like JSON."""
    return sorted(values, key=lambda value: isinstance(value[1].value, str))


def _read_answer(call: ModelCall, outputs: Iterable[tuple[str, RawValue]]) -> None:
    """Read the answer, or the call of a tool, from the outputs of a call's spans."""
    for span_id, raw in outputs:
        messages = read_messages(raw.content)
        answer = answer_in(raw) if messages is None else final_answer(messages)
        call.has_content = call.has_content or any(message.text.strip() for message in messages or ())
        call.is_tool_call = messages is not None and answer is None and bool(messages[-1].tool_calls)
        if call.is_tool_call:  # its text, in other attributes, is not an answer
            return
        if answer is not None:
            call.answer, call.answer_source = answer, Source(span_id, raw.source)
            return


def answer_in(raw: RawValue) -> str | None:
    """Return the answer in a recorded output, or None if it contains none."""
    if raw.is_text:
        return raw.value.strip() or None
    answer = find_answer(raw.content)
    if answer is None and raw.may_be_object and isinstance(raw.value, str) and is_text(raw.value):
        return raw.value.strip()
    return answer


def _read_template(call: ModelCall) -> None:
    """Replace the prompt and the reply of a DSPy call with the fields that they contain."""
    if call.question is None:
        return
    instructions = next((message.text for message in call.messages if message.role == "system"), "")
    # The instructions may be recorded apart from the messages, or not at all.
    names = field_names(instructions) or prompt_fields(call.question.text)
    if names is None:
        return
    inputs, outputs = names
    call.template_fields = fields = template_fields(call.question.text, inputs)
    asked = [name for name in QUESTION_KEYS if fields.get(name)] or [name for name in fields if "context" not in name]
    replied = template_fields(call.answer or "", outputs)
    given = [name for name in ("answer", "response") if replied.get(name)] or list(replied)[-1:]
    call.question = call.question._replace(text=fields[asked[0]]) if asked and fields[asked[0]] else None
    call.answer = (replied[given[0]] or None) if given else None


def first_call_of_turn(calls: Sequence[ModelCall], *, is_web_request: bool) -> ModelCall | None:
    """Return the first call of the turn that ends with the last call.

    Two calls belong to one turn if the later one repeats the question of the earlier one, as in a loop of tool calls,
    or contains its reply in the prompt. A call whose question is an earlier message of a later call belongs to an
    earlier turn, but not in a web request: the user does not reply within it.
    """
    if not calls:
        return None
    first = last = calls[-1]
    for call in reversed(calls[:-1]):
        if any(_continues(call, later, is_web_request=is_web_request) for later in (first, last)):
            first = call
    return first


def _continues(earlier: ModelCall, later: ModelCall, *, is_web_request: bool) -> bool:
    if earlier.question is None or later.question is None or earlier.continued is not None:
        return False
    asked, prompt = earlier.question.text, later.question.text
    if asked == prompt:
        return True
    if asked in user_texts(later.question.history):
        return is_web_request and any(message.text.strip() == earlier.answer for message in later.messages)
    given = earlier.answer
    others = [message.text for message in later.messages if message.role == "system"]
    # A reply in a system message is background, such as a summary of the conversation, and not a rewritten question.
    if not asks(asked) and asks(prompt):  # a text about which the user asks is in the background, too
        others = []
    return any(stands_alone(asked, text) for text in (prompt, *others)) or (
        given is not None and stands_alone(given, prompt)
    )
