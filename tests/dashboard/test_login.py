"""The dashboard token: bearer header, login form, and cookie."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.cases import each
from tests.conftest import migrated_file
from tests.dashboard.form_helpers import submit_form
from tests.dashboard.http_server import NOW, PAGE, TOKEN, client_for, create_dashboard

import germane.dashboard.auth.signing as module
from germane.dashboard.auth.limits import MAX_FAILURES, MAX_FAILURES_PER_ADDRESS, LoginThrottle
from germane.dashboard.auth.middleware import AccessRules
from germane.dashboard.auth.signing import Signer
from germane.dashboard.web.routing import is_local_path
from germane.settings import load_settings
from germane.storage import TrackingStore
from germane.testing import Clock

SESSION = "germane_session"


@pytest.fixture
def store(tmp_path_factory: pytest.TempPathFactory, bare: Path) -> Iterator[TrackingStore]:
    """A migrated, empty SQLite database; these tests do not depend on the type of database."""
    with closing(TrackingStore(f"sqlite:///{migrated_file(tmp_path_factory.getbasetemp())}")) as opened:
        yield opened


def sign_in(page: TestClient, onward: str = "") -> TestClient:
    """Sign in with the token."""
    answer = submit_form(page, "/login", "/login", token=TOKEN, next=onward)
    assert answer.status_code == 303, answer.text
    return page


def test_without_the_token_programs_are_rejected_and_people_are_redirected(store: TrackingStore) -> None:
    """Programs get 401 with instructions; browsers go to the login form and then to the requested page."""
    page = client_for(create_dashboard(store, token=TOKEN))
    program, person = page.get("/metrics"), page.get("/answers?route=a%26b", headers=PAGE)

    assert (program.status_code, program.headers["www-authenticate"]) == (401, "Bearer")
    assert person.headers["location"] == "/login?next=%2Fanswers%3Froute%3Da%2526b"
    answer = submit_form(page, person.headers["location"], "/login", token=TOKEN, next="/answers?route=a%26b")
    assert answer.headers["location"] == "/answers?route=a%26b"


def test_a_bearer_token_must_be_sent_with_each_request(store: TrackingStore) -> None:
    """Prometheus sends the token in this way. The response sets no cookie."""
    page = client_for(create_dashboard(store, token=TOKEN))
    answer = page.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})

    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    assert page.get("/metrics", headers={"Authorization": f"Basic {TOKEN}"}).status_code == 401
    assert page.get(f"/metrics?token={TOKEN}").status_code == 401


def test_the_login_cookie_is_protected_and_does_not_contain_the_token(store: TrackingStore) -> None:
    """Scripts and other sites cannot use the cookie, and it is marked as secure over HTTPS."""
    plain, safe = (client_for(create_dashboard(store, token=TOKEN), scheme=scheme) for scheme in ("http", "https"))
    given = [submit_form(page, "/login", "/login", token=TOKEN).headers["set-cookie"] for page in (plain, safe)]

    assert given[0].endswith("; HttpOnly; Max-Age=604800; Path=/; SameSite=Strict")
    assert given[1].endswith("; HttpOnly; Max-Age=604800; Path=/; SameSite=Strict; Secure")
    assert TOKEN not in given[0]
    assert plain.get("/written").status_code == 200


def test_the_login_cookie_is_valid_after_a_restart_with_the_same_token(store: TrackingStore) -> None:
    """A new token signs everyone out."""
    page = sign_in(client_for(create_dashboard(store, token=TOKEN)))
    again, other = (client_for(create_dashboard(store, token=token)) for token in (TOKEN, TOKEN + "2"))
    again.cookies = other.cookies = page.cookies

    assert again.get("/written").status_code == 200
    assert other.get("/written").status_code == 401


@each(
    "cookie",
    ["", ".", "..", "9999999999.a.b", TOKEN, "9999999999..", "a" * 5_000, "9999999999.a." + "0" * 64, "\u00e9"],
)
def test_a_forged_login_cookie_is_rejected(store: TrackingStore, cookie: str) -> None:
    """No content of the cookie causes an error."""
    headers = {"Cookie": f"{SESSION}={cookie}".encode()}

    assert client_for(create_dashboard(store, token=TOKEN)).get("/written", headers=headers).status_code == 401  # type: ignore[arg-type]  # bytes, as they come


def test_the_login_cookie_expires_after_a_week(store: TrackingStore) -> None:
    """The expiry time cannot be changed."""
    clock = Clock(NOW)
    page = sign_in(client_for(create_dashboard(store, token=TOKEN, now=clock)))
    clock.advance(days=7, seconds=-1)
    assert page.get("/written").status_code == 200
    clock.advance(seconds=1)
    assert page.get("/written").status_code == 401

    seals = Signer(load_settings(dashboard_token=TOKEN).dashboard_token)
    made = seals.create_session(NOW)
    assert seals.is_valid_session(made, NOW)
    assert not seals.is_valid_session(made.replace(made[:4], "9999", 1), NOW)


def test_signing_out_deletes_the_login_cookie(store: TrackingStore) -> None:
    """Signing out requires a form, so other sites cannot sign visitors out."""
    page = sign_in(client_for(create_dashboard(store, token=TOKEN)))

    assert page.post("/logout").status_code == 403
    assert submit_form(page, "/login", "/logout").headers["location"] == "/login"
    assert page.get("/written").status_code == 401


def test_a_read_only_dashboard_allows_signing_in(store: TrackingStore) -> None:
    """Signing in changes no data."""
    page = sign_in(client_for(create_dashboard(store, token=TOKEN, read_only=True)))

    assert page.get("/written").status_code == 200


@each(
    "onward",
    [
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "\\\\evil",
        "/a\nb",
        "javascript:alert(1)",
        "",
        "/\t/evil",
    ],
)
def test_signing_in_redirects_only_within_the_dashboard(store: TrackingStore, onward: str) -> None:
    """If a link to the form names another site, the visitor continues to the overview."""
    app = create_dashboard(store, token=TOKEN)
    answer = submit_form(client_for(app), "/login", "/login", token=TOKEN, next=onward)

    assert not is_local_path(onward)
    assert answer.headers["location"] == "/"
    shown = client_for(app).get("/login", params={"next": onward}).text
    assert '<input type="hidden" name="next" value="">' in shown


def test_wrong_tokens_are_limited_per_address(store: TrackingStore) -> None:
    """After ten per minute, by form or header, more invalid tokens get status 429 for a while."""
    clock = Clock(NOW)
    app = create_dashboard(store, token=TOKEN, now=clock)
    page, other = client_for(app), client_for(app, "10.0.0.1", "10.0.0.7")
    wrong = [submit_form(page, "/login", "/login", token="wrong").status_code for _ in range(5)]
    wrong += [page.get("/written", headers={"Authorization": "Bearer wrong"}).status_code for _ in range(5)]
    late = [
        submit_form(page, "/login", "/login", token="wrong"),
        page.get("/", headers={"Authorization": "Bearer wrong"}),
    ]

    assert wrong == [401] * MAX_FAILURES_PER_ADDRESS
    assert [one.status_code for one in late] == [429, 429]
    assert late[0].headers["retry-after"] == "60"
    assert submit_form(other, "/login", "/login", token="wrong").status_code == 401
    clock.advance(seconds=60)
    assert submit_form(page, "/login", "/login", token="wrong").status_code == 401


def test_invalid_tokens_never_lock_out_the_correct_token(store: TrackingStore) -> None:
    """Guesses may come from the visitor's address, as behind a proxy, or from so many that all are over the limit."""
    app = create_dashboard(store, token=TOKEN, now=Clock(NOW))
    here = client_for(app)
    for number in range(MAX_FAILURES + 10):
        stranger = here if number % 2 else client_for(app, "10.0.0.1", f"10.0.{number}.7")
        assert stranger.get("/", headers={"Authorization": f"Bearer guess-{number}"}).status_code in {401, 429}
    assert here.get("/", headers={"Authorization": "Bearer wrong"}).status_code == 429

    assert here.get("/written", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert here.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert sign_in(here).get("/written").status_code == 200


def test_failed_logins_are_limited_across_addresses() -> None:
    """The limit is a hundred per minute in total, and memory is bounded."""
    clock = Clock(NOW)
    attempts = LoginThrottle(clock)
    for number in range(MAX_FAILURES):
        assert attempts.seconds_to_wait(f"10.0.{number}.1") == 0
        attempts.record_failure(f"10.0.{number}.1")
    assert attempts.seconds_to_wait("10.9.9.9") == 60

    for number in range(5_000):
        attempts.record_failure(str(number))
    assert len(attempts._by_address) <= 1_000


def test_secrets_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Complete tokens, cookies and CSRF tokens are compared with ``hmac.compare_digest``."""
    compared = list[tuple[bytes, bytes]]()

    class Watched:
        new, digest = staticmethod(hmac.new), staticmethod(hmac.digest)

        @staticmethod
        def compare_digest(shown: bytes, own: bytes) -> bool:
            compared.append((shown, own))
            return hmac.compare_digest(shown, own)

    monkeypatch.setattr(module, "hmac", Watched)
    seals = Signer(load_settings(dashboard_token=TOKEN).dashboard_token)

    assert not seals.is_token("\ud800x")
    assert not seals.is_valid_session("1.a.b", NOW)
    assert not seals.is_form_token("visit", "no")
    assert [shown for shown, _ in compared] == [b"?x", b"b", b"no"]


def test_the_dashboard_token_is_never_revealed(
    store: TrackingStore, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """No log, page, error or object representation contains a token, whether correct or wrong."""
    caplog.set_level(logging.DEBUG)
    app = create_dashboard(store, token=TOKEN)
    page = client_for(app)
    pages = [submit_form(page, "/login", "/login", token=f"{TOKEN}{end}").text for end in ("-nearly", "")]
    pages += [page.get("/login", headers=PAGE).text, page.get("/nowhere", headers=PAGE).text]
    settings = load_settings(dashboard_token=TOKEN)
    pages += [
        repr(one)
        for one in (app.state.signer, settings, AccessRules(token=settings.dashboard_token), app.state.context)
    ]
    pages += [settings.model_dump_json(), caplog.text, *capfd.readouterr()]

    assert [one for one in pages if TOKEN in one] == []
