"""The databases of tests whose statements and locks do not depend on the database."""

from __future__ import annotations

import pytest

ON_SQLITE = pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)
POSTGRESQL_IS_THOROUGH = pytest.mark.parametrize(
    "migrated_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)], indirect=True
)
SQLITE_IS_THOROUGH = pytest.mark.parametrize(
    "migrated_url", [pytest.param("sqlite", marks=pytest.mark.thorough), "postgresql"], indirect=True
)
