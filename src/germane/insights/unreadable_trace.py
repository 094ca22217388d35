"""The page of an unreadable trace: the spans and attributes that it contains, and those that were expected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from germane.insights.context import InsightContext
from germane.insights.watched_traces import describe_reason, fix_reason
from germane.recognizers import content_attributes
from germane.trace_outline import AttributeOutline, SpanOutline, UnreadableTrace

MAX_NESTING: Final = 6
"""Maximum number of levels of the tree that are shown. Deeper spans are shown at the last level."""
Part = Literal["question", "answer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeRow:
    """An attribute, and the parts of the exchange that germane looks for in it."""

    outline: AttributeOutline
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanNode:
    """A span in the tree."""

    outline: SpanOutline
    attributes: Sequence[AttributeRow]
    children: list[SpanNode] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableTraceInsight:
    """An unreadable trace and the fix for it."""

    trace: UnreadableTrace
    meaning: str
    """Why the trace could not be read, as a clause that begins with a small letter."""
    fix: str
    """What to do, as a clause that begins with a small letter."""
    roots: Sequence[SpanNode]
    question_names: Sequence[str]
    """Attributes, events and log records in which the instrumentation records questions."""
    answer_names: Sequence[str]
    """Attributes, events and log records in which the instrumentation records answers."""

    @property
    def missing(self) -> Sequence[Part]:
        """The parts of the exchange that no attribute, event or log record of the trace contains."""
        found = {part for node in _walk(self.roots) for row in node.attributes for part in row.parts}
        parts: tuple[Part, ...] = ("question", "answer")
        return [part for part in parts if part not in found]


def load_unreadable_trace(context: InsightContext, trace_id: str) -> UnreadableTraceInsight | None:
    """Load a sampled trace, or return None if it is not or no longer in the sample."""
    trace = context.store.unreadable.get_trace(trace_id)
    if trace is None:
        return None
    questions, answers = content_attributes(trace.scope)
    roots: list[SpanNode] = []
    path: list[SpanNode] = []
    for outline in trace.spans:  # depth first
        del path[max(0, min(outline.depth, MAX_NESTING - 1)) :]
        rows = [AttributeRow(outline=each, parts=_parts(each, outline.scope)) for each in outline.attributes]
        node = SpanNode(outline=outline, attributes=rows)
        (path[-1].children if path else roots).append(node)
        path.append(node)
    return UnreadableTraceInsight(
        trace=trace,
        meaning=describe_reason(trace.reason),
        fix=fix_reason(trace.reason, trace.scope),
        roots=roots,
        question_names=questions,
        answer_names=answers,
    )


def _parts(outline: AttributeOutline, scope: str) -> Sequence[Part]:
    """Return the parts of an exchange, question or answer, that an attribute contains in the scope's or any other
    convention.
    """
    name = outline.record or outline.name
    own, generic = content_attributes(scope), content_attributes("")
    names: dict[Part, tuple[str, ...]] = {"question": own[0] + generic[0], "answer": own[1] + generic[1]}
    return [part for part, known in names.items() if any(name == each or name.startswith(f"{each}.") for each in known)]


def _walk(nodes: Sequence[SpanNode]) -> Iterator[SpanNode]:
    for node in nodes:
        yield node
        yield from _walk(node.children)
