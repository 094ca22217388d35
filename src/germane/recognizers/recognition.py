"""Recognition of a question, its answer and its contexts in the spans and log records of one trace.

The rules are the same for all instrumentations:

- One language model call gives the answer; :mod:`~germane.recognizers.answering` finds it. The ancestors of that call
  are the steps that led to it.
- Question and answer are taken from the topmost of these steps that recorded them, because a framework records there
  what the user asked and got. Of several texts, the one that a model got or gave is used. Steps that do not contain the
  call, such as a retrieval, never provide them.
- If no step recorded them, they are taken from the calls: the user's last message of the turn's first call, and the
  text of its last call. If that message is a prompt, :mod:`~germane.recognizers.prompts` finds the question in it.
- A text that was cut off is neither, see :mod:`~germane.recognizers.cut`.
- What cannot be decided is unreadable, with a reason. A wrong pair of question and answer is worse than none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from germane.exchange import Context, Message
from germane.language import asks
from germane.recognizers.answering import answering_call, continues_conversation, is_web_request
from germane.recognizers.attributes import (
    ROUTE,
    SESSION,
    USER,
    find_attribute,
    find_model,
    find_name,
    stable_name,
)
from germane.recognizers.calls import ModelCall, answer_in, first_call_of_turn, read_calls
from germane.recognizers.contexts import Contexts, find_contexts, has_documents_without_text, retrieved
from germane.recognizers.conventions import fix_for
from germane.recognizers.cut import cut_texts, is_cut_json
from germane.recognizers.messages import ChatMessage, user_texts
from germane.recognizers.prompts import question_in, recorded_questions, shared_questions
from germane.recognizers.reading import Recognizer
from germane.recognizers.reasons import unreadable_reason
from germane.recognizers.requests import split_trace
from germane.recognizers.results import Recognized, Source, Unreadable, UnreadableReason
from germane.recognizers.spans import LogData, SpanData, SpanTree
from germane.recognizers.text import decode, stands_alone, texts_in
from germane.recognizers.trace import Trace
from germane.recognizers.values import QuestionValue, find_questions, names_answer, names_question

Part = tuple[str, Source, tuple[ChatMessage, ...]]
"""A text, where it was found, and the messages before it."""
_MAX_QUESTIONS: Final = 20
"""Maximum number of texts in one input that are considered as the question."""
_MAX_CALLS: Final = 20
"""Maximum number of calls that are searched for a question."""


def recognize(
    spans: Iterable[SpanData], logs: Iterable[LogData] = (), *, recognizers: Sequence[Recognizer] = ()
) -> Recognized | Unreadable | None:
    """Recognize the exchange in the spans and log records of one trace, in any order. Some spans may be missing.

    The given recognizers are tried before the built-in conventions. Return the exchange, or the reason why there is
    none. None if the trace must not be watched, because it consists of evaluations, or a handler decorated with
    ``germane.observe`` captures it.
    """
    trace = Trace.load(spans, tuple(logs), recognizers)
    return None if trace is None else _Recognition(trace).result()


def recognize_all(
    spans: Iterable[SpanData], logs: Iterable[LogData] = (), *, recognizers: Sequence[Recognizer] = ()
) -> list[Recognized | Unreadable]:
    """Recognize the exchanges of all independent requests in one trace, such as a batch of questions.

    If there are not several, return the result of :func:`recognize`; nothing if the trace must not be watched.
    """
    logs = tuple(logs)
    trace = Trace.load(spans, logs, recognizers)
    if trace is None:
        return []
    parts = (recognize(*part, recognizers=recognizers) for part in split_trace(trace, logs))
    found = [result for result in parts if isinstance(result, Recognized)]
    return [*found] if len(found) > 1 else [_Recognition(trace).result()]


def complete(
    spans: Iterable[SpanData], parent_id: str, *, recognizers: Sequence[Recognizer] = ()
) -> tuple[tuple[Context, ...], str | None]:
    """Find the contexts and the model that a decorated handler does not provide, in the spans of its calls.

    Spans that are not descendants of the handler's are ignored. The model is the one that was called last.
    """
    whole = SpanTree(spans)
    tops = [span for span in whole.spans if span.parent_id == parent_id]
    inner = {span.span_id: dataclasses.replace(span, parent_id=None) for span in tops}
    for top in tops:
        for span in whole.walk(top):
            inner.setdefault(span.span_id, span)
    trace = Trace.load(inner.values(), (), recognizers) if inner else None
    if trace is None:
        return (), None
    recognition = _Recognition(trace)
    model = recognition.model()
    return recognition.contexts().contexts, None if model is None else model[0]


def _is_asked(text: str, calls: Sequence[ModelCall]) -> bool:
    """Return whether a text is the user's message in a model call, or part of that message."""
    return any(
        call.question is not None
        and (stands_alone(text, call.question.text) or text in user_texts(call.question.messages))
        for call in calls
    )


class _Recognition:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.tree = trace.tree
        self.calls = self.all_calls = read_calls(trace)
        self.cut = cut_texts(self.tree.spans, {call.prompt for call in self.calls})
        self.documents = (retrieved(trace, self.tree.spans, self.calls) or Contexts()).texts
        around = self._steps_around(self.calls[0].span) if self.calls else []
        common = [step for step in around if all(self.tree.contains(step, call.span) for call in self.calls)]
        answers = ([raw for raw in trace.reading(step).outputs if answer_in(raw) is not None] for step in common)
        outputs = next(filter(None, answers), [])  # of the outermost step with an answer
        answering = answering_call(trace, self.calls, self.documents, outputs)
        self.last = answering.call
        """The call that gave the answer."""
        self.is_ambiguous = answering.is_ambiguous and not outputs
        if self.last is not None:
            others = [call for call in self.calls if call is not self.last and call not in answering.derived]
            self.calls = [*others, self.last]
        self.steps = [] if self.last is None else self._steps_around(self.last.span)

    def result(self) -> Recognized | Unreadable:
        question, answer = self._question_and_answer()
        if question is None or answer is None or self._is_cut(question, answer):
            return self._unreadable(question, answer)
        # A model's reply may repeat the question. Otherwise, the same text was taken for both.
        repeats = self.last is not None and self.last.prompt == self.last.answer
        if question[0] == answer[0] and not repeats:
            return self._unreadable(question, answer)
        contexts, context_sources = self.contexts()
        if is_cut := any(context.text in self.cut for context in contexts):
            contexts = ()
        sources: dict[str, tuple[Source, ...]] = {"question": (question[1],), "answer": (answer[1],)}
        if contexts:
            sources["contexts"] = context_sources
        answering = self.trace.span(answer[1].span_id)
        found = self._names()
        sources |= {name: (source,) for name, (_, source) in found.items()}
        names = {name: text for name, (text, _) in found.items()}
        return Recognized(
            question=question[0],
            answer=answer[0],
            contexts=contexts,
            history=tuple(
                Message(message.role, message.text)
                for message in question[2]
                if message.is_question or message.is_answer
            ),
            session=names.get("session"),
            user=names.get("user"),
            model=names.get("model"),
            route=names.get("route") or stable_name(self.tree.roots[0].name),
            root_span_ids=tuple(span.span_id for span in self.tree.roots),
            start=self.tree.roots[0].start,
            end=max(span.end for span in self.tree.roots),
            scope=answering.scope,
            instrumentation=self.trace.reading(answering).instrumentation,
            sources=sources,
            has_documents_without_text=is_cut or (not contexts and has_documents_without_text(self.trace)),
        )

    def _is_cut(self, question: Part | None, answer: Part | None) -> bool:
        """Return whether the question, the answer, or a text that decides which call gave it was cut off."""
        texts = (text.strip() for call in self.all_calls for text in (*call.prompts, call.answer or ""))
        has_cut_text = not self.cut.isdisjoint(texts)
        if question is None or answer is None:
            return has_cut_text or any(self._has_cut_value(span) for span in self.tree.spans)
        if not self.cut:
            return False
        sources = {question[1].span_id, answer[1].span_id}
        if not any(span.span_id in sources for call in self.all_calls for span in call.spans):
            return question[0] in self.cut or answer[0] in self.cut
        unread = [call for call in self.all_calls if call.question is None or call.answer is None]
        return has_cut_text or any(self._has_cut_value(span) for call in unread for span in call.spans)

    def _has_cut_value(self, span: SpanData) -> bool:
        """Return whether an input or output of a span was cut off."""
        reading = self.trace.reading(span)
        values = (raw.value for raw in (*reading.inputs, *reading.outputs))
        return any(isinstance(value, str) and (value.strip() in self.cut or is_cut_json(value)) for value in values)

    def _steps_around(self, call: SpanData) -> list[SpanData]:
        """Return the steps that contain a call, from the outermost to the innermost."""
        return [span for span in reversed(list(self.tree.ancestors(call))) if self.trace.kind(span) == "workflow"]

    def _question_and_answer(self) -> tuple[Part | None, Part | None]:
        if self.last is None:
            return self._pair_without_calls()
        if self.is_ambiguous:
            return self._question_of_calls(), None
        return self._question(), self._answer(self.last)

    def _answer(self, last: ModelCall) -> Part | None:
        """Return the answer of the outermost step that recorded one, otherwise that of the last call."""
        answer = next((part for span in self.steps if (part := self._answer_of(span)) is not None), None)
        outermost = self.steps[0] if self.steps else last.span
        if answer is None and outermost.status != "ERROR" and last.answer is not None:
            return last.answer, last.answer_source, ()
        return answer

    def _question(self) -> Part | None:
        """Return the question of the outermost step that recorded one, otherwise that of the calls."""
        found = ((span, part) for span in self.steps if (part := self._question_of(span)) is not None)
        step, question = next(found, (None, None))
        if question is None and self.tree.is_rootless:  # the missing root knows it; a call's message may be a template
            return None
        if step is None or question is None:
            return self._question_of_calls()
        inside = [call for call in self.calls if self.tree.contains(step, call.span)]
        # The prompts of the step's calls may be templates, as in the AI SDK.
        if all(call.question is not None and call.question.text == question[0] for call in inside):
            known = self._question_of_calls()
            return question if known is not None and known[0] == question[0] else known
        return question

    def _question_of(self, span: SpanData) -> Part | None:
        """Return the question in the inputs of a step."""
        calls = [call for call in self.calls if self.tree.contains(span, call.span) and call.question is not None]
        asked = next((call.prompt for call in calls if call.continued is None), None)
        for raw in self.trace.reading(span).inputs:
            source = Source(span.span_id, raw.source)
            content = raw.content
            if asked is not None and isinstance(content, (dict, list)) and isinstance(raw.value, str):
                text = raw.value.strip()
                if stands_alone(text, asked):  # a question that looks like JSON
                    return text, source, self._history_before(text)
            found = self._confirmed_question(content, (*calls[:1], *calls[1:][-_MAX_CALLS:]))
            if found is None:
                continue
            if asked is not None and found.messages and found.text != asked and asked in user_texts(found.messages):
                # A framework may add messages in the user's name later, such as a request to correct the answer.
                texts = [message.text.strip() for message in found.messages]
                index = len(texts) - 1 - texts[::-1].index(asked)
                found = QuestionValue(asked, found.messages, found.messages[:index])
            has_history = any(message.role != "system" for message in found.history)
            return found.text, source, found.history if has_history else self._history_before(found.text)
        return None

    def _confirmed_question(self, content: object, calls: Sequence[ModelCall]) -> QuestionValue | None:
        """Return the most likely question in an input, or a less likely one if it alone reached a model."""
        found = list(islice(find_questions(content), _MAX_QUESTIONS))
        if not found and isinstance(content, dict):  # under any name, if one text alone asks
            asking = {text for text in texts_in(content) if asks(text)}
            found = [QuestionValue(text) for text in asking] if len(asking) == 1 else []
        if not found or not calls:
            return found[0] if found else None
        if not names_question(content):
            found = [each for each in found if _is_asked(each.text, calls)] or found
        question = found[0]
        inner = decode(question.text)
        if isinstance(inner, str) or _is_asked(question.text, calls):
            return question
        return self._confirmed_question(inner, calls)  # a framework encoded its input as the text of a message

    def _history_before(self, question: str) -> tuple[ChatMessage, ...]:
        """Return the earlier messages in a model's prompt, for a question that was recorded without them."""
        for call in self.calls:
            if call.question is not None and question in call.question.text:
                return call.question.history
        return ()

    def _answer_of(self, span: SpanData) -> Part | None:
        """Return the answer in the outputs of a step."""
        given = None if self.last is None else self.last.answer
        for raw in self.trace.reading(span).outputs:
            source = Source(span.span_id, raw.source)
            content = raw.content
            if given is not None and isinstance(raw.value, str) and raw.value.strip() == given:
                return given, source, ()  # an answer that looks like JSON
            answer = answer_in(raw)
            if answer is None or answer == "null":  # an output that was never set
                continue
            if given is not None and answer != given and not names_answer(content) and given in texts_in(content):
                return given, source, ()
            return answer, source, ()
        return None

    def _pair_without_calls(self) -> tuple[Part | None, Part | None]:
        """Return the question and answer of the first step that recorded both, for a trace without model calls to
        confirm them.
        """
        question = answer = None
        if len(self.tree.roots) > 1 or self.tree.is_rootless:
            return None, None
        for span in self.tree.walk():
            if self.trace.kind(span) != "workflow":
                continue
            asked, given = self._question_of(span), self._answer_of(span)
            if given is not None and self.documents and all(text in given[0] for text in self.documents):
                given = None  # a step that formats documents
            question, answer = question or asked, answer or given
            if asked is not None and given is not None and asked[0] != given[0]:
                return asked, given
        return (question, None) if question is not None else (None, answer)

    def _question_of_calls(self) -> Part | None:
        """Return the question of the turn that the last call belongs to."""
        call = first_call_of_turn(self.calls, is_web_request=is_web_request(self.tree))
        if call is None or call.question is None:
            return None
        prompt, history = call.question.text, call.question.history
        others = [other for other in self.calls if other is not call]
        if any(stands_alone(prompt, other.prompt) for other in others if other.prompt != prompt):
            return prompt, call.question_source, history  # it stands as a whole in the prompt of another call
        sources = dict(recorded_questions(self.trace, call))
        asked_elsewhere = filter(None, (question_in(other) for other in others))
        recorded = [*sources, *asked_elsewhere, *shared_questions(prompt, (each.prompt for each in others))]
        asked = question_in(call, recorded, self.documents)
        if asked is None or (asked == prompt and self.tree.is_rootless and "\n" in prompt):  # it may be a template
            return None
        return asked, sources.get(asked, call.question_source), history

    def contexts(self) -> Contexts:
        """Return the retrieved contexts.

        They are read from the spans inside the outermost step if one of them retrieved documents, and otherwise from
        all spans outside the steps of other calls. A trace may contain several independent chains, and documents of
        another chain are not the contexts of this answer.
        """
        last = self.last
        spans = list(self.tree.walk())
        if last is None:
            return find_contexts(self.trace, spans, self.calls)
        latest = self._end_of_earlier_turns(last)
        spans = [span for span in spans if span.start > latest or self.trace.kind(span) == "workflow"]
        outermost = [step for call in self.calls for step in self._steps_around(call.span)[:1]]
        foreign = [step for step in outermost if not self.tree.contains(step, last.span)]
        own = [span for span in spans if not any(self.tree.contains(step, span) for step in foreign)]
        inside = [span for step in self.steps[:1] for span in own if self.tree.contains(step, span)]
        has_documents = any(self.trace.kind(span) in {"retriever", "reranker", "tool"} for span in inside)
        return find_contexts(self.trace, inside if has_documents else own, self.calls)

    def _end_of_earlier_turns(self, last: ModelCall) -> int:
        """Return the start of the last call of an earlier turn, whose documents are not the contexts of this answer. A
        call of this turn may repeat an earlier answer.
        """
        turn = first_call_of_turn(self.calls, is_web_request=is_web_request(self.tree))
        before = self.calls if turn is None else self.calls[: self.calls.index(turn)]
        earlier = [call.span.start for call in before if call.answer and continues_conversation(call.answer, last)]
        return max(earlier, default=-1)

    def model(self) -> tuple[str, Source] | None:
        """Return the name of the model that was called last."""
        if (found := self._read("model")) is not None:
            return found
        spans = self.tree.walk() if self.last is None else [*self.last.spans, *reversed(self.steps)]
        for span in spans:
            if (found := find_model(span, self.trace.reading(span))) is not None:
                return found
        return None

    def _read(self, part: str) -> tuple[str, Source] | None:
        """Return a part that a registered recognizer returned."""
        for span in self.tree.walk() if self.trace.has_recognizers else ():
            if text := getattr(self.trace.reading(span), part):
                return text, Source(span.span_id, "")
        return None

    def _names(self) -> dict[str, tuple[str, Source]]:
        """Return the session, the user, the model and the route, as far as they are recorded, with their sources."""
        spans = list(self.tree.walk())
        found = {
            "session": self._read("session") or find_attribute(spans, SESSION),
            "user": self._read("user") or find_attribute(spans, USER),
            "model": self.model(),
            "route": self._route(),
        }
        return {name: value for name, value in found.items() if value is not None}

    def _route(self) -> tuple[str, Source] | None:
        spans = list(self.tree.walk())
        return self._read("route") or find_attribute(spans, ROUTE) or find_name(self.trace.readings(spans))

    def _unreadable(self, question: Part | None, answer: Part | None) -> Unreadable:
        reason = UnreadableReason.CONTENT_CUT
        if not self._is_cut(question, answer):
            reason = unreadable_reason(
                self.trace,
                self.calls,
                self.steps,
                question=None if question is None else question[0],
                answer=None if answer is None else answer[0],
                is_ambiguous=self.is_ambiguous,
            )
        known = [span for span, _ in self.trace.readings(self.tree.walk())]
        parts = [span for span in known if self.trace.kind(span) != "other"]
        span = [*(call.span for call in self.calls[-1:]), *parts, *known, *self.tree.roots][0]
        reading = self.trace.reading(span)
        route = self._route()
        return Unreadable(
            reason=reason,
            fix=fix_for(reason, span.scope, reading.instrumentation),
            route=stable_name(self.tree.roots[0].name) if route is None else route[0],
            scope=span.scope,
            root_span_ids=tuple(root.span_id for root in self.tree.roots),
            start=self.tree.roots[0].start,
        )
