"""The texts of a stream, wherever its chunks are cut: in the middle of a character, or of a server-sent event."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

from germane.tracer.text import as_text

Textual = str | bytes | bytearray | memoryview
END_OF_STREAM = "[DONE]"
_FIELDS = ("data:", "event:", "id:", "retry:", ":")
_FIRST_LINE = re.compile(r"(data|event|id|retry):|:")


def looks_framed(chunk: Textual) -> bool:
    """Whether a first chunk begins and ends as server-sent events do."""
    text = as_text(chunk)
    return _FIRST_LINE.match(text) is not None and text.endswith("\n")


def may_be_framed(chunk: Textual) -> bool:
    """Whether a first chunk begins as a server-sent event does, as far as it goes."""
    text = as_text(chunk).lstrip("\r\n")
    return any(text.startswith(field) or field.startswith(text) for field in _FIELDS)


class Chunks:
    """Takes the chunks of a stream as they are."""

    def feed(self, chunk: Textual) -> Sequence[Textual]:
        """Take a chunk; return the parts that are complete."""
        return (chunk,)

    def close(self) -> Sequence[Textual]:
        """Return the part that was left."""
        return ()


class Texts(Chunks):
    """Makes text of the chunks: bytes are UTF-8."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, chunk: Textual) -> Sequence[str]:
        return (chunk if isinstance(chunk, str) else self._decoder.decode(bytes(chunk)),)

    def close(self) -> Sequence[str]:
        return (self._decoder.decode(b"", final=True),)


class Frames(Texts):
    """Returns the data of each server-sent event that is complete, but not the mark of the end."""

    def __init__(self) -> None:
        super().__init__()
        self._rest = ""
        self._data: list[str] = []

    def feed(self, chunk: Textual) -> Sequence[str]:
        (text,) = super().feed(chunk)
        *lines, self._rest = (self._rest + text).replace("\r\n", "\n").split("\n")
        return [data for line in lines if (data := self._take(line)) not in {None, END_OF_STREAM}]

    def close(self) -> Sequence[str]:
        return self.feed("\n\n")

    def _take(self, line: str) -> str | None:
        if line:
            name, _, value = line.partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
            return None
        data, self._data = "\n".join(self._data), []
        return data or None
