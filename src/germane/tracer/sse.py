"""Detection of server-sent events, and extraction of their data from arbitrarily split chunks."""

from __future__ import annotations

import codecs
import re

from germane.tracer.text import as_text

Event = tuple[str, str]
"""The data and the name of a complete server-sent event. The name is empty if the event has none."""
RawChunk = str | bytes | bytearray | memoryview
END_OF_STREAM = "[DONE]"
_FIELDS = ("data:", "event:", "id:", "retry:", ":")
_MAX_FIELD_LENGTH = max(map(len, _FIELDS))
_LINE = re.compile(r"(?:data|event|id|retry)(?::|$)|:")


def may_become_sse(chunk: RawChunk) -> bool:
    """Return whether a stream's first chunk, which may end anywhere, begins like a server-sent event."""
    text = as_text(chunk).lstrip("\ufeff\r\n")
    return _may_become_line(text.splitlines()[0] if text else "")


def _may_become_line(start: str) -> bool:
    return any(start.startswith(field) or field.startswith(start) for field in _FIELDS)


class EventReader:
    """Extracts each complete server-sent event with data, except the end-of-stream marker."""

    def __init__(self) -> None:
        self.is_valid = True
        """Whether all lines so far are valid in server-sent events. The reader ignores invalid lines."""
        self.is_confirmed = False
        """Whether the stream has contained at least one complete event with data."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line: list[str] = []
        """The pieces of the unfinished line. Joining them for each chunk would take quadratic time."""
        self._line_start = ""
        """The first characters of the unfinished line, which determine whether it may be part of an event."""
        self._data: list[str] | None = None
        self._name = ""
        self._ignored_start = "\ufeff"

    def feed(self, chunk: RawChunk) -> list[Event]:
        """Process a chunk, and return the events that it completes."""
        text = chunk if isinstance(chunk, str) else self._decoder.decode(bytes(chunk))
        if not text:
            return []
        text = text.removeprefix(self._ignored_start)  # a byte order mark, or the second half of a line break
        self._ignored_start = "\n" if text.endswith("\r") else ""
        end, *lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._line.append(end)
        if lines:
            lines.insert(0, "".join(self._line))
            start = lines.pop()
            self._line, self._line_start = [start], start[:_MAX_FIELD_LENGTH]
        elif len(self._line_start) < _MAX_FIELD_LENGTH:
            self._line_start += end[:_MAX_FIELD_LENGTH]
        else:
            return []
        self.is_valid = self.is_valid and _may_become_line(self._line_start)
        events = filter(None, map(self._read_line, lines))
        return [(data, name) for data, name in events if data not in {"", END_OF_STREAM}]

    def close(self) -> list[Event]:
        """Return the last event, which may lack its final empty line, as a list of zero or one items."""
        return self.feed("\n\n")

    def _read_line(self, line: str) -> Event | None:
        """Process a line. Return the event if the line ends one with data."""
        if line:
            self.is_valid = self.is_valid and _LINE.match(line) is not None
            name, _, value = line.partition(":")
            if name == "data":
                self._data = [] if self._data is None else self._data
                self._data.append(value.removeprefix(" "))
            elif name == "event":
                self._name = value.strip()
            return None
        name, self._name = self._name, ""
        if self._data is None:
            return None
        self.is_confirmed = True
        data, self._data = "\n".join(self._data), None
        return data, "" if name == "message" else name
