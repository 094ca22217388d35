"""Alerts by e-mail, to a real server: encrypted, logged in, safe in their headers, once per key."""

from __future__ import annotations

import asyncio
import shutil
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from tests.alerting.channels.conftest import HOSTILE, a_hostile_message, a_message, an_alert, over

from germane.alerting.channels import Email, NotDelivered, Quote
from germane.alerting.channels.email import mail_of
from germane.settings import channels as settings

SENDER, TO = "germane@example.com", ("oncall@example.com", "lead@example.com")


class Box:
    """Keeps what it gets; answers as it is told."""

    def __init__(self) -> None:
        self.mails: list[Any] = []
        self.envelopes: list[Any] = []
        self.answers: list[str] = []
        self.refused: set[str] = set()
        self.refusal = "550 no such user"
        self.logins: list[tuple[bytes, bytes]] = []
        self.encrypted: list[bool] = []
        self.hold: threading.Event | None = None

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:  # noqa: N802 - the server calls it so
        if address in self.refused:
            return self.refusal
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - the same
        if self.hold is not None:
            await asyncio.to_thread(self.hold.wait, 30)
        answer = self.answers.pop(0) if self.answers else "250 OK"
        if answer.startswith("2"):
            self.mails.append(message_from_bytes(envelope.content, policy=default))
            self.envelopes.append((envelope.mail_from, tuple(envelope.rcpt_tos)))
            self.encrypted.append(
                session.ssl is not None or isinstance(server.transport.get_extra_info("sslcontext"), ssl.SSLContext)
            )
        return answer

    def login(self, server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        self.logins.append((data.login, data.password))
        return AuthResult(success=data.password == b"hunter2", handled=False)


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for localhost, in one file."""
    folder = tmp_path_factory.mktemp("certificate")
    file = folder / "server.pem"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(folder / "key"), "-out", str(file)]
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl here to make a certificate")
    subprocess.run(["openssl", *made.split(), *names], check=True, capture_output=True)
    file.write_bytes((folder / "key").read_bytes() + file.read_bytes())
    return file


@pytest.fixture
def serve(box: Box, certificate: Path) -> Iterator[Callable[..., Email]]:
    """Start a server of a kind, and return the channel that sends to it."""
    with ExitStack() as stack:

        def serve(security: Any = "none", *, timeout: float = 15, login: bool = False, **given: Any) -> Email:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            options: dict[str, Any] = {"hostname": "127.0.0.1", "port": 0, "enable_SMTPUTF8": True}
            if security == "tls":
                options["ssl_context"] = context
            if security == "starttls":
                options |= {"tls_context": context, "require_starttls": True}
            if login:
                options |= {
                    "authenticator": box.login,
                    "auth_required": True,
                    "auth_require_tls": security == "starttls",
                }
            server = Serving(box, **options)
            server.start()
            stack.callback(server.stop)
            port = server.server.sockets[0].getsockname()[1]
            email = {"kind": "email", "host": "localhost", "port": port, "security": security, "sender": SENDER}
            trusted = {"certificates": certificate} if security != "none" else {}
            return Email(settings.Email(**{**email, "to": TO, **trusted, **given}), timeout=timeout)

        yield serve


class Serving(Controller):
    """A server at a free port; the base class asks the port of its settings whether it listens."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


def send(channel: Email, *alerts: Any, **given: Any) -> int:
    return asyncio.run(channel.send(a_message(*alerts, **given)))


def refused(channel: Email) -> NotDelivered:
    with pytest.raises(NotDelivered) as told:
        send(channel)
    return told.value


def text_of(mail: EmailMessage, kind: str = "plain") -> str:
    part = mail.get_body((kind,))
    assert part is not None
    return str(part.get_content())


def test_a_mail_holds_text_and_html(serve: Callable[..., Email], box: Box) -> None:
    """For everyone on the list, with the sentence, the numbers and the link."""
    assert send(serve(), link="https://germane.example.com/alerts/{id}") == 250

    (mail,) = box.mails
    assert box.envelopes == [(SENDER, TO)]
    assert mail["Subject"] == "[germane] Firing: drop in shop, docs"
    assert (mail["From"], mail["To"]) == (SENDER, ", ".join(TO))
    assert mail["Message-ID"] == "<0123456789abcdef.germane@example.com>"
    assert mail["Date"] == "Sun, 01 Mar 2026 12:00:00 +0000"
    for body in (text_of(mail), text_of(mail, "html")):
        assert "has dropped from 0.820 to 0.610." in body
        assert "0.610 (95 % 0.570 to 0.650, n = 120)" in body
        assert "https://germane.example.com/alerts/a1" in body
        assert "x1, x2" in body


def test_a_repetition_is_the_same_mail(serve: Callable[..., Email], box: Box) -> None:
    """Mail programs show one of those that share a Message-ID."""
    channel = serve()
    send(channel), send(channel)

    first, second = box.mails
    assert (first["Message-ID"], first["Date"]) == (second["Message-ID"], second["Date"])


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")  # it is: from the first byte
@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_it_is_encrypted_and_logged_in(serve: Callable[..., Email], box: Box, secret: Any, security: str) -> None:
    """With a certificate that is believed; the password is read when it is needed."""
    channel = serve(security, login=True, user="me", password=secret("PW", "hunter2"))

    assert send(channel) == 250
    assert set(box.logins) == {(b"me", b"hunter2")}
    assert box.encrypted == [True]


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_certificate_that_is_not_believed_ends_it(serve: Callable[..., Email], box: Box, security: str) -> None:
    """Nothing is sent to who is not who it says."""
    told = refused(serve(security, certificates=None))

    assert (told.problem, told.again) == ("SSLCertVerificationError", True)
    assert box.mails == []


def test_a_server_without_encryption_is_not_told_anything(serve: Callable[..., Email], box: Box, secret: Any) -> None:
    """Asked for and not offered: no password and no mail goes out."""
    channel = serve("none")
    given = channel._given.model_copy(update={"security": "starttls", "user": "me", "password": secret("PW", "x")})

    told = refused(Email(given))

    assert (told.problem, told.again) == ("the server offers no encryption or no login", False)
    assert (box.mails, box.logins) == ([], [])


def test_a_wrong_password_is_final_and_not_told(serve: Callable[..., Email], secret: Any) -> None:
    """The server's answer is a status."""
    told = refused(serve("starttls", login=True, user="me", password=secret("PW", "wrong-hunter")))

    assert (told.problem, told.again) == ("status 535", False)
    assert serve("none", user="me", password="env:NOWHERE").problem == "the environment variable NOWHERE is not set"


@pytest.mark.parametrize(("answer", "again"), [("451 later", True), ("452 full", True), ("554 no", False)])
def test_what_the_server_says_decides(serve: Callable[..., Email], box: Box, answer: str, again: bool) -> None:
    """4xx may pass, 5xx does not."""
    box.answers = [answer]
    channel = serve()
    told = refused(channel)

    assert (told.problem, told.again) == (f"status {answer[:3]}", again)
    assert send(channel) == 250


def test_all_recipients_refused_is_final_and_some_is_told(serve: Callable[..., Email], box: Box) -> None:
    """Who could be reached was."""
    box.refused = set(TO)
    assert (refused(serve()).problem, box.mails) == ("status 550", [])

    box.refused = {TO[0]}
    told = refused(serve())
    assert (told.problem, told.again) == ("1 of 2 recipients were refused", False)
    box.refusal = "450 greylisted, come again"
    assert refused(serve()).again
    assert box.envelopes == [(SENDER, TO[1:])] * 2


def test_a_server_that_hangs_or_is_away_may_be_back(
    serve: Callable[..., Email], box: Box, hold: threading.Event
) -> None:
    """Both are tried again."""
    box.hold = hold
    hanging = serve(timeout=1.0)
    away = Email(settings.Email(kind="email", host="127.0.0.1", port=1, security="none", sender=SENDER, to=TO))

    told = [refused(channel) for channel in (hanging, away)]
    hold.set()

    assert [one.again for one in told] == [True, True]
    assert [one.problem for one in told] == ["SMTPServerDisconnected", "ConnectionRefusedError"]


def test_a_server_that_drips_is_left(hold: threading.Event) -> None:
    """Each of its lines is in time, and the answer never ends. The next try makes no second thread that hangs."""

    class Drips(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                while not hold.wait(0.02):
                    self.wfile.write(b"220-wait\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Drips) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        given = {"kind": "email", "host": "127.0.0.1", "port": server.server_address[1], "security": "none"}
        channel = Email(settings.Email(**given, sender=SENDER, to=TO), timeout=0.3)
        before = set(threading.enumerate())
        told = [refused(channel) for _ in range(2)]
        ours = set(threading.enumerate()) - before
        mine = [one for one in ours if one.name.startswith("germane-email")]
        hold.set()
        server.shutdown()
    thread.join(60)

    assert [(one.problem, one.again) for one in told] == [("TimeoutError", True)] * 2
    assert len(mine) == 1


def test_a_password_that_smtp_cannot_say_is_not_quoted(serve: Callable[..., Email], secret: Any) -> None:
    """It knows ASCII alone."""
    told = refused(serve("starttls", login=True, user="me", password=secret("PW", "geheim-\u00fc")))

    assert (told.problem, told.again) == ("UnicodeEncodeError", False)


def test_nothing_hostile_gets_into_headers_or_tags(serve: Callable[..., Email], box: Box) -> None:
    """No header is added, no tag is made, no control character arrives."""
    channel = serve()
    asyncio.run(channel.send(a_hostile_message()))

    (mail,) = box.mails
    assert box.envelopes == [(SENDER, TO)]
    assert mail["Bcc"] is None
    assert "<script>" not in text_of(mail, "html")
    assert "&lt;script&gt;" in text_of(mail, "html")
    assert "\x1b" not in text_of(mail) + text_of(mail, "html") + str(mail["Subject"])
    assert len(mail["Subject"]) < 200


def test_a_message_of_any_text_can_be_sent(serve: Callable[..., Email], box: Box) -> None:
    """Also of half surrogates and letters of any script."""
    send(serve(), an_alert(message="\ud800 \u202e ответы хуже 回答 🙂", rule="правило"))

    assert "ответы хуже 回答 🙂" in text_of(box.mails[0])
    assert "правило" in box.mails[0]["Subject"]


def test_text_is_there_only_where_it_was_loaded() -> None:
    """By default a mail names exchanges, and quotes none."""
    quotes = {"x1": Quote(exchange_id="x1", question="How long?", answer=HOSTILE)}

    assert "Question" not in text_of(mail_of(a_message(), SENDER, TO))
    quoting = mail_of(a_message(quotes=quotes), SENDER, TO)
    assert "Question: How long?" in text_of(quoting)
    assert "<script>" not in text_of(quoting, "html")


def test_the_end_reads_like_one() -> None:
    """With its reason."""
    mail = mail_of(a_message(over(an_alert())), SENDER, TO)

    assert mail["Subject"] == "[germane] Resolved: drop in shop, docs"
    assert "it has recovered" in text_of(mail)
