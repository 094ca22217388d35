"""Access to the dashboard, display names, and response headers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.testclient import TestClient
from tests.cases import each
from tests.conftest import migrated_file
from tests.dashboard.form_helpers import csrf_token_of
from tests.dashboard.http_server import PAGE, TOKEN, client_for, create_dashboard

from germane.dashboard.auth.hosts import is_cross_site, is_from_this_machine, is_loopback, parse_host
from germane.errors import SettingsError
from germane.insights.context import InsightContext
from germane.storage import TrackingStore

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
EVIL = "evil.example"


@pytest.fixture
def store(tmp_path_factory: pytest.TempPathFactory, bare: Path) -> Iterator[TrackingStore]:
    """A migrated, empty SQLite database; these tests do not depend on the type of database."""
    with closing(TrackingStore(f"sqlite:///{migrated_file(tmp_path_factory.getbasetemp())}")) as opened:
        yield opened


def bearer(token: str = TOKEN) -> dict[str, str]:
    """Return the header in which programs send a token."""
    return {"Authorization": f"Bearer {token}"}


@each(
    ("path", "status"),
    [
        ("/", 200),
        ("/written", 200),
        ("/healthz", 200),
        ("/static/style.css", 200),
        ("/static/../app.py", 404),
        ("/nowhere", 404),
        ("/login", 303),
    ],
)
def test_every_response_carries_security_headers(store: TrackingStore, path: str, status: int) -> None:
    """Pages, files, errors and redirects forbid foreign scripts, frames, type sniffing and referrers."""
    answer = client_for(create_dashboard(store)).get(path, headers=PAGE)

    assert answer.status_code == status
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "server" not in answer.headers


def test_error_responses_carry_security_headers(store: TrackingStore) -> None:
    """401, 403 and 500 responses carry the same headers."""

    def fails(request: Request, context: InsightContext) -> Response:
        raise ValueError("what somebody asked")

    app = create_dashboard(store, fails, token=TOKEN)
    answers = [
        client_for(app).get("/"),
        client_for(app, EVIL).get("/"),
        TestClient(app, "http://127.0.0.1", raise_server_exceptions=False).get("/written", headers=bearer()),
    ]

    assert [one.status_code for one in answers] == [401, 403, 500]
    assert {one.headers["content-security-policy"] for one in answers} == {POLICY}
    assert {one.headers["cache-control"] for one in answers} == {"no-store"}
    assert "what somebody asked" not in answers[2].text


def test_versioned_static_files_are_cached_and_pages_are_not(store: TrackingStore) -> None:
    """A file without a version in its URL is revalidated with status 304."""
    page = client_for(create_dashboard(store))
    shown = page.get("/", headers=PAGE)
    address = shown.text.split('rel="stylesheet" href="')[1].split('"')[0]
    plain = page.get("/static/style.css")

    assert shown.headers["cache-control"] == "no-store"
    assert page.get(address).headers["cache-control"] == "public, max-age=31536000, immutable"
    assert page.get("/static/style.css?v=other").headers["cache-control"] == "no-cache"
    assert page.get("/static/style.css", headers={"If-None-Match": plain.headers["etag"]}).status_code == 304


@each("path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd"])
def test_static_paths_cannot_leave_the_static_folder(store: TrackingStore, path: str) -> None:
    """Every encoding of a parent path returns 404."""
    assert client_for(create_dashboard(store)).get(path).status_code == 404


@each("host", ["localhost", "localhost:8642", "LOCALHOST", "127.0.0.1", "127.9.9.9", "[::1]:1"])
def test_without_a_token_local_host_names_are_allowed(store: TrackingStore, host: str) -> None:
    """Any port is allowed, because a tunnel's port differs from the server's."""
    assert client_for(create_dashboard(store)).get("/written", headers={"Host": host}).status_code == 200


@each(
    "host", [EVIL, "localhost.evil.example", "127.0.0.1.nip.io", "10.0.0.1", "localhost@evil.example", "evil:80:80", ""]
)
def test_without_a_token_other_host_names_are_rejected(store: TrackingStore, host: str) -> None:
    """A page under a foreign name that resolves to this machine cannot read anything (DNS rebinding)."""
    answer = client_for(create_dashboard(store)).get("/written", headers={"Host": host} | PAGE)

    assert answer.status_code == 403
    assert "http://localhost" in answer.text
    assert EVIL not in answer.text


@each("client", ["10.0.0.7", "192.168.1.5", "2001:db8::1", "testclient", "::ffff:10.0.0.7"])
def test_without_a_token_remote_clients_are_rejected(store: TrackingStore, client: str) -> None:
    """Access is denied under every host name, and the message says how to allow it."""
    answer = client_for(create_dashboard(store), client=client).get("/written")

    assert answer.status_code == 403
    assert "token" in answer.text


@each("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "X-Forwarded-Host"])
def test_without_a_token_proxied_requests_are_rejected(store: TrackingStore, header: str) -> None:
    """A proxy on this machine may forward requests from anyone."""
    assert client_for(create_dashboard(store)).get("/written", headers={header: "10.0.0.7"}).status_code == 403


def test_the_liveness_probe_is_open_to_every_client(store: TrackingStore) -> None:
    """Probes may use any host name and address, and learn only that the process responds."""
    answer = client_for(create_dashboard(store, token=TOKEN), EVIL, "10.0.0.7").get("/healthz")

    assert (answer.status_code, answer.text) == (200, "ok\n")


def test_host_names_must_be_allowed_even_with_a_token(store: TrackingStore) -> None:
    """IP addresses are always allowed; names must be configured."""
    configured, unconfigured = (
        create_dashboard(store, token=TOKEN, hosts=["germane.example"]),
        create_dashboard(store, token=TOKEN),
    )

    assert (
        client_for(configured, "Germane.Example:443", "10.0.0.7").get("/written", headers=bearer()).status_code == 200
    )
    assert client_for(unconfigured, "10.0.0.1", "10.0.0.7").get("/written", headers=bearer()).status_code == 200
    refused = client_for(unconfigured, "germane.example", "10.0.0.7").get("/written", headers=bearer())
    assert refused.status_code == 403
    assert "--allowed-host" in refused.text


def test_a_trusted_mount_leaves_access_control_to_the_application(store: TrackingStore) -> None:
    """With ``trusted``, the application authenticates; without it, only local clients have access."""

    def mounted(**given: Any) -> TestClient:
        return client_for(
            Starlette(routes=[Mount("/germane", create_dashboard(store, **given))]), "app.example", "10.0.0.7"
        )

    assert mounted().get("/germane/written").status_code == 403
    assert mounted(trusted=True).get("/germane/written").status_code == 200
    assert mounted(trusted=True, token=TOKEN).get("/germane/written").status_code == 401
    assert mounted(trusted=True, hosts=["other.example"]).get("/germane/written").status_code == 403


def test_links_and_cookies_keep_the_prefix_under_which_the_dashboard_is_mounted(store: TrackingStore) -> None:
    """Every link and file of a mounted page starts with the prefix, and cookies are limited to it."""
    app = Starlette(routes=[Mount("/germane", create_dashboard(store, token=TOKEN))])
    page = client_for(app)
    sent = page.get("/germane/answers?route=a", headers=PAGE)
    shown = page.get(sent.headers["location"], headers=PAGE)

    assert sent.headers["location"] == "/germane/login?next=%2Fanswers%3Froute%3Da"
    assert shown.status_code == 200
    links = [part.split('"')[0] for name in ("href", "src", "action") for part in shown.text.split(f'{name}="')[1:]]
    assert [link for link in links if not link.startswith(("/germane/", "#"))] == []
    assert "; Path=/germane; " in shown.headers["set-cookie"]


def test_urls_that_are_too_long_are_rejected(store: TrackingStore) -> None:
    """The limit of 4 kB is enough for all filters."""
    page = client_for(create_dashboard(store))

    assert page.get("/written", params={"text": "a" * 4_000}).status_code == 200
    assert page.get("/written", params={"text": "a" * 4_200}).status_code == 414


def test_a_database_at_another_revision_is_reported(bare: Path) -> None:
    """For older tables, the page suggests an upgrade; for newer tables, it suggests no command."""
    with closing(TrackingStore(f"sqlite:///{bare}/newer.db")) as newer:
        newer.migrate()
        with closing(sqlite3.connect(bare / "newer.db")) as file, file:
            file.execute("UPDATE germane_version SET version_num = '9999'")
        answer = client_for(create_dashboard(newer)).get("/worker", headers=PAGE)

    assert answer.status_code == 503
    assert "If the tables are newer than this version of germane, upgrade germane instead." in answer.text


def test_head_requests_are_answered_like_get_requests(store: TrackingStore) -> None:
    """Monitors send HEAD requests. They change nothing."""
    app = create_dashboard(store)

    assert client_for(app).head("/written").status_code == 200
    assert app.state.written == []


def test_a_read_only_dashboard_rejects_writes(store: TrackingStore) -> None:
    """Even a valid form with a valid token is rejected, and the message gives the reason."""
    app = create_dashboard(store, read_only=True, token=TOKEN)
    page = client_for(app)
    answers = [page.post("/written", data={"a": "1"}, headers=bearer()), page.delete("/written", headers=bearer())]

    assert [one.status_code for one in answers] == [403, 403]
    assert "read-only" in answers[0].text
    assert app.state.written == []


def test_forms_of_the_dashboard_itself_are_accepted(store: TrackingStore) -> None:
    """Fields arrive unchanged, whatever characters they contain."""
    app = create_dashboard(store)
    page = client_for(app)
    fields = {"comment": "wrong \u2013 \u05e9\u05dc\u05d5\u05dd \U0001f600", "empty": ""}
    sent = page.post("/written", data={**fields, "csrf": csrf_token_of(page, "/written")})

    assert sent.status_code == 200
    assert app.state.written == [fields]


def test_malformed_host_names_and_origins_are_rejected() -> None:
    """Malformed and malicious values are rejected."""
    assert [parse_host(host) for host in ("a.b:80", "[::1]", "a b", "a/b", "a,b", "A.", "a:b")] == [
        "a.b", "::1", None, None, None, "a", None,
    ]  # fmt: skip
    assert is_loopback("::ffff:127.0.0.1")
    assert not is_loopback("::ffff:10.0.0.1")
    assert not is_from_this_machine(None, [])
    assert is_cross_site(None, "cross-site", "here")
    assert is_cross_site("http://here", "same-site", "here")
    assert not is_cross_site("http://other", "same-origin", "here")
    assert is_cross_site("http://there", None, "here")
    assert is_cross_site("https://here:444", None, "here")
    assert not is_cross_site("null", None, "here")
    assert is_cross_site("http://[", None, "here")


@each("token", ["", "short", "fifteen letters with spaces", "\u00fc" * 16])
def test_dashboard_tokens_that_are_easy_to_guess_are_rejected(store: TrackingStore, token: str) -> None:
    """Tokens passed in code follow the rules of the setting: an empty value does not disable access control."""
    for given in (token, SecretStr(token)):
        with pytest.raises(SettingsError, match="at least 16 ASCII characters") as raised:
            create_dashboard(store, token=given)
        assert not token or token not in str(raised.value)


def test_allowed_hosts_must_be_a_list(store: TrackingStore) -> None:
    """A single string is rejected rather than treated as a list of characters."""
    page = client_for(create_dashboard(store, token=TOKEN, hosts="app.example"), "app.example", "10.0.0.7")

    assert page.get("/written", headers=bearer()).status_code == 200
