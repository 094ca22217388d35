"""Reading of one span, and the declarative description of an instrumentation's convention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

from germane.recognizers.events import (
    CHOICE_EVENT,
    QUESTION_EVENT,
    documents_in,
    messages_in,
    objects_in,
    records_of,
    stream_in,
)
from germane.recognizers.flattening import AttributeCollector, Key
from germane.recognizers.spans import LogData, SpanData
from germane.recognizers.text import decode

Kind = Literal["workflow", "model", "retriever", "reranker", "tool", "embedding", "prompt", "evaluator", "other"]
"""What a span stands for. A ``workflow`` is a chain, an agent or a step of one; an ``evaluator`` judges answers and is
not part of an exchange."""


class RawValue(NamedTuple):
    """A recorded value before decoding, with the name of the attribute, event or log record that contains it."""

    source: str
    value: Any
    may_be_object: bool = False
    """Whether an object is the answer if no answer is found in it, because the application asked for one."""

    @property
    def is_text(self) -> bool:
        """Whether the value is plain text from the user or the model, even if it looks like JSON."""
        return self.source in _ALWAYS_TEXT and isinstance(self.value, str)

    @property
    def content(self) -> Any:
        """The decoded value. Attributes that always contain plain text are not decoded, even if the text looks like
        JSON.
        """
        if self.is_text:
            return self.value
        return decode(self.value, quoted=self.source.startswith(_ALWAYS_JSON))


_ALWAYS_TEXT = frozenset({"gen_ai.retrieval.query.text", "ai.response.text", "ai.result.text"})
_ALWAYS_JSON = ("traceloop.", "haystack.", "mlflow.", "gen_ai.task.")
"""Beginnings of attributes whose values are always JSON, so that even a text is in quotation marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanReading:
    """The parts of an exchange that one span contains. Values are decoded on first use."""

    kind: Kind
    inputs: tuple[RawValue, ...] = ()
    """Texts, messages or JSON that may contain the question, from the most to the least reliable."""
    outputs: tuple[RawValue, ...] = ()
    """Texts, messages or JSON that may contain the answer, from the most to the least reliable."""
    documents: tuple[RawValue, ...] = ()
    """Documents that a retriever or reranker returned."""
    variables: RawValue | None = None
    """The variables of a prompt, by name."""
    session: str | None = None
    user: str | None = None
    model: str | None = None
    route: str | None = None
    instrumentation: str = ""
    """Name of the convention that the span follows."""
    name_attributes: tuple[str, ...] = ()
    """Attributes with the name of the workflow or agent, in addition to the common ones."""
    splits_streams: bool = False
    """Whether the answer of a streamed call is recorded in a second trace, which repeats the question."""
    hides_separately: bool = False
    """Whether the application can turn off the recording of inputs or outputs alone."""


Recognizer = Callable[[SpanData], SpanReading | None]
"""A function that reads one span; None if it does not know the span."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Convention:
    """An instrumentation's attributes. Lists are ordered from the most to the least reliable attribute."""

    name: str
    scopes: tuple[str, ...] = ()
    """Names of instrumentation scopes, or their beginnings up to a dot."""
    markers: tuple[str, ...] = ()
    """Attributes that identify the convention in a scope with another name."""
    kind_of: Callable[[SpanData], Kind]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    flat_inputs: tuple[str, ...] = ()
    """Beginnings of attributes such as ``llm.input_messages.0.message.content``."""
    flat_outputs: tuple[str, ...] = ()
    object_outputs: tuple[str, ...] = ()
    """The outputs that contain nothing but the answer, which may be an object."""
    documents: tuple[str, ...] = ()
    flat_documents: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Attributes with the name of the workflow or agent."""
    variables: str = ""
    """Attribute with the variables of a prompt as JSON, or the beginning of one attribute per variable."""
    splits_streams: bool = False
    hides_separately: bool = False
    content_fix: str = ""
    """How to turn on content capture."""
    documents_fix: str = "record the texts of documents, or decorate the retriever with @germane.retrieval"
    """How to record the texts of documents, if the instrumentation leaves them out."""
    model_fix: str = ""
    """What to install in addition, if the instrumentation does not record model calls."""

    def owns(self, scope: str) -> bool:
        """Return whether a scope belongs to this convention."""
        return any(scope == known or scope.startswith(f"{known}.") for known in self.scopes)

    def read(self, span: SpanData, logs: tuple[LogData, ...] = (), fallback: Convention | None = None) -> SpanReading:
        """Read a span and the log records that belong to it.

        The attributes of ``fallback`` are used where this convention's are missing, because the versions of an
        instrumentation differ.
        """
        kind = self.kind_of(span)
        if kind == "other" and fallback is not None:
            kind = fallback.kind_of(span)
        sources = _sources((self,) if fallback is None else (self, fallback), kind == "model")
        values = sources.collector.collect(span.attributes)
        inputs, outputs, documents, variables = (self._raw_values(ranks, values) for ranks in sources.ranks)
        if records := records_of(span, logs) if logs or span.events else ():
            for name, own in ((record.name, sources.collector.collect(record.values)) for record in records):
                for ranks, found in zip(sources.ranks, (inputs, outputs, documents, variables), strict=True):
                    found += [raw._replace(source=f"{name} {raw.source}") for raw in self._raw_values(ranks, own)]
            asked, answered = messages_in(records)
            inputs += [RawValue(QUESTION_EVENT, asked)] if asked else []
            outputs += [RawValue(CHOICE_EVENT, answered)] if answered else []
            outputs += [RawValue("delta", text)] if (text := stream_in(records)) else []
            documents += [RawValue("db.query.result", texts)] if (texts := documents_in(records)) else []
            objects = [RawValue(name, value) for name, value in objects_in(records)]
            inputs += objects
            outputs += reversed(objects)
        return SpanReading(
            kind=kind,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            documents=tuple(documents),
            variables=variables[0] if variables else None,
            instrumentation=self.name,
            name_attributes=self.names,
            splits_streams=self.splits_streams,
            hides_separately=self.hides_separately,
        )

    def _raw_values(self, ranks: Mapping[Key, int], values: Mapping[Key, Any]) -> list[RawValue]:
        keys = sorted([key for key in values if key in ranks], key=ranks.__getitem__)
        return [RawValue(key[0], values[key], key[0] in self.object_outputs) for key in keys]


class _Sources(NamedTuple):
    """The attributes that a convention and its fallback define."""

    collector: AttributeCollector
    ranks: tuple[Mapping[Key, int], ...]
    """Ranks of inputs, outputs, documents and variables. The most reliable ones are first."""


@cache
def _sources(conventions: tuple[Convention, ...], is_model: bool) -> _Sources:  # noqa: FBT001 - part of the cache's key
    """Return the attributes of a convention and its fallback."""

    def ranks(keys_of: Callable[[Convention], Iterable[Key]]) -> Mapping[Key, int]:
        keys = dict.fromkeys(key for convention in conventions for key in keys_of(convention))
        return {key: rank for rank, key in enumerate(keys)}

    def ordered(values: Iterable[str], lists: Iterable[str], *, lists_first: bool) -> list[Key]:
        whole: list[Key] = [(name, "value") for name in values]
        flat: list[Key] = [(name, "list") for name in lists]
        return flat + whole if lists_first else whole + flat

    # A model's messages are more precise than its request and response, which contain them.
    all_ranks = (
        ranks(lambda each: ordered(each.inputs, each.flat_inputs, lists_first=is_model)),
        ranks(lambda each: ordered(each.outputs, each.flat_outputs, lists_first=is_model)),
        ranks(lambda each: ordered(each.documents, each.flat_documents, lists_first=True)),
        ranks(lambda each: [(each.variables, "value"), (each.variables, "object")] if each.variables else []),
    )
    return _Sources(AttributeCollector(key for each in all_ranks for key in each), all_ranks)
