"""Fixtures shared with the monitor tests: databases, judges and running monitors."""

from __future__ import annotations

from tests.monitor.conftest import (  # noqa: F401 - fixtures
    attached,
    judge,
    new_exchange,
    other_store,
    settings,
    start,
    start_judged,
    store,
    until,
    url,
)
