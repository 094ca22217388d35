"""Query plans, with the indexes that they use and the large tables that they scan completely."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, event

from germane.storage import TrackingStore
from germane.testing import engine_of, transaction

LARGE = frozenset({"exchange", "score", "scoring_task", "tally", "rollup", "rollup_count", "rollup_proxy"})
PARTIAL = {"ix_exchange_unsampled", "ix_exchange_candidate", "ix_scoring_task_open", "ix_scoring_task_candidate"}
"""Partial indexes, which contain only a few rows: waiting exchanges and tasks."""
MANY = 100_000
"""Minimum number of rows of a large table. PostgreSQL's planner knows the number of rows, so scans of smaller tables
are ignored there."""


@dataclass(frozen=True)
class Plan:
    """One statement's plan."""

    indexes: frozenset[str]
    scans: frozenset[str]
    """Large tables that are scanned completely."""


def plans_of(store: TrackingStore, work: Callable[[], object]) -> list[Plan]:
    """Run ``work``, and return the plan of each statement that it executes."""
    statements: dict[str, tuple[Any, bool]] = {}

    def note(connection: Connection, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:  # noqa: FBT001
        options = connection.get_execution_options()
        statements.setdefault(statement, (parameters, options.get("isolation_level") == "REPEATABLE READ"))

    engine = engine_of(store)
    event.listen(engine, "before_cursor_execute", note)
    work()
    event.remove(engine, "before_cursor_execute", note)
    found = []
    for statement, (parameters, snapshot) in statements.items():
        if re.match(r"\s*(SELECT|WITH)", statement):
            with transaction(store, read_only=True, snapshot=snapshot) as connection:
                explain = _on_sqlite if connection.dialect.name == "sqlite" else _on_postgresql
                found.append(explain(connection, statement, parameters))
    return found


def _on_sqlite(connection: Connection, statement: str, parameters: Any) -> Plan:
    steps = [row.detail for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
    names, scans = set(), set()
    for step in steps:
        kind, table = f"{step} -".split()[:2]
        index = re.search(r"USING (?:COVERING )?INDEX (\S+)", step)
        if index:
            names.add(index[1])
        elif "PRIMARY KEY" in step:
            names.add(f"{table}'s key")
        if kind == "SCAN" and table in LARGE and not (index and ("LIMIT" in statement or index[1] in PARTIAL)):
            scans.add(table)
    return Plan(frozenset(names), frozenset(scans))


def _on_postgresql(connection: Connection, statement: str, parameters: Any) -> Plan:
    (found,) = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).scalar_one()
    nodes = list(_nodes(found["Plan"]))
    names = {node["Index Name"] for node, _ in nodes if "Index Name" in node}
    whole = {node["Relation Name"] for node, limited in nodes if _reads_all(node, limited=limited)}
    return Plan(frozenset(names), frozenset(table for table in whole if _rows(connection, table) >= MANY))


def _nodes(plan: dict[str, Any], *, limited: bool = False) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield each node of a plan and whether a limit ends it early."""
    yield plan, limited
    limits = (limited and plan["Node Type"] not in {"Sort", "Aggregate", "Hash"}) or plan["Node Type"] == "Limit"
    for part in plan.get("Plans", []):
        yield from _nodes(part, limited=limits)


def _reads_all(node: dict[str, Any], *, limited: bool) -> bool:
    if node.get("Relation Name") not in LARGE or "Bitmap" in node["Node Type"]:
        return False
    by_index = limited or node.get("Index Name") in PARTIAL
    return "Index Cond" not in node and not ("Index Name" in node and by_index)


def _rows(connection: Connection, table: str) -> float:
    count = connection.exec_driver_sql(f"SELECT reltuples FROM pg_class WHERE relname = '{table}'").scalar_one()
    return float(count)
