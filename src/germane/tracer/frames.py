"""Server-sent events: the text inside the frames of a stream, wherever the chunks are cut."""

from __future__ import annotations

import re

_FIRST_LINE = re.compile(r"(data|event|id|retry):|:")
END_OF_STREAM = "[DONE]"


def looks_framed(chunk: str) -> bool:
    """Whether a first chunk begins as a server-sent event does."""
    return _FIRST_LINE.match(chunk) is not None and chunk.endswith("\n")


class Frames:
    """Takes the chunks of an event stream and returns the data of each event that is complete."""

    def __init__(self) -> None:
        self._rest = ""
        self._data: list[str] = []

    def feed(self, chunk: str) -> list[str]:
        """Take a chunk; return the data of the events it completes, without the mark of the end."""
        *lines, self._rest = (self._rest + chunk).replace("\r\n", "\n").split("\n")
        return [data for line in lines if (data := self._take(line)) not in {None, END_OF_STREAM}]

    def _take(self, line: str) -> str | None:
        if line:
            name, _, value = line.partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
            return None
        data, self._data = "\n".join(self._data), []
        return data or None
