"""Saved views on the dashboard: named links that everyone with access sees."""

from __future__ import annotations

import html
import re

from starlette.testclient import TestClient
from tests.cases import each
from tests.dashboard.conftest import BOTH, Week
from tests.dashboard.form_helpers import submit_form
from tests.dashboard.hostile import ROUTES, TEXTS
from tests.dashboard.page_client import open_dashboard
from tests.dashboard.seeding import NOW, SEARCH

from germane.annotation import SavedView
from germane.insights.formatting import route_path
from germane.storage import TrackingStore

FORM = "/views?path=/answers"


def save(page: TestClient, name: str, path: str, **fields: str) -> int:
    """Submit the form that saves a view, and return the status."""
    return submit_form(page, FORM, "/views/save", name=name, path=path, **fields).status_code


@each(
    "path",
    ["/", "/answers?sort=newest&text=a+b%26c", f"/r/{SEARCH}?window=24h", "/compare?by=model", "/worker", "/alerts"],
)
@BOTH
def test_every_page_can_be_saved_as_a_view_and_opened(own_page: TestClient, own_week: Week, path: str) -> None:
    """The link on the page leads to the form, and the view on the overview leads back to the page."""
    (link,) = re.findall(r'<a class="save" href="([^"]+)"', own_page.get(path).text)
    shown = own_page.get(html.unescape(link)).text
    found = re.search(r'name="path" value="([^"]+)"', shown)
    assert found is not None
    assert html.unescape(found[1]) == path
    response = submit_form(own_page, html.unescape(link), "/views/save", name=" My  view ", path=path, by="Ann")
    assert (response.status_code, response.headers["location"]) == (303, "/views")

    assert f'<a href="{html.escape(path)}" dir="auto">My view</a>' in own_page.get("/").text.replace("&#39;", "&#x27;")
    assert "by Ann" in own_page.get("/views").text
    (view,) = own_week.store.views.list_views()
    assert (view.path, view.created_at, view.created_by) == (path, NOW, "Ann")
    submit_form(own_page, "/views", "/views/delete", name="My view")
    assert "Saved views:" not in own_page.get("/").text


@each(
    "path",
    [
        "",
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "javascript:alert(1)",
        "/a b",
        "/\n",
        "/" + "x" * 500,
    ],
)
def test_only_paths_of_the_dashboard_can_be_saved(page: TestClient, week: Week, path: str) -> None:
    """A view must not lead to another site."""
    assert save(page, "Away", path) == 400
    assert week.store.views.list_views() == []
    assert path == "" or page.get("/views", params={"path": path}).status_code == 400


@each("name", ["", "  ", "x" * 81, "a\0b", "\u202ereversed", "\u200b"])
def test_the_name_of_a_view_must_be_short_and_printable(page: TestClient, week: Week, name: str) -> None:
    """Names with control characters could impersonate other views."""
    assert save(page, name, "/answers") == 400
    assert week.store.views.list_views() == []


@BOTH
def test_a_second_view_with_the_same_name_is_rejected(own_page: TestClient) -> None:
    """The error states the name and the next step."""
    assert save(own_page, "Low", "/answers?low=1") == 303
    response = submit_form(own_page, FORM, "/views/save", name="Low", path="/")

    assert response.status_code == 409
    assert "A view with the name &#39;Low&#39; already exists." in response.text


def test_hostile_view_names_are_escaped(own_page: TestClient) -> None:
    """The name and the display name are shown as text."""
    for name in (TEXTS["script"][:80], TEXTS["attribute"], TEXTS["template"][:80]):
        assert save(own_page, name, "/answers", by=TEXTS["script"]) == 303
    for path in ("/", "/views"):
        text = own_page.get(path).text
        assert "<script>window" not in text
        assert '" autofocus' not in text
        assert "{{ 7 * 7 }}" in html.unescape(text)


@each("name", ROUTES)
def test_pages_of_hostile_routes_can_be_saved(page: TestClient, week: Week, name: str) -> None:
    """The saved path leads to the same page, and never to another site."""
    page_of_route = page.get(route_path(name), headers={"Accept": "text/html"})
    (link,) = re.findall(r'<a class="save" href="([^"]+)"', page_of_route.text)
    shown = page.get(html.unescape(link))
    saved = re.search(r'name="path" value="([^"]+)"', shown.text)
    assert saved is not None
    assert page.get(html.unescape(saved[1]), headers={"Accept": "text/html"}).status_code == page_of_route.status_code


def test_foreign_paths_in_stored_views_are_not_linked(own_page: TestClient, own_week: Week) -> None:
    """An imported file may contain any path."""
    for number, path in enumerate(("//evil.example/", "javascript:alert(1)", "https://evil.example")):
        own_week.store.views.add_view(SavedView(name=f"v{number}", path=path, created_at=NOW))
    for shown in ("/", "/views"):
        assert "evil.example" not in own_page.get(shown).text
        assert "javascript:alert" not in own_page.get(shown).text


def test_a_read_only_dashboard_shows_views_without_forms(own_seeded: TrackingStore) -> None:
    """Visitors can open views, but not save or delete them."""
    own_seeded.views.add_view(SavedView(name="Low", path="/answers?low=1", created_at=NOW))
    with open_dashboard(own_seeded, read_only=True) as client:
        overview, views = client.get("/").text, client.get(FORM).text
        assert ">Low</a>" in overview
        assert 'class="save"' not in overview
        assert '<form method="post"' not in views
        assert client.post("/views/delete", data={"name": "Low"}).status_code == 403


def test_forms_for_saved_views_need_a_csrf_token(page: TestClient, week: Week) -> None:
    """Another site cannot save or delete a view."""
    for path in ("/views/save", "/views/delete"):
        assert page.post(path, data={"name": "Low", "path": "/"}).status_code == 403
    assert week.store.views.list_views() == []


def test_the_overview_stays_small_with_many_views(own_page: TestClient, own_week: Week) -> None:
    """It lists twelve views, and links to the page with all of them."""
    for number in range(200):
        own_week.store.views.add_view(SavedView(name=f"{number:03d}" + "x" * 77, path="/answers", created_at=NOW))
    text = own_page.get("/").text

    assert "and 188 more" in text
    assert len(own_page.get("/views").content) < 200_000
