"""Light and dark, and what stands around every page."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient
from tests.dashboard.http_server import knocking


def test_a_theme_is_chosen_without_the_script(page: TestClient) -> None:
    """A form remembers the choice in a cookie and leads back to where the visitor was."""
    answer = page.get("/theme?to=dark&back=/r/docs-search%3Fwindow%3D30d")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/r/docs-search?window=30d"
    assert "samesite=lax" in answer.headers["set-cookie"].lower()
    assert 'data-theme="dark"' in page.get("/r/docs-search").text
    page.get("/theme?to=auto")
    assert "data-theme=" not in page.get("/r/docs-search").text.split("<head>")[0]


def test_a_theme_is_of_these_pages_alone(page: TestClient) -> None:
    """Mounted, the cookie stays under the prefix; over https it goes nowhere else; and so the way back."""
    mounted = knocking(Starlette(routes=[Mount("/germane", page.app)]), scheme="https")
    answer = mounted.get("/germane/theme?to=dark&back=/alerts")
    assert answer.headers["location"] == "/germane/alerts"
    assert "; Path=/germane; " in answer.headers["set-cookie"]
    assert answer.headers["set-cookie"].endswith("; Secure")


@pytest.mark.parametrize(
    "back",
    ["//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil.example", "///evil.example", "/\r\nx"],
)
def test_nobody_is_led_elsewhere(page: TestClient, back: str) -> None:
    """The way back is a path of these pages."""
    location = page.get("/theme", params={"to": "dark", "back": back}).headers["location"]
    assert location.startswith("/")
    assert not location.startswith(("//", "/\\"))


def test_a_theme_that_is_none_is_that_of_the_system(page: TestClient) -> None:
    """Whatever stands in the address or the cookie."""
    assert page.get('/theme?to="><script>').cookies["germane_theme"] == "auto"


def test_every_page_says_how_scoring_does_and_what_is_open(page: TestClient) -> None:
    """Worker, age of the data, zone and version at the foot; the count of open alerts in the bar."""
    text = page.get("/r/docs-search", headers={"cookie": "germane_zone=Asia/Tokyo"}).text
    assert "worker running" in text
    assert "times in JST" in text
    assert 'data-zone="Asia/Tokyo"' in text
    assert '<span class="count">1<span class="hidden"> open</span></span>' in text
    assert text.count("<h1>") == 1
