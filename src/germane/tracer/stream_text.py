"""The text of a stream, collected chunk by chunk."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Any

from germane.recognizers import continues
from germane.tracer.answers import is_sse
from germane.tracer.events import Piece
from germane.tracer.guard import guarded
from germane.tracer.pieces import Pieces
from germane.tracer.serialized import STRUCTURED, is_event, json_value, read_events
from germane.tracer.sse import EventReader, RawChunk, may_become_sse
from germane.tracer.text import as_text, json_strings

if TYPE_CHECKING:
    from germane.tracer.handler import Handler

_MAX_OVERHEAD = 32
"""Maximum length of a stream, including the events and JSON around its text, as a multiple of the maximum text length.
Chunks beyond this length are not read."""
_EVENTS_AT_ONCE = 200
"""Number of chunks of JSON that are decoded together."""


class StreamText:
    """Collects the text of a stream of objects, plain text, JSON documents or server-sent events.

    A stream is read as server-sent events if its content type says so, or if it has no content type (``is_sse`` is
    None) and consists of complete, valid events. It is read as JSON if it consists of JSON objects. While this is
    uncertain, the chunks are kept, so that no text is lost if the stream is plain text. If they reach the maximum
    length without a complete event, the stream is treated as plain text. Problems with chunks are appended to
    ``problems``.
    """

    def __init__(self, handler: Handler, limit: int, problems: list[str], *, is_sse: bool | None) -> None:
        self._pieces = Pieces()
        self._handler = handler
        self._limit = limit
        self._problems = problems
        self._declares_sse = is_sse is True
        self._detects_sse = handler.detects_sse if is_sse is None else is_sse
        self._received = 0
        self._uncertain: list[RawChunk] | None = None
        self._uncertain_length = 0
        self._events: EventReader | None = None
        self._json: list[str] | None = None
        """The parts of a text that may consist of JSON objects, which are decoded at the end."""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._objects: list[str] = []
        """JSON objects in a stream of text, which are part of the text if it continues."""
        self._has_prose = False
        self._is_started = self._has_other_chunks = self._has_events = False

    @property
    def has_chunks(self) -> bool:
        """Whether the stream contained a non-empty chunk."""
        return self._received > 0 or self._has_other_chunks

    def texts(self) -> list[str]:
        """Return the texts of the chunks received so far that are parts of the answer."""
        texts = self._pieces.texts()
        return (json_strings(texts) if self._has_events or self._events is not None else None) or texts

    @property
    def error(self) -> str | None:
        """The description of the error event at the end of the stream, if any."""
        return self._pieces.error

    def add(self, chunk: Any) -> None:
        """Add a chunk, up to the maximum length."""
        received = self._received - self._pieces.replaced
        if self._pieces.length >= self._limit or received >= self._limit * _MAX_OVERHEAD:
            return
        if not issubclass(type(chunk), str | bytes | bytearray | memoryview):
            self._has_other_chunks = True
            self._read_json()
            self._has_events = self._has_events or is_sse(chunk)
            self._add_piece(chunk)
            return
        if not chunk:
            return
        self._received += len(chunk)
        if not self._is_started:  # the first chunk decides whether the stream may contain events or JSON
            self._is_started = True
            if self._detects_sse and may_become_sse(chunk):
                self._events, self._uncertain = EventReader(), []
            elif self._handler.detects_sse and as_text(chunk[:1]) in STRUCTURED:
                self._json = []
        if self._events is None:
            self._add_plain(chunk)
        else:
            self._add_events(self._events, chunk)

    def _add_events(self, events: EventReader, chunk: RawChunk) -> None:
        """Add the data of the events in a chunk, unless the stream turns out to be plain text."""
        if self._uncertain is not None and self._uncertain_length < self._limit:
            self._uncertain.append(chunk)
            self._uncertain_length += len(chunk)
        parts = events.feed(chunk)
        is_decided = self._declares_sse or events.is_confirmed or self._uncertain_length < self._limit
        if self._uncertain is not None and not (events.is_valid and is_decided):
            self._revert_to_plain()
            return
        for event in parts:
            self._add_piece(*event)
        if self._declares_sse and events.is_confirmed:
            self._uncertain = None

    def close(self, *, is_complete: bool) -> None:
        """Process the remaining data. The last event of an incomplete stream is dropped."""
        events = self._events
        if events is None:
            if self._decoder is not None and is_complete:
                self._add_text(self._decoder.decode(b"", final=True))
            self._read_json()
            return
        is_sse = self._declares_sse or events.is_confirmed
        for event in events.close() if is_complete and is_sse else ():
            guarded(self._handler.on_chunk, self._add_piece, *event, problems=self._problems)
        if self._uncertain is not None and not (events.is_valid and is_sse):
            self._revert_to_plain()

    def _revert_to_plain(self) -> None:
        """Process the chunks again as plain text, because they are not server-sent events."""
        chunks, self._uncertain, self._events = self._uncertain or (), None, None
        self._pieces = Pieces()
        for chunk in chunks:
            guarded(self._handler.on_chunk, self._add_plain, chunk, problems=self._problems)

    def _add_plain(self, chunk: RawChunk) -> None:
        if isinstance(chunk, str):
            self._add_text(chunk)
        elif self._handler.find_chunk is not None and self._json is None:
            self._add_piece(chunk)
        else:
            if self._decoder is None:
                self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
            self._add_text(self._decoder.decode(bytes(chunk)))

    def _add_text(self, text: str) -> None:
        if self._json is not None:
            self._json.append(text)
            if len(self._json) % _EVENTS_AT_ONCE == 0:
                self._read_json(is_last=False)
        elif text:
            self._add_prose(text)

    def _add_prose(self, text: str) -> None:
        """Add a chunk of text. A JSON object inside of prose is a part of it, unlike one before or after it."""
        is_object = text[0] in STRUCTURED and is_event(json_value(text))
        if is_object and self._handler.find_chunk is None:
            self._objects.append(text)
            return
        self._add_objects(is_text=self._has_prose or (text[0] != "\n" and continues(text)))
        self._has_prose = self._has_prose or not text.isspace()
        self._add_piece(text)

    def _add_objects(self, *, is_text: bool = False) -> None:
        objects, self._objects = self._objects, []
        for part in objects:
            if is_text:
                self._pieces.add(Piece(part))
            else:
                guarded(self._handler.on_chunk, self._add_piece, part, problems=self._problems)

    def _read_json(self, *, is_last: bool = True) -> None:
        """Process the text that may consist of JSON objects. If it does not, the rest of the stream is plain text."""
        parts = self._json or []
        events, rest = read_events("".join(parts), is_whole=is_last)
        self._json = [rest] if events and not is_last else None
        for part in events or filter(None, parts):
            add = self._add_prose if isinstance(part, str) else self._add_piece
            guarded(self._handler.on_chunk, add, part, problems=self._problems)
        if is_last:
            self._add_objects()

    def _add_piece(self, part: Any, event: str = "") -> None:
        piece = self._handler.piece(part, event)
        if piece is not None:
            self._pieces.add(piece)
