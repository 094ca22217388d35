"""What a fake judge was asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_MARKED = re.compile(r"<([a-z]+)-([0-9a-f]+)>\n(.*?)\n?</\1-\2>", re.DOTALL)


class Request(NamedTuple):
    """One request as it came."""

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str]
    """Names in lower case."""
    query: str = ""
    """What stood behind the path's question mark."""

    @property
    def texts(self) -> list[str]:
        """The turns of a chat request, without their roles."""
        return [str(message.get("content")) for message in self.body.get("messages", ())]

    @property
    def text(self) -> str:
        """All turns, one after another."""
        return "\n".join(self.texts)

    @property
    def answer(self) -> str:
        """The text that the judge was asked about: the answer between its marks, else what any marks hold, else all.

        The last turn that has marks counts, then the last turn.
        """
        for turn in reversed(self.texts):
            marked = dict(_marked(turn))
            if marked:
                return marked.get("answer") or next(iter(marked.values()))
        return self.texts[-1] if self.texts else ""

    def between(self, name: str) -> str | None:
        """Return what the last pair of marks of that name holds, such as ``question``; None when there is none."""
        found = [text for turn in self.texts for word, text in _marked(turn) if word == name]
        return found[-1] if found else None

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The JSON schema that the reply is to follow."""
        wanted = (self.body.get("response_format") or {}).get("json_schema") or {}
        schema = wanted.get("schema")
        return schema if isinstance(schema, Mapping) else None

    @property
    def choices(self) -> int:
        """How many choices are asked for."""
        return int(self.body.get("n") or 1)

    @property
    def one_token(self) -> bool:
        """Whether the reply may be no longer than a token."""
        return 1 in (self.body.get("max_tokens"), self.body.get("max_completion_tokens"))

    @property
    def wants_questions(self) -> bool:
        """Whether JSON with questions, or with one, is asked for."""
        if self.schema is None:
            return '{"question' in self.text
        return _holds_question(self.schema) or _holds_question(self._items("questions"))

    @property
    def wants_list(self) -> bool:
        """Whether all questions are asked for in one choice."""
        return '{"questions"' in self.text if self.schema is None else _holds_question(self._items("questions"))

    @property
    def compared(self) -> int:
        """How many numbered questions are to be compared with the one asked."""
        return len((self.between("questions") or "").splitlines())

    def _items(self, name: str) -> Any:
        return ((self.schema or {}).get("properties", {}).get(name) or {}).get("items")


def _marked(turn: str) -> Iterator[tuple[str, str]]:
    return ((found[1], found[3]) for found in _MARKED.finditer(turn))


def _holds_question(schema: Any) -> bool:
    return isinstance(schema, Mapping) and set(schema.get("properties", ())) in (
        {"question"},
        {"question", "noncommittal"},
    )
