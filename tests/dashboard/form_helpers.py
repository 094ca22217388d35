"""Forms on a page, submitted as by a browser."""

from __future__ import annotations

import re

import httpx2
from starlette.testclient import TestClient


def csrf_token_of(page: TestClient, shown_at: str) -> str:
    """Return the CSRF token of the forms on a page."""
    shown = page.get(shown_at, headers={"Accept": "text/html"})
    found = re.search(r'name="csrf" value="([^"]+)"', shown.text)
    assert found is not None, shown.text
    return found[1]


def submit_form(page: TestClient, shown_at: str, to: str, **fields: str) -> httpx2.Response:
    """Open a page and submit one of its forms."""
    return page.post(to, data={**fields, "csrf": csrf_token_of(page, shown_at)}, headers={"Accept": "text/html"})
