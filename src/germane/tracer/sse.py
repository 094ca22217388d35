"""Readers for the text of a stream, whose chunks may split a character or a server-sent event."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

from germane.tracer.text import as_text

RawChunk = str | bytes | bytearray | memoryview
END_OF_STREAM = "[DONE]"
_FIELDS = ("data:", "event:", "id:", "retry:", ":")
_FIRST_LINE = re.compile(r"(data|event|id|retry):|:")


def looks_like_sse(chunk: RawChunk) -> bool:
    """Return whether a first chunk begins and ends like server-sent events."""
    text = as_text(chunk)
    return _FIRST_LINE.match(text) is not None and text.endswith("\n")


def may_become_sse(chunk: RawChunk) -> bool:
    """Return whether a first chunk, which may be cut anywhere, begins like a server-sent event."""
    text = as_text(chunk).lstrip("\r\n")
    return any(text.startswith(field) or field.startswith(text) for field in _FIELDS)


class ChunkReader:
    """Passes chunks on unchanged."""

    def feed(self, chunk: RawChunk) -> Sequence[RawChunk]:
        """Read a chunk, and return the parts that are complete."""
        return (chunk,)

    def close(self) -> Sequence[RawChunk]:
        """Return the remaining parts."""
        return ()


class TextReader(ChunkReader):
    """Decodes chunks as UTF-8."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, chunk: RawChunk) -> Sequence[str]:
        return (chunk if isinstance(chunk, str) else self._decoder.decode(bytes(chunk)),)

    def close(self) -> Sequence[str]:
        return (self._decoder.decode(b"", final=True),)


class EventReader(TextReader):
    """Returns the data of each complete server-sent event, except the end-of-stream marker."""

    def __init__(self) -> None:
        super().__init__()
        self._rest = ""
        self._data: list[str] = []

    def feed(self, chunk: RawChunk) -> Sequence[str]:
        (text,) = super().feed(chunk)
        *lines, self._rest = (self._rest + text).replace("\r\n", "\n").split("\n")
        events = []
        for line in lines:
            name, _, value = line.partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
            elif not line:  # ends the event
                data, self._data = "\n".join(self._data), []
                if data and data != END_OF_STREAM:
                    events.append(data)
        return events

    def close(self) -> Sequence[str]:
        return self.feed("\n\n")
