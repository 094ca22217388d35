"""Texts that were cut off because a provider limits the length of attributes.

OpenTelemetry's SDKs cut attributes to ``OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT`` characters without a sign. The limit is
inferred: it is the length of the longest text, if texts of that length end in the middle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from germane.language import asks, is_finished
from germane.recognizers.spans import SpanData
from germane.recognizers.text import decode, is_missing

_MIN_LIMIT: Final = 16
_ROUND: Final = (50, 60, 128)
"""Numbers of which usual limits are multiples."""


def cut_texts(spans: Iterable[SpanData], prompts: Collection[str] = ()) -> frozenset[str]:
    """Return the texts that were cut off, stripped. A prompt may be one of them if it does not end with a question."""
    texts = {text for text in _texts(spans) if len(text) >= _MIN_LIMIT}
    limit = max(map(len, texts), default=0)
    longest = {text for text in texts if len(text) == limit}
    whole = {text for text in longest if is_finished(text) and (text.strip() not in prompts or asks(text))}
    unfinished = {text for text in longest - whole if isinstance(decode(text), str)}
    is_round = any(limit % number == 0 for number in _ROUND) or (limit + 1) % 256 == 0  # such as 255 or 4095
    if any(map(is_cut_json, longest)) or len(longest if is_round else unfinished) > 1:
        return frozenset(text.strip() for text in longest)
    return frozenset(text.strip() for text in unfinished if is_round)


def _texts(spans: Iterable[SpanData]) -> Iterator[str]:
    """Yield the texts in the attributes of spans and their events."""
    for span in spans:
        for attributes in (span.attributes, *(event.attributes for event in span.events)):
            yield from (value for value in attributes.values() if isinstance(value, str))


def is_cut_json(value: Any) -> bool:
    """Return whether a value is JSON that ends in the middle."""
    return isinstance(value, str) and decode(value) is None and not is_missing(value)
