"""The database fixtures from the dashboard tests."""

from __future__ import annotations

from tests.dashboard.conftest import backend, migrated_url, store  # noqa: F401 - fixtures
