"""The store fixture from the dashboard tests."""

from __future__ import annotations

from tests.dashboard.conftest import store  # noqa: F401 - a fixture
