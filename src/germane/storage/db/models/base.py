"""The base class of the tables."""

from __future__ import annotations

from sqlalchemy.orm import registry
from sqlmodel import SQLModel


class Base(SQLModel, registry=registry()):
    """Base class with its own registry, which keeps the tables separate from the application's SQLModel tables."""
