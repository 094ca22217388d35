"""The question inside a prompt that also contains documents and instructions.

A prompt is split into its parts: elements in tags, lines with a label, headings and paragraphs. Which part is the
question follows from the structure, whatever the language of the labels:

- it is also recorded elsewhere, such as in a retriever's query, a variable of the prompt, or as the whole message of
  another call, or
- its label is one of the names that frameworks give to questions, or it alone asks, or it alone is left over, and
- the other parts are where the answer was taken from.

A message with parts is read by its parts or not at all. A message without them is the question, unless it contains a
document.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from germane.language import GROUNDED, asks, grams, is_finished, sentences_of, share_from
from germane.recognizers.calls import ModelCall
from germane.recognizers.messages import role_of
from germane.recognizers.results import Source
from germane.recognizers.text import decode, stands_alone, texts_in
from germane.recognizers.trace import Trace
from germane.recognizers.values import QUESTION_KEYS, find_question
from germane.reprs import read_repr

_OPENING: Final = re.compile(r"<(([^\W\d_][^\s<>/\"'=]{0,60})(?:\s[^<>]{0,200})?)>")  # with the vowel signs of Hindi
_MAX_TAGS: Final = 200
"""Maximum number of tags whose ends are looked up."""
_BULLET: Final = r"[^\w\n\"'(\[{<]{0,8}(?:\d{1,3}[.)][ \t]+)?"
_LABEL: Final = re.compile(_BULLET + r"[*_]*([^\W\d_][^\n:\uff1a.?!,;<>]{0,60}?)[*_]*[ \t]*[:\uff1a][*_]*[ \t]*(.*)")
_HEADING: Final = re.compile(
    r"\s*(?:#{1,6}\s+(.{1,60}?)[\s#]*"
    r"|[=*\[~|+\u3010<{#_/-]+\s*([^\W\d].{0,60}?)\s*[=*\]~|+\u3011>}#_-]+)\s*"
)
_TURN: Final = re.compile(r"<\|([^|<>\n]{1,40})\|>(?:(\w{1,20})(?:<\|[^|<>\n]{1,40}\|>)?(?=\s*(?:\n|\Z)))?")
"""The marker of a turn in a chat template, with the role that may follow it."""
_MARKER: Final = re.compile(r"<</?[^<>\n]{1,40}>>|\[/?[^\W\d_]{3,30}\]")
_ASSIGNMENT: Final = re.compile(
    "^(" + _BULLET + r"[^\W\d_][^\n.?!,;:<>]{0,30}?)[ \t]+([^\w\s\"'`(\[{<,;.?!:|]{1,3})[ \t]+",
    re.MULTILINE,
)
_INNER_LABEL: Final = re.compile(r"(?<=[^\w\s,;:\uff1a(])[ \t]+(?=[^\W\d_][^\n:\uff1a.?!,;<>]{0,30}[:\uff1a][ \t])")
_FENCE: Final = "```"
_NAME_ENDINGS: Final = tuple(f"_{name}" for name in QUESTION_KEYS)
_MAX_HEADING: Final = 100
_MAX_LABEL_WORDS: Final = 10
_MAX_ENDS: Final = 500
"""Maximum number of parts at the beginning and at the end. If there are more, those in the middle are left out."""
_SOURCE: Final = 0.1
"""Minimum share of a reply's content that comes from a part, which makes the part one of its sources."""
_SHARED: Final = 0.25
"""Minimum share of a question's content that documents about the same subject contain."""
_SHORT: Final = 150
"""Maximum number of bytes of a message that is not examined for paragraphs, because people write some, too."""
_LONG: Final = 1500
"""Minimum number of bytes of a paragraph that may contain documents."""
_COPIED: Final = 0.5
"""Minimum share of a reply's content in a paragraph that contains documents. A reply repeats a part of its question."""
_MARKS: Final = ('""', "''", "``", "\u201c\u201d", "\u201e\u201c", "\u00ab\u00bb", "\u300c\u300d")
MIN_DOCUMENT: Final = 12
"""Minimum number of characters of a document that is looked up in a prompt. Shorter ones may occur by accident."""


class PromptPart(NamedTuple):
    """A part of a prompt."""

    label: str
    """The name of the tag, the label or the heading; empty if there is none."""
    text: str
    is_closed: bool = False
    """Whether a tag marks the end of the part."""

    @property
    def may_ask(self) -> bool:
        """Whether the part can be a question: a line, or the whole content of a tag."""
        return self.is_closed or "\n" not in self.text

    @property
    def is_named(self) -> bool:
        """Whether the label is a name of questions, or of their author."""
        name = self.label.strip().casefold().replace(" ", "_").replace("-", "_")
        return name in QUESTION_KEYS or name.endswith(_NAME_ENDINGS) or role_of(name) == "user"


@lru_cache(maxsize=4)
def parts_of(prompt: str) -> Sequence[PromptPart]:
    """Split a prompt into its parts, in their order."""
    value = decode(prompt)
    value = read_repr(value) if isinstance(value, str) and value[:1] == "{" else value
    if isinstance(value, dict):
        return [PromptPart(str(name), "\n".join(texts_in(item))) for name, item in value.items()]
    prompt = _in_lines(prompt.strip())
    elements = list(_elements(prompt))
    if len(elements) == 1 and elements[0][:2] == (0, len(prompt)) and elements[0][2].text.startswith("<"):
        return parts_of(elements[0][2].text)
    parts: list[PromptPart] = []
    position = 0
    for start, end, part in elements:
        parts += [*_labeled_parts(prompt[position:start]), part]
        position = end
    parts += _labeled_parts(prompt[position:])
    return [*parts[:_MAX_ENDS], *parts[_MAX_ENDS:][-_MAX_ENDS:]]


def _in_lines(prompt: str) -> str:
    """Return a prompt with markers in lines of their own, and with a colon after each label at the start of a line."""
    prompt = _TURN.sub(lambda found: f"\n[{found[2] or found[1]}]\n", prompt)
    if "[/" in prompt or "<<" in prompt:
        prompt = _MARKER.sub(r"\n\g<0>\n", prompt)
    separators = Counter(found[2] for found in _ASSIGNMENT.finditer(prompt))
    repeated = {separator for separator, number in separators.items() if number > 1}
    prompt = _ASSIGNMENT.sub(lambda found: f"{found[1]}: " if found[2] in repeated else found[0], prompt)
    return prompt if is_short(prompt) else "\n".join(map(_split_labels, prompt.split("\n")))


def _split_labels(line: str) -> str:
    """Return a line with a line for each of its labels, if there are several."""
    if line.count(":") + line.count("\uff1a") < 2:
        return line
    split = _INNER_LABEL.sub("\n", line)
    return split if split.count("\n") + bool(_LABEL.match(line)) > 1 else line


def _elements(prompt: str) -> Iterator[tuple[int, int, PromptPart]]:
    """Yield the outermost elements in tags, with their start and end."""
    position, missing = 0, set[str]()
    for _ in range(_MAX_TAGS):
        opening = _OPENING.search(prompt, position)
        if opening is None:
            return
        end = -1
        for closing in (f"</{name}>" for name in dict.fromkeys(opening.groups()) if end < 0):
            end = -1 if closing in missing else prompt.find(closing, opening.end())
            if end < 0:
                missing.add(closing)
        position = opening.end() if end < 0 else prompt.index(">", end) + 1
        if end >= 0:
            yield opening.start(), position, PromptPart(opening[1], prompt[opening.end() : end].strip(), is_closed=True)


def _labeled_parts(text: str) -> Iterator[PromptPart]:
    """Yield the labeled lines of a text and the paragraphs between them. A label alone is that of the next one."""
    label, lines, is_code, has_code = "", list[str](), False, text.count(_FENCE) % 2 == 0
    for line in [*text.splitlines(), ""]:
        is_code ^= has_code and line.count(_FENCE) % 2 == 1
        labeled = None if is_code else _read_label(line)
        is_rule = not any(map(str.isalnum, line))  # blank, or nothing but hyphens or quotation marks
        if lines and (is_rule or labeled):
            yield PromptPart(label, "\n".join(lines).strip())
            label, lines = "", []
        if labeled:
            if label:
                yield PromptPart(label, "")
            if labeled.text:
                yield labeled
            label = "" if labeled.text else labeled.label
        elif not is_rule:
            lines.append(line)
    if label:
        yield PromptPart(label, "")


def _read_label(line: str) -> PromptPart | None:
    """Return the label or heading of a line with the text after it, if any."""
    if len(line) <= _MAX_HEADING and (heading := _HEADING.fullmatch(line)):
        return PromptPart(heading[1] or heading[2], "")
    if line.isupper() and len(line.split()) == 1 and line.strip().isalpha():
        return PromptPart(line.strip(), "")
    if ":" not in line and "\uff1a" not in line:
        return None
    if line.rstrip().endswith((":", "\uff1a")) and len(line.split()) <= 2 * _MAX_LABEL_WORDS:
        return PromptPart(line.strip(" \t>*#_-:\uff1a"), "")
    found = _LABEL.fullmatch(line)
    is_label = found is not None and len(found[1].split()) <= _MAX_LABEL_WORDS
    return PromptPart(found[1], found[2].strip()) if found is not None and is_label else None


def question_in(call: ModelCall, recorded: Iterable[str] = (), documents: Sequence[str] = ()) -> str | None:
    """Return the question in the user's message of a call: the whole message if it has neither parts nor documents.

    None if it is unknown which part is the question. One of the recorded texts, from elsewhere in the
    trace, may be the question, and some of the documents may be inserted in the prompt.
    """
    turns = list[str]()
    for message in reversed(call.messages):
        if message.role != "user":
            break
        turns.insert(0, message.text.strip())
    if len(turns) < 2 or len(set(turns)) < len(turns) or turns[-1] != call.prompt:
        return question_in_prompt(call.prompt, call.answer, recorded, documents, call.background)
    joined = "\n\n".join(turns)  # each may be a part of the prompt
    found = question_in_prompt(joined, call.answer, recorded, documents)
    return call.prompt if found == joined else found


def question_in_prompt(
    prompt: str, answer: str | None, recorded: Iterable[str] = (), documents: Sequence[str] = (), background: str = ""
) -> str | None:
    """Return the question in a prompt, as :func:`question_in` does for the prompt of a call with its other messages."""
    recorded = list(recorded)
    for text in recorded:
        if text and text != prompt and stands_alone(text, prompt):
            return text
    parts = parts_of(prompt)
    filled = [part for part in parts if part.text]
    sources = _sources(filled, answer, background, documents)
    if len(parts) < 2 or not filled or (sum(bool(part.label) for part in parts) < 2 and not sources):
        if any(text in prompt for text in documents):
            return None
        if prompt in recorded or _is_message(prompt, filled, answer or "", background):
            return parts[0].text if len(parts) == 1 and parts[0].is_closed else prompt
        sources = _others_than_question(filled)
        if not sources:
            return None
    return _question_of_parts(parts, filled, sources)


def _question_of_parts(
    parts: Sequence[PromptPart], filled: Sequence[PromptPart], sources: Sequence[PromptPart]
) -> str | None:
    """Return the text of the part that is the question, if it is clear which one is."""
    completed, chosen = _completed(parts, sources), _question_among(filled, sources)
    found = completed or chosen
    if found is None or (chosen is not None and chosen is not found) or _is_continued(found, parts, sources):
        return None
    is_clear = sources or is_short(found.text) or len(sentences_of(found.text)) < 2
    return _without_marks(found.text) if is_clear else None


def _others_than_question(parts: Sequence[PromptPart]) -> list[PromptPart]:
    """Return the parts around the one that asks; nothing if several do, or if it is in the middle."""
    asking = [part for part in parts if asks(part.text)]
    is_clear = len(asking) == 1 and asking[0].may_ask and asking[0] in (parts[0], parts[-1])
    return [part for part in parts if part not in asking] if is_clear else []


def _is_message(prompt: str, parts: Sequence[PromptPart], answer: str, background: str) -> bool:
    """Return whether a text without labels is a person's message: short, or answered from elsewhere, or a paragraph in
    which nothing else than the question was answered.
    """
    if is_short(prompt) or share_from(answer, grams(background), grams(prompt)) >= GROUNDED:
        return True
    if len(parts) < 2 and len(sentences_of(prompt)) < 2 and "\n" not in prompt:
        return True
    is_statement = is_finished(answer) and not asks(answer)  # a query repeats the question, too
    if is_statement and len(sentences_of(prompt)) > 1 and share_from(answer, grams(prompt), frozenset()) >= _COPIED:
        return False
    lines = prompt.splitlines()
    return len(parts) < 2 and is_short(prompt, _LONG) and (len(lines) < 2 or sum(map(asks, lines)) != 1)


def is_short(text: str, limit: int = _SHORT) -> bool:
    """Return whether a text is too short for a prompt, in bytes, because scripts differ in characters."""
    return len(text.encode(errors="surrogatepass")) <= limit


def _without_marks(text: str) -> str:
    """Return a question without the quotation marks around it."""
    while len(text) > 1 and text[0] + text[-1] in _MARKS and text[-1] not in text.strip(text[0] + text[-1]):
        text = text[1:-1].strip()
    return text


def _is_continued(found: PromptPart, parts: Sequence[PromptPart], sources: Sequence[PromptPart]) -> bool:
    """Return whether a question may have more lines, because nothing separates it from its neighbors."""
    if found.is_closed:
        return False
    at = next(at for at, part in enumerate(parts) if part is found)
    following = [part for part in parts[at + 1 : at + 2] if part.text and not part.label]
    if found.label:
        return bool(following)
    neighbors = [*parts[max(0, at - 1) : at], *following]
    return any(part.text and part not in sources and not part.is_closed for part in neighbors)


def _completed(parts: Sequence[PromptPart], sources: Sequence[PromptPart]) -> PromptPart | None:
    """Return the labeled part before the label of the reply at the end of a prompt, if there is one."""
    last, before = parts[-1], next(part for part in reversed(parts) if part.text)
    if last not in sources and _is_open_turn(parts):
        return last
    is_slot = bool(last.label and before.label) and not last.text
    if not is_slot or not before.may_ask:
        return None
    labels = [part.label for part in parts if part.text and part is not before]
    if before.label in labels and last.label in labels:  # a dialogue
        return before
    is_question = before.is_named or asks(before.text) or _shares(before, sources)
    return before if is_question and before not in sources else None


def _is_open_turn(parts: Sequence[PromptPart]) -> bool:
    """Return whether the last part asks in a turn without a reply, of a dialogue or of examples."""
    *earlier, last = [part.label for part in parts if part.label] or [""]
    is_turn = last == parts[-1].label and parts[-1].may_ask and asks(parts[-1].text)
    if not is_turn or earlier[-1:] == [last] or last not in earlier:
        return False
    first = earlier.index(last)
    return first == 0 or earlier[first - 1] not in earlier[first:]


def _shares(part: PromptPart, others: Sequence[PromptPart]) -> bool:
    """Return whether a part shares content with others. Instructions do not."""
    return share_from(part.text, grams("\n".join(other.text for other in others)), frozenset()) >= _SHARED


def _sources(
    parts: Sequence[PromptPart], answer: str | None, background: str, documents: Sequence[str]
) -> list[PromptPart]:
    """Return the parts that contain documents, or that the reply was taken from."""
    found = [part for part in parts if any(text in part.text or part.text in text for text in documents)]
    if found or not parts or answer is None or asks(answer):
        return found
    asked = [part for part in parts if part.may_ask and (asks(part.text) or part.is_named)]
    asked = asked or _candidates(parts, answer)
    known = grams("\n".join([background, *(part.text for part in asked)]))
    return [part for part in parts if part not in asked and share_from(answer, grams(part.text), known) >= _SOURCE]


def _candidates(parts: Sequence[PromptPart], reply: str) -> list[PromptPart]:
    """Return the first or last part as the question if the reply comes from the other parts. Empty if ambiguous."""
    found = []
    for part in (parts[0], parts[-1]):
        others = grams("\n".join(other.text for other in parts if other is not part))
        own = share_from(reply, grams(part.text), others)
        if part.may_ask and max(GROUNDED, 2 * own) <= share_from(reply, others, grams(part.text)):
            found.append(part)
    return [part for part in found if part.label][-1:] or (found if len(found) == 1 else [])


def _question_among(parts: Sequence[PromptPart], sources: Sequence[PromptPart]) -> PromptPart | None:
    """Return the part that is the question; None if several may be."""
    candidates = [part for part in parts if part.may_ask and part not in sources]
    asking = [part for part in candidates if asks(part.text)]
    named = [part for part in candidates if part.is_named]
    if not asking and not named:
        return _left_over(parts, candidates, sources)
    both = [part for part in asking if part in named]
    if len(both) == 1 and (sources or len(parts) > 2):
        return both[0]
    return _last_or_only(parts[-1], asking, named, sources)


def _may_be_asked(part: PromptPart, found: PromptPart, parts: Sequence[PromptPart]) -> bool:
    """Return whether a part that the reply repeats stands where a question does, like the one that was found."""
    if "\n" in part.text:
        return False
    if not part.label:
        return not found.label and part in (parts[0], parts[-1])
    following = parts[parts.index(part) + 1 :][:1]
    return all(each is found or each.label for each in following)


def _last_or_only(
    last: PromptPart, asking: Sequence[PromptPart], named: Sequence[PromptPart], sources: Sequence[PromptPart]
) -> PromptPart | None:
    """Return the question at the end of a prompt, or the only one before or after the text that the reply is from."""
    if last in asking and (sources or len(asking) == 1):  # documents may contain questions, too
        is_other = not _shares(last, sources) and any(_shares(part, sources) for part in asking)
        return None if is_other and last not in named else last
    if asking and named:
        return last if list(named) == [last] else None
    found = named or asking
    return found[0] if len(found) == 1 and (sources or found[0] is last) else None


def _left_over(
    parts: Sequence[PromptPart], candidates: Sequence[PromptPart], sources: Sequence[PromptPart]
) -> PromptPart | None:
    """Return the labeled part at the end of a prompt, or the only part that the reply was not taken from."""
    likely = candidates if len(candidates) == 1 else [part for part in candidates if part.label]
    likely = [part for part in likely if _shares(part, sources)]
    if len(likely) != 1 or (len(candidates) > 1 and likely[0] is not parts[-1]):
        return None
    return None if any(_may_be_asked(part, likely[0], parts) for part in sources) else likely[0]


def shared_questions(prompt: str, others: Iterable[str]) -> list[str]:
    """Return the question that other prompts of the same template contain as well, such as those for each document."""
    texts = {part.text for part in parts_of(prompt) if part.may_ask and asks(part.text)}
    shared = texts & {part.text for other in others if other != prompt for part in parts_of(other)}
    return list(shared) if len(shared) == 1 else []


def recorded_questions(trace: Trace, call: ModelCall) -> Iterator[tuple[str, Source]]:
    """Yield recorded texts that may be the question in a call's prompt, from the most to the least reliable."""
    earlier = [span for span in trace.tree.walk() if span.start <= call.span.start or span in call.spans]
    for span in earlier:
        reading = trace.reading(span)
        if reading.variables is not None and isinstance(variables := decode(reading.variables.value), dict):
            for name in QUESTION_KEYS:
                if isinstance(text := variables.get(name), str):
                    yield text.strip(), Source(span.span_id, f"{reading.variables.source}.{name}")
    for kinds in (("workflow", "prompt"), ("retriever", "embedding")):
        for span in earlier:
            reading = trace.reading(span)
            if reading.kind not in kinds:
                continue
            for raw in reading.inputs:
                if isinstance(raw.content, str):  # of any form, because the prompt confirms it
                    yield raw.content.strip(), Source(span.span_id, raw.source)
                elif (found := find_question(raw.content)) is not None:
                    yield found.text, Source(span.span_id, raw.source)
