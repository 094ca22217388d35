"""The base class of the tables, and partial indexes."""

from __future__ import annotations

from sqlalchemy import Index, text
from sqlalchemy.orm import registry
from sqlmodel import SQLModel


class Base(SQLModel, registry=registry()):
    """Base class with its own registry, which keeps the tables separate from the application's SQLModel tables."""


def partial_index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """Return an index of the rows for which an SQL condition holds."""
    return Index(name, *columns, unique=unique, sqlite_where=text(where), postgresql_where=text(where))
