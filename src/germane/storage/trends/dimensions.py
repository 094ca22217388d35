"""Dimensions by which trends can be broken down in addition to the route: model, prompt version and attributes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Table, Text, case, cast, func, literal_column, select

from germane.errors import UsageError
from germane.storage.db.tables import exchange, rollup, rollup_dimension

ROUTE: Final = "route"
PLAIN: Final = ("model", "prompt_version")
ATTRIBUTE: Final = re.compile(r"attributes\.([A-Za-z0-9_][A-Za-z0-9_.:-]{0,99})")
NAMED: Final = rollup_dimension.c.name > literal_column("''")
"""SQL condition that selects all dimensions through their index."""
MAX_LABEL_LENGTH: Final = 200
"""Maximum number of characters in a label. Longer labels are truncated."""
LABEL: Final = "group_label"
"""Name of the label column. Scores have a ``label`` column with a different meaning."""


def label_expression(dimension: str, dialect: str) -> ColumnElement[str]:
    """Return the SQL expression for an exchange's label, which is empty if the exchange has no value.

    Raises:
        UsageError: The dimension is unknown.
    """
    named = ATTRIBUTE.fullmatch(dimension)
    if named is None and dimension not in PLAIN:
        known = "route, service, model, prompt_version or attributes.NAME"
        raise UsageError(f"unknown dimension {dimension!r}; use {known}")
    # Use literals, because PostgreSQL cannot group by parameters. The pattern for names excludes quotation marks.
    value: ColumnElement[Any]
    if named is None:
        value = exchange.c[dimension]
    elif dialect == "sqlite":
        path = literal_column(f"""'$."{named[1]}"'""", Text)
        kind = func.json_type(exchange.c.attributes, path)
        text = cast(func.json_extract(exchange.c.attributes, path), Text)
        value = case((kind.in_(["true", "false"]), kind), else_=text)
    else:
        value = func.jsonb_extract_path_text(exchange.c.attributes, literal_column(f"'{named[1]}'", Text))
    return func.coalesce(func.substr(value, 1, MAX_LABEL_LENGTH), "").label(LABEL)


def rolled_dimensions(connection: Connection) -> tuple[str, ...]:
    """Return the dimensions that the rollups include."""
    query = select(rollup_dimension.c.name).where(NAMED).order_by(rollup_dimension.c.name)
    return tuple(connection.execute(query).scalars())


def validate_dimensions(dimensions: Sequence[str]) -> tuple[str, ...]:
    """Validate dimensions, and return them sorted and without duplicates.

    Raises:
        UsageError: A dimension is unknown.
    """
    for dimension in dimensions:
        label_expression(dimension, "sqlite")
    return tuple(sorted(set(dimensions)))


def dimension_condition(table: Table, dimensions: Sequence[str]) -> ColumnElement[bool]:
    """Return the SQL condition that selects the given dimensions in a rollup table.

    It must precede the condition on the time, so that the index is used.
    """
    return table.c.dimension.in_(["", ROUTE, *(dimensions if table is rollup else ())])
