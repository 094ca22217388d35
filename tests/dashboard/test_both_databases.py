"""Pages over SQLite and PostgreSQL: the same week looks the same."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient
from tests.dashboard.conftest import Week
from tests.dashboard.seeding import SEARCH
from tests.dashboard.test_answers import FILTERS

ANSWERS = (
    *FILTERS,
    "sort=newest",
    "sort=highest",
    "sort=slowest",
    "state=any&sort=newest&text=the",
    "refusals=only",
    "refusals=hide",
    "user=user-90",
    "session=session-30",
    "attributes.tenant=acme",
    "attributes.beta=true",
)
GROUPS = ("", "&order=answers", "&order=mean", "&below=0.5", "&refusals=hide", "&text=the", "&route=docs-search")
PATHS = (
    "/",
    "/?window=24h",
    "/?since=2026-11-16T00:00&until=2026-11-19T12:00",
    "/?scorer=faithfulness",
    f"/r/{SEARCH}",
    f"/r/{SEARCH}?window=30d&scorer=context_relevance",
    *(f"/answers.json?window=24h&{query}" for query in ANSWERS),
    *(f"/answers?group=question{query}" for query in GROUPS),
    "/answers.csv?window=24h&sort=newest",
    "/answers.jsonl?window=24h&sort=newest",
    "/sessions/session-490",
    "/a/{answer}",
    "/a/{failed}",
    "/alerts",
    "/alerts/{open}",
    "/alerts/{resolved}",
    "/alerts/backtest?replay=drop",
    "/compare?since=2026-11-19T05:30",
    "/compare?by=prompt_version",
    "/compare?by=model&route=docs-search",
    "/usage",
    "/usage?window=24h",
    "/labels",
    "/views",
    "/traces/{trace}",
)

UNORDERED = ("/a/", "/alerts")
"""Pages with attributes or labels, whose order PostgreSQL does not keep."""


def shown(client: TestClient, week: Week, path: str) -> list[str]:
    """Return the elements of a page without tokens and without ids that differ between two weeks."""
    seeded = week.seeded
    ids = {
        "open": seeded.open_alert,
        "resolved": seeded.resolved_alert,
        "trace": seeded.unreadable_trace,
        "wave": seeded.wave,
    }
    ids["answer"] = seeded.exchanges[-90].id
    ids["failed"] = next(one.id for one in seeded.exchanges if one.error)
    response = client.get(path.format(**ids), headers={"Accept": "text/html"})
    assert response.status_code == 200, path
    text = response.text
    for name, id_ in ids.items():
        text = text.replace(id_, name)
    elements = re.sub('(name="(?:csrf|wave)" value=)"[^"]+"', r"\1", text).split("<")
    return sorted(elements) if path.startswith(UNORDERED) else elements


@pytest.mark.slow
def test_each_page_is_the_same_on_both_databases(
    sqlite_pages: TestClient, postgresql_pages: TestClient, shared_sqlite: Week, shared_postgresql: Week
) -> None:
    """Numbers, order and links do not depend on the database."""
    different = []
    for path in PATHS:
        pages = shown(sqlite_pages, shared_sqlite, path), shown(postgresql_pages, shared_postgresql, path)
        if pages[0] != pages[1]:
            different.append((path, [pair for pair in zip(*pages, strict=False) if pair[0] != pair[1]][:3]))

    assert different == []
