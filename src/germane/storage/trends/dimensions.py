"""What trends may be broken down by beside the route: the model, the version of the prompt, attributes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Text, case, cast, func, literal_column, select

from germane.errors import UsageError
from germane.storage.db.tables import exchange, rollup_dimension

ROUTE: Final = "route"
PLAIN: Final = ("model", "prompt_version")
ATTRIBUTE: Final = re.compile(r"attributes\.([A-Za-z0-9_][A-Za-z0-9_.:-]{0,99})")
NAMED: Final = rollup_dimension.c.name > literal_column("''")
"""All dimensions, by their index."""
LONGEST: Final = 200
"""Characters of a label that are told apart."""
LABEL: Final = "group_label"
"""What the column is called: scores have a label of another kind."""


def label_of(dimension: str, dialect: str) -> ColumnElement[str]:
    """Return the label of an exchange as an expression; empty where it has none.

    Raises:
        UsageError: there is no such dimension.
    """
    named = ATTRIBUTE.fullmatch(dimension)
    if named is None and dimension not in PLAIN:
        known = "route, service, model, prompt_version or attributes.NAME"
        raise UsageError(f"there is no dimension {dimension!r}: it is {known}")
    value: ColumnElement[Any] = exchange.c[dimension] if named is None else _attribute(named[1], dialect)
    return func.coalesce(func.substr(value, 1, LONGEST), "").label(LABEL)


def _attribute(name: str, dialect: str) -> ColumnElement[Any]:
    if dialect != "sqlite":
        return func.jsonb_extract_path_text(exchange.c.attributes, literal_column(f"'{name}'", Text))
    # Written out, as PostgreSQL needs it where rows are grouped by it; the pattern lets no quotation mark through.
    path = literal_column(f"""'$."{name}"'""", Text)
    kind = func.json_type(exchange.c.attributes, path)
    return case((kind.in_(["true", "false"]), kind), else_=cast(func.json_extract(exchange.c.attributes, path), Text))


def rolled(connection: Connection) -> tuple[str, ...]:
    """Return the dimensions that the rollups have."""
    query = select(rollup_dimension.c.name).where(NAMED).order_by(rollup_dimension.c.name)
    return tuple(connection.execute(query).scalars())


def checked(dimensions: Sequence[str]) -> tuple[str, ...]:
    """Return dimensions sorted, each once.

    Raises:
        UsageError: one of them is none.
    """
    for dimension in dimensions:
        label_of(dimension, "sqlite")
    return tuple(sorted(set(dimensions)))
