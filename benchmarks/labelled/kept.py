"""A cache file of replies and vectors: interrupted runs resume, and no request is sent twice."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from germane.errors import ScoringError
from germane.exchange import Message
from germane.score import UnscoredReason
from germane.scorers import Reply, Vectors

_FENCE = re.compile(r"</?[a-z]+(?:[- ]\d+)?-([0-9a-f]{8,16})>")
_REPLY = TypeAdapter(Reply)
_TABLES = """
CREATE TABLE IF NOT EXISTS reply (key TEXT PRIMARY KEY, reply TEXT NOT NULL, seconds REAL NOT NULL);
CREATE TABLE IF NOT EXISTS failure (key TEXT PRIMARY KEY, reason TEXT NOT NULL, message TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS vector (key TEXT PRIMARY KEY, row BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS note (name TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS log (line TEXT PRIMARY KEY);
"""


class Kept:
    """The cache file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._base = sqlite3.connect(path, isolation_level=None, timeout=30)
        self._base.execute("PRAGMA journal_mode=WAL")
        self._base.execute("PRAGMA synchronous=NORMAL")
        self._base.executescript(_TABLES)

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def reply(self, key: str) -> tuple[Reply, float] | None:
        """Return a cached reply and its duration in seconds, or None.

        Raises:
            ScoringError: The request was made and failed permanently.
        """
        if found := self._one("SELECT reply, seconds FROM reply WHERE key = ?", key):
            return _REPLY.validate_json(found[0]), found[1]
        if failed := self._one("SELECT reason, message FROM failure WHERE key = ?", key):
            raise ScoringError(UnscoredReason(failed[0]), failed[1])
        return None

    def put(self, key: str, reply: Reply, seconds: float) -> None:
        """Store a reply."""
        text = _REPLY.dump_json(reply).decode()
        self._base.execute("INSERT OR REPLACE INTO reply VALUES (?, ?, ?)", (key, text, seconds))

    def put_failure(self, key: str, error: ScoringError) -> None:
        """Store the failure of a request, unless a retry may succeed."""
        if not error.reason.is_transient and error.reason is not UnscoredReason.JUDGE_REJECTED:
            self._base.execute("INSERT OR REPLACE INTO failure VALUES (?, ?, ?)", (key, error.reason, str(error)))

    def vector(self, key: str) -> Vectors | None:
        """Return a cached vector, or None."""
        found = self._one("SELECT row FROM vector WHERE key = ?", key)
        return np.frombuffer(found[0], dtype=np.float64) if found else None

    def put_vector(self, key: str, row: Vectors) -> None:
        """Store a vector."""
        self._base.execute("INSERT OR REPLACE INTO vector VALUES (?, ?)", (key, row.astype(np.float64).tobytes()))

    def note(self, name: str) -> str | None:
        """Return a note by name, or None."""
        found = self._one("SELECT text FROM note WHERE name = ?", name)
        return found[0] if found else None

    def notes(self, beginning: str) -> dict[str, str]:
        """Return the notes whose names have this prefix, by the rest of their names."""
        found = self._base.execute("SELECT name, text FROM note ORDER BY rowid")
        return {name.removeprefix(beginning): text for name, text in found if name.startswith(beginning)}

    def put_note(self, name: str, text: str) -> None:
        """Store a note."""
        self._base.execute("INSERT OR REPLACE INTO note VALUES (?, ?)", (name, text))

    def served(self, model: str) -> str | None:
        """Return the model name that the server reported, or None."""
        return self.note(f"served {model}")

    def put_served(self, model: str, name: str) -> None:
        """Store the model name that the server reported."""
        self.put_note(f"served {model}", name)

    def log(self) -> list[str]:
        """Return the log of runs, oldest first."""
        return [line for (line,) in self._base.execute("SELECT line FROM log ORDER BY rowid")]

    def put_log(self, line: str) -> None:
        """Add a run to the log."""
        self._base.execute("INSERT OR IGNORE INTO log VALUES (?)", (line,))

    def _one(self, query: str, key: str) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._base.execute(query, (key,)).fetchone()
        return found


def key_of(messages: Sequence[Message], options: Mapping[str, Any], *, model: str, run: int) -> str:
    """Return a request's cache key, without the random delimiter, which differs between processes.

    At temperature 0, the key does not include the number of the run either.
    """
    texts = [message.content for message in messages]
    fences = {fence for text in texts for fence in _FENCE.findall(text)}
    for fence in sorted(fences):
        texts = [text.replace(fence, "fence") for text in texts]
    drawn = run if options.get("temperature") else 0
    turns = [[message.role, text] for message, text in zip(messages, texts, strict=True)]
    parts = json.dumps([model, turns, dict(options), drawn], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()


def key_of_text(text: str, *, model: str) -> str:
    """Return the cache key of a text's vector."""
    return hashlib.sha256(f"{model}\n{text}".encode("utf-8", "replace")).hexdigest()
