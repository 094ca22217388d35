"""Columns of tables, written as text such as ``id text key, answer text null, weight float = 1``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Column


def parse_columns(text: str, types: Mapping[str, Any]) -> list[Column[Any]]:
    """Return the columns that a text describes, which are separated by commas.

    Each has a name, a type, and options: ``key`` if it is part of the primary key, ``null`` if it may be null, and
    ``= VALUE`` for its default on the server. Released migrations contain such texts, so their meaning must not change.
    """
    columns: list[Column[Any]] = []
    for part in text.split(","):
        declaration, _, default = part.partition("=")
        name, type_name, *options = declaration.split()
        columns.append(
            Column(
                name,
                types[type_name],
                primary_key="key" in options,
                nullable="null" in options,
                server_default=default.strip() or None,
            )
        )
    return columns
