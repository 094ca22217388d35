"""Prompts are readable files beside this one: a version, then turns."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import cast

from germane.scorers.base.protocols import Message, Role

_TURN = re.compile(r"^--- (system|user|assistant)\n", re.MULTILINE)
_SECTION = re.compile(r"\{#(\w+)\}(.*?)\{/\1\}", re.DOTALL)
_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Prompt:
    """Turns with places to fill in."""

    version: str
    turns: tuple[Message, ...]
    text: str
    """The file as it is: part of the fingerprint."""

    def fill(self, **values: str) -> list[Message]:
        """Return the turns with each ``{name}`` replaced, and ``{#name}...{/name}`` left out where name is empty.

        What is filled in is not searched for places again.
        """

        def filled(text: str) -> str:
            kept = _SECTION.sub(lambda section: section[2] if values.get(section[1]) else "", text)
            return _PLACE.sub(lambda place: values.get(place[1], place[0]), kept)

        return [Message(turn.role, filled(turn.text)) for turn in self.turns]


@cache
def read_prompt(name: str) -> Prompt:
    """Return the prompt in ``prompts/<name>.txt``."""
    text = (files("germane.scorers.prompting") / "prompts" / f"{name}.txt").read_text(encoding="utf-8")
    head, *parts = _TURN.split(text)
    turns = tuple(
        Message(cast("Role", role), body.strip("\n")) for role, body in zip(parts[::2], parts[1::2], strict=True)
    )
    return Prompt(version=head.removeprefix("version:").strip(), turns=turns, text=text)


_KEY = secrets.token_bytes(16)


def fence_for(*texts: str) -> str:
    """Return eight hexadecimal digits that no author of the texts could know.

    Within one process the same for the same texts, so that identical requests can be recognised.
    """
    digest = hashlib.blake2b(key=_KEY, digest_size=4)
    for text in texts:
        digest.update(len(text).to_bytes(8))
        digest.update(text.encode("utf-8", "replace"))
    return digest.hexdigest()
