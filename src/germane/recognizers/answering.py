"""Selection of the model call that gave the answer.

Applications also call models for other purposes: they rewrite, check or split the question before the answer, and they
write a title, suggest questions, extract facts or judge the answer after it. The answer is the reply that no other
reply is better than. Of two replies:

- JSON and lists of questions are no answers for a person, if the other one is text.
- A query, for a retriever or as the question of the other call, is not an answer.
- If one call got the other's reply, its own reply is the answer if it says the same in other words: it is a text of
  similar length that contains the same content, or translates it. Otherwise, it is a title, a judgment or the like.
- If neither got the other's reply, the one whose content comes from its own prompt, and not from the question, is the
  answer, because that prompt had the documents.
- If both got the same question and nothing else decides, the trace is ambiguous.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

from germane.language import GROUNDED, asks, grams, is_code, is_finished, sentences_of, share_from
from germane.recognizers.calls import ModelCall, answer_in
from germane.recognizers.prompts import MIN_DOCUMENT, parts_of, question_in
from germane.recognizers.reading import RawValue
from germane.recognizers.spans import SpanData, SpanTree
from germane.recognizers.text import decode, stands_alone, texts_in
from germane.recognizers.trace import Trace
from germane.recognizers.values import is_component_output, names_answer

_FENCE: Final = re.compile(r"```\w*\s*(.*?)\s*```", re.DOTALL)
_BULLET: Final = re.compile(r"^\s*(?:[*\-\u2022\u2013]|\(?\d+[.)])\s+")
_MAX_PHRASE: Final = 60
"""Maximum number of characters of a phrase. Longer lines are sentences, which have no mark at the end in Thai."""


class Form(IntEnum):
    """What a text looks like, from the least to the most like an answer for a person."""

    DATA = 0
    """JSON, or a list of questions."""
    PHRASE = 1
    """A number, or a short line without the end of a sentence, such as a title, a query or a class."""
    QUESTION = 2
    SENTENCES = 3


@lru_cache(maxsize=512)
def form_of(text: str) -> Form:
    """Return the form of a text."""
    fenced = _FENCE.fullmatch(text.strip())
    value = decode(fenced[1] if fenced else text)
    if not isinstance(value, str):
        return Form.SENTENCES if names_answer(value) else Form.DATA
    lines = [line for line in text.splitlines() if line.strip()]
    sentences = [each for line in lines for each in sentences_of(_BULLET.sub("", line))]
    if sentences and all(map(asks, sentences)):
        return Form.DATA if len(sentences) > 1 else Form.QUESTION
    is_short = len(lines) < 2 and len(text.strip()) <= _MAX_PHRASE
    return Form.PHRASE if is_short and not is_finished(text) else Form.SENTENCES


_MAX_CALLS: Final = 20
"""Maximum number of calls, from the end of the trace, that are compared with each other."""
_LONG: Final = 40
"""Minimum number of characters of a text that does not occur in a prompt by accident."""
_MIN_SHARE: Final = 0.2
"""Minimum share of the better one of two replies, which is at least twice that of the other one."""
_MIN_LENGTH_RATIO: Final = 0.5
"""Minimum length of an answer in other words, relative to the answer."""


class Answering(NamedTuple):
    """The model call that gave the answer, if any, and whether the choice is ambiguous."""

    call: ModelCall | None
    is_ambiguous: bool = False
    """Whether another call may have given the answer as well."""
    derived: Sequence[ModelCall] = ()
    """The calls that got the answer."""


def answering_call(
    trace: Trace, calls: Sequence[ModelCall], documents: Sequence[str], outputs: Sequence[RawValue]
) -> Answering:
    """Return the call that gave the answer.

    The calls are in the order of their start times, and the outputs are those of the outermost step that contains all
    calls. If the answers of some calls are among them, no other call gave the answer.
    """
    returned = _returned_texts(calls, outputs)
    confirmed = [call for call in calls if call.answer is not None and call.answer in returned]
    if confirmed and len({call.answer for call in confirmed}) == 1:
        return Answering(confirmed[-1])
    candidates = list(confirmed or calls)[-_MAX_CALLS:]
    if len(candidates) < 2:
        return Answering(candidates[-1] if candidates else None)
    comparison = _Comparison(trace, candidates, documents)
    beaten: set[int] = set()
    for earlier, later in itertools.combinations(range(len(candidates)), 2):
        better = comparison.better(candidates[earlier], candidates[later])
        if better is not None:
            beaten.add(earlier if better is candidates[later] else later)
    best = [call for number, call in enumerate(candidates) if number not in beaten]
    answering = best[-1] if best else candidates[-1]
    derived = [call for call in candidates if call is not answering and comparison.got(call, answering)]
    return Answering(answering, len({call.answer for call in best}) != 1, derived)


def _returned_texts(calls: Sequence[ModelCall], outputs: Sequence[RawValue]) -> set[str | None]:
    """Return the texts in the outputs of a step, or the answer among them if it is the reply of a call."""
    returned: set[str | None] = set()
    for raw in outputs:
        answer = answer_in(raw)
        if not is_component_output(raw.content) and any(call.answer == answer for call in calls):
            return {answer}
        returned |= {text for value in (raw.value, raw.content) for text in texts_in(value)}
    return returned


class _Comparison:
    def __init__(self, trace: Trace, calls: Sequence[ModelCall], documents: Sequence[str]) -> None:
        self.trace = trace
        self._calls = calls
        self._is_web_request = is_web_request(trace.tree)
        self._inputs: dict[str, frozenset[str]] = {}
        # Without labels, such as the name of a speaker in a conversation.
        prompts = ([call.background, *(part.text for part in parts_of(call.prompt))] for call in calls)
        self._prompts = {call.span.span_id: grams("\n".join(texts)) for call, texts in zip(calls, prompts, strict=True)}
        self._documents = {
            call.span.span_id: {text for text in documents if any(text in prompt for prompt in call.prompts)}
            for call in calls
        }
        self._queries = {
            text
            for span in trace.tree.spans
            if trace.kind(span) in {"retriever", "reranker", "tool", "embedding"}
            for text in _input_texts(trace, span)
        }
        self._asked = {call.span.span_id: question_in(call) for call in calls}
        self._question = grams("\n".join(self._questions()))

    def _questions(self) -> Iterator[str]:
        """Yield the user's messages without documents or replies."""
        unlike = (Form.PHRASE, Form.QUESTION)
        replies = [call.answer for call in self._calls if call.answer and form_of(call.answer) not in unlike]
        asked = {text for text in self._asked.values() if text}
        for text in asked:
            # The question of one call may be part of the prompt of another, with documents.
            is_prompt = any(other != text and stands_alone(other, text) for other in asked)
            if not is_prompt and not any(reply in text for reply in replies):
                yield text

    def better(self, earlier: ModelCall, later: ModelCall) -> ModelCall | None:
        """Return the one of two calls whose reply is rather the answer; None if nothing decides."""
        if earlier.answer == later.answer:
            return later
        if self.got(later, earlier):
            return self._better_in_chain(earlier, later)
        if earlier.answer is None:  # it may have passed the answer to a tool
            return earlier if earlier.has_tool_results and not later.has_tool_results else later
        if later.answer is None:
            had, has = self._documents[earlier.span.span_id], self._documents[later.span.span_id]
            return earlier if had - has else later
        if later.answer not in "\n".join(later.prompts) and self.got(earlier, later):  # their clocks differ
            return self._better_in_chain(later, earlier)
        return self._better_alone(earlier, later)

    def _better_in_chain(self, given: ModelCall, later: ModelCall) -> ModelCall | None:
        """Compare a call with one that got its reply."""
        reply, text = given.answer or "", later.answer
        if text is None or later.continued == reply:
            return given
        is_decorated = reply in text and len(text) <= len(reply) / _MIN_LENGTH_RATIO  # with citations, for example
        if self._is_step(given, later) or is_decorated:
            return later
        forms = form_of(reply), form_of(text)
        if forms[1] < Form.QUESTION and (forms[1] is Form.DATA or continues_conversation(reply, later)):
            return given if forms[0] is not Form.DATA else None
        if forms[0] is Form.DATA or forms == (Form.QUESTION, Form.SENTENCES):
            is_answer = forms[1] > Form.PHRASE and self._share(later) >= GROUNDED
            return later if is_answer and not self._alone_had_documents(given, later) else None
        if continues_conversation(reply, later) and not self._is_web_request:  # another turn
            return later
        return self._better_text(given, later, forms)

    def _is_step(self, given: ModelCall, later: ModelCall) -> bool:
        """Return whether a reply is a step towards a later one: a query, a part, or the beginning of a loop."""
        turns = [message.text for message in later.messages if message.role != "system"]
        is_background = bool(turns) and not any(_contains(given.answer or "", text) for text in turns)
        is_summary = given.continued is not None or (is_background and form_of(later.answer or "") is Form.SENTENCES)
        return is_summary or self._continues(given, later) or self._is_query(given, later) or self._combines(later)

    def _continues(self, given: ModelCall, later: ModelCall) -> bool:
        """Return whether a call continues the text of an earlier prompt and its reply with what was found since."""
        begun = given.prompt.rpartition("\n")[0]  # the reply may repeat the label that ends the prompt
        if not begun or not later.prompt.startswith(begun):
            return False
        added = grams(later.prompt[len(begun) :].partition(given.answer or "")[2]) - self._prompts[given.span.span_id]
        return self._share(later, added, grams(given.answer or "")) >= GROUNDED

    def _better_text(self, given: ModelCall, later: ModelCall, forms: tuple[Form, Form]) -> ModelCall | None:
        """Compare a reply with a text that was made from it: a new version of the answer, or a text about it."""
        reply, text = given.answer or "", later.answer or ""
        sources = self._prompts[given.span.span_id] | grams(reply) | self._prompts[later.span.span_id]
        is_version = self._is_version(text, given, later)
        if forms[1] is Form.SENTENCES and not is_version and self._may_translate(text, reply, later):
            return later
        if share_from(text, sources, self._question) < GROUNDED:
            is_answer = forms[0] is not Form.PHRASE and self._share(given) >= _MIN_SHARE and not is_code(reply)
            return given if is_answer or forms[0] > forms[1] else None
        if len(text) < _MIN_LENGTH_RATIO * len(reply):
            return None if forms[1] is Form.SENTENCES and later.prompt == reply else given  # it may be a short version
        if forms[1] is Form.SENTENCES:
            return later if is_version else None
        return None if forms[0] is Form.PHRASE else given

    def _is_version(self, text: str, given: ModelCall, later: ModelCall) -> bool:
        """Return whether a text keeps what the reply says that it was made from, or one that both calls got."""
        shared = [call for call in self._calls if self.got(given, call) and self.got(later, call)]
        kept = grams(text)
        return any(share_from(call.answer or "", kept, frozenset()) >= GROUNDED for call in (given, *shared))

    def _may_translate(self, text: str, original: str, call: ModelCall) -> bool:
        """Return whether a reply may be a translation: the call got a text of similar length, but not the question."""
        others = [asked for span_id, asked in self._asked.items() if span_id != call.span.span_id and asked]
        if any(asked != original and asked in prompt for asked in others for prompt in call.prompts):
            return False
        if share_from(text, grams(call.background), frozenset()) >= GROUNDED:  # it repeats its instructions
            return False
        ratios = (len(text) / len(original), len(text.encode()) / len(original.encode()))
        return any(_MIN_LENGTH_RATIO <= ratio <= 1 / _MIN_LENGTH_RATIO for ratio in ratios)

    def _better_alone(self, earlier: ModelCall, later: ModelCall) -> ModelCall | None:
        """Compare two calls of which neither got the other's reply."""
        forms = form_of(earlier.answer or ""), form_of(later.answer or "")
        if Form.DATA in forms and max(forms) > Form.PHRASE:
            return self._better_than_data(*((earlier, later) if forms[0] is Form.DATA else (later, earlier)))
        if len(later.prompts) > 1 and earlier.prompts == later.prompts:  # several models answer
            return None
        shares = self._share(earlier), self._share(later)
        if {*forms} != {Form.QUESTION, Form.SENTENCES} and max(shares) >= _MIN_SHARE > 2 * min(shares):
            return earlier if shares[0] > shares[1] else later
        if forms[0] != forms[1]:
            better, other = (earlier, later) if forms[0] > forms[1] else (later, earlier)
            return None if Form.DATA in forms or self._alone_had_documents(other, better) else better
        had, has = self._documents[earlier.span.span_id], self._documents[later.span.span_id]
        if had - has or has - had:
            return later if has - had else earlier
        return None if self._ask_the_same(earlier, later) else later

    def _better_than_data(self, data: ModelCall, text: ModelCall) -> ModelCall | None:
        """Return the call that replied with a text, unless the one that replied with JSON had the documents."""
        share = self._share(text)
        had_documents = share < _MIN_SHARE and self._alone_had_documents(data, text)
        return None if had_documents or self._share(data) > max(_MIN_SHARE, share) else text

    def _alone_had_documents(self, call: ModelCall, other: ModelCall) -> bool:
        """Return whether the background of one call, and not of the other one, is about the question."""
        own, others = (self._question & grams(each.background) for each in (call, other))
        return len(own) >= GROUNDED * len(self._question) > len(others)

    def _share(
        self, call: ModelCall, sources: frozenset[str] | None = None, known: frozenset[str] = frozenset()
    ) -> float:
        """Return which share of a reply comes from sources, by default its prompt, apart from the question; 0 for a few
        words, such as a class that the instructions name.
        """
        reply = call.answer or ""
        sources = self._prompts[call.span.span_id] if sources is None else sources
        return share_from(reply, sources, self._question | known) if len(reply.encode()) >= _LONG / 2 else 0.0

    def got(self, later: ModelCall, earlier: ModelCall) -> bool:
        """Return whether a call got another one's reply, in its prompt or as the input of a step that contains it."""
        reply = earlier.answer
        if not reply:
            return False
        return any(_contains(reply, text) for text in later.prompts) or any(
            reply in inputs for inputs in self._step_inputs(later, earlier)
        )

    def _step_inputs(self, call: ModelCall, other: ModelCall) -> Iterator[frozenset[str]]:
        """Yield the inputs of each step that contains one call but not the other."""
        for step in self.trace.tree.ancestors(call.span):
            if self.trace.tree.contains(step, other.span):
                return
            if self.trace.kind(step) == "workflow":
                if step.span_id not in self._inputs:
                    self._inputs[step.span_id] = frozenset(_input_texts(self.trace, step))
                yield self._inputs[step.span_id]

    def _is_query(self, earlier: ModelCall, later: ModelCall) -> bool:
        """Return whether an earlier call returned a question or a query rather than an answer."""
        reply = earlier.answer or ""
        if reply in self._queries:
            return True
        if self._asked[later.span.span_id] != reply:
            return False
        is_from_background = self._share(later, grams(later.background), grams(reply)) >= GROUNDED
        return form_of(reply) is Form.QUESTION or (is_from_background and self._alone_had_documents(later, earlier))

    def _combines(self, call: ModelCall) -> bool:
        """Return whether a call got the replies of several others that did not get each other's, such as summaries."""
        given = [other for other in self._calls if other is not call and other.answer and self.got(call, other)]
        return any(
            a.prompts != b.prompts and a.answer != b.answer and not self.got(a, b) and not self.got(b, a)
            for a, b in itertools.combinations(given, 2)
        )

    def _ask_the_same(self, earlier: ModelCall, later: ModelCall) -> bool:
        """Return whether two calls answer the same question."""
        asked, question = self._asked[earlier.span.span_id], self._asked[later.span.span_id]
        if earlier.continued is not None:
            return False
        return stands_alone(asked or "", later.prompt) or stands_alone(question or "", earlier.prompt)


def is_web_request(tree: SpanTree) -> bool:
    """Return whether the first span stands for one request to a web server."""
    root = tree.roots[0]
    return root.kind == "SERVER" or any(name.startswith("http.") for name in root.attributes)


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
