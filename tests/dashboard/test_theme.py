"""The theme, and the header and footer of every page."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient
from tests.cases import each
from tests.dashboard.http_server import client_for


def test_the_theme_can_be_chosen_without_javascript(page: TestClient) -> None:
    """A form stores the choice in a cookie and returns to the page."""
    answer = page.get("/theme?to=dark&back=/r/docs-search%3Fwindow%3D30d")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/r/docs-search?window=30d"
    assert "samesite=lax" in answer.headers["set-cookie"].lower()
    assert 'data-theme="dark"' in page.get("/r/docs-search").text
    page.get("/theme?to=auto")
    assert "data-theme=" not in page.get("/r/docs-search").text.split("<head>")[0]


def test_the_theme_cookie_is_limited_to_the_dashboard(page: TestClient) -> None:
    """The cookie's path is the mount prefix, and it is marked as secure over HTTPS."""
    mounted = client_for(Starlette(routes=[Mount("/germane", page.app)]), scheme="https")
    answer = mounted.get("/germane/theme?to=dark&back=/alerts")
    assert answer.headers["location"] == "/germane/alerts"
    assert "; Path=/germane; " in answer.headers["set-cookie"]
    assert answer.headers["set-cookie"].endswith("; Secure")


@each(
    "back",
    ["//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil.example", "///evil.example", "/\r\nx"],
)
def test_choosing_a_theme_redirects_only_within_the_dashboard(page: TestClient, back: str) -> None:
    """The return path is a path of the dashboard."""
    location = page.get("/theme", params={"to": "dark", "back": back}).headers["location"]
    assert location.startswith("/")
    assert not location.startswith(("//", "/\\"))


def test_an_invalid_theme_falls_back_to_the_system_theme(page: TestClient) -> None:
    """Any invalid value in the cookie is ignored; an invalid value in the URL is an error."""
    cookie = {"cookie": 'germane_theme="><script>'}
    assert "data-theme=" not in page.get("/", headers=cookie).text.split("<head>")[0]
    assert page.get('/theme?to="><script>').status_code == 400


def test_every_page_shows_scoring_health_and_open_alerts(page: TestClient) -> None:
    """The footer shows the worker, data age, time zone and version; the header counts open alerts."""
    text = page.get("/r/docs-search", headers={"cookie": "germane_zone=Asia/Tokyo"}).text
    assert "worker running" in text
    assert "times in JST" in text
    assert 'data-zone="Asia/Tokyo"' in text
    assert '<span class="count">1<span class="hidden"> open</span></span>' in text
    assert text.count("<h1>") == 1
