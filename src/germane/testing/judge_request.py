"""Requests received by a fake judge."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_DELIMITED = re.compile(r"<([a-z]+)-([0-9a-f]+)>\n(.*?)\n?</\1-\2>", re.DOTALL)
_QUESTION_PROPERTIES = ({"question"}, {"question", "noncommittal"})


class JudgeRequest(NamedTuple):
    """A request received by a fake judge."""

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str]
    """The HTTP headers, with lowercase names."""
    query: str = ""
    """The query string of the URL."""

    @property
    def texts(self) -> list[str]:
        """The messages in a chat request, without their roles."""
        return [str(message.get("content")) for message in self.body.get("messages", ())]

    @property
    def text(self) -> str:
        """The messages of a chat request, joined with line breaks."""
        return "\n".join(self.texts)

    @property
    def answer(self) -> str:
        """The answer that the request is about.

        It is taken from the last message that has delimited sections: the section named ``answer``, or else the first
        section. If no message has sections, it is the whole last message.
        """
        for message in reversed(self.texts):
            sections = dict(_sections(message))
            if sections:
                return sections.get("answer") or next(iter(sections.values()))
        return self.texts[-1] if self.texts else ""

    def section(self, name: str) -> str | None:
        """Return the text of the last delimited section with this name, such as ``question``, or None."""
        texts = [text for message in self.texts for label, text in _sections(message) if label == name]
        return texts[-1] if texts else None

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The JSON schema of the requested reply; None if there is none."""
        json_schema = (self.body.get("response_format") or {}).get("json_schema") or {}
        schema = json_schema.get("schema")
        return schema if isinstance(schema, Mapping) else None

    @property
    def n(self) -> int:
        """The number of requested choices."""
        return int(self.body.get("n") or 1)

    @property
    def is_single_token(self) -> bool:
        """Whether the reply is limited to one token."""
        return 1 in (self.body.get("max_tokens"), self.body.get("max_completion_tokens"))

    @property
    def asks_for_rating(self) -> bool:
        """Whether the reply must be a digit: the request asks for one, or the reply is limited to one token."""
        return self.is_single_token or "Reply with one digit" in self.text

    @property
    def asks_for_questions(self) -> bool:
        """Whether the reply must be JSON with one generated question or a list of them."""
        if self.schema is None:
            return '{"question' in self.text
        return _is_question(self.schema) or self.asks_for_question_list

    @property
    def asks_for_question_list(self) -> bool:
        """Whether one choice must contain all generated questions."""
        if self.schema is None:
            return '{"questions"' in self.text
        return _is_question((self.schema.get("properties", {}).get("questions") or {}).get("items"))

    @property
    def asks_for_votes(self) -> bool:
        """Whether the reply must also state, for each question, whether the answer is noncommittal."""
        return '"noncommittal"' in (self.text if self.schema is None else json.dumps(self.schema))

    @property
    def numbered_questions(self) -> int:
        """The number of questions to compare with the original one."""
        return len((self.section("questions") or "").splitlines())


def _sections(message: str) -> list[tuple[str, str]]:
    return [(match[1], match[3]) for match in _DELIMITED.finditer(message)]


def _is_question(schema: Any) -> bool:
    return isinstance(schema, Mapping) and set(schema.get("properties", ())) in _QUESTION_PROPERTIES
