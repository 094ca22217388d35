"""Fixtures shared with the tests of the dashboard: a database whose clock stands at the end of a seeded week."""

from __future__ import annotations

from tests.dashboard.conftest import store  # noqa: F401 - a fixture
