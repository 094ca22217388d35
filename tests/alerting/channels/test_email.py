"""The email channel against a real SMTP server."""

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

from germane.alerting.channels.channel import ExchangeQuote
from germane.alerting.channels.email import Email, build_email
from germane.alerting.wording import headline
from germane.delivery import DeliveryError
from germane.settings import channels as settings

SENDER, TO = "germane@example.com", ("oncall@example.com", "lead@example.com")


class Box:
    """An SMTP handler that records emails and sends the given replies."""

    def __init__(self) -> None:
        self.mails: list[Any] = []
        self.envelopes: list[Any] = []
        self.answers: list[str] = []
        self.refused: set[str] = set()
        self.refusal = "550 no such user"
        self.logins: list[tuple[bytes, bytes]] = []
        self.encrypted: list[bool] = []
        self.hold: threading.Event | None = None

    async def handle_RCPT(  # noqa: N802 - a hook of aiosmtpd
        self, server: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        if address in self.refused:
            return self.refusal
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - also a hook
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
        pytest.skip("openssl, which creates the certificate, is not installed")
    subprocess.run(["openssl", *made.split(), *names], check=True, capture_output=True)
    file.write_bytes((folder / "key").read_bytes() + file.read_bytes())
    return file


@pytest.fixture
def serve(box: Box, certificate: Path) -> Iterator[Callable[..., Email]]:
    """Start a server with a type of encryption, and return the channel that sends to it."""
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
            email = {"type": "email", "host": "localhost", "port": port, "security": security, "sender": SENDER}
            trusted = {"certificates": certificate} if security != "none" else {}
            return Email(settings.EmailSettings(**{**email, "to": TO, **trusted, **given}), timeout=timeout)

        yield serve


class Serving(Controller):
    """A server on a free port. The base class expects a fixed port in its settings."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


def send(channel: Email, *alerts: Any, **given: Any) -> int:
    return asyncio.run(channel.send(a_message(*alerts, **given)))


def refused(channel: Email) -> DeliveryError:
    with pytest.raises(DeliveryError) as raised:
        send(channel)
    return raised.value


def text_of(mail: EmailMessage, kind: str = "plain") -> str:
    part = mail.get_body((kind,))
    assert part is not None
    return str(part.get_content())


def test_an_email_contains_text_and_html(serve: Callable[..., Email], box: Box) -> None:
    """The email goes to all recipients and contains message, values and link."""
    template, message = "https://germane.example.com/alerts/{id}", a_message()
    assert send(serve(), alert_url_template=template) == 250

    (mail,) = box.mails
    assert box.envelopes == [(SENDER, TO)]
    assert mail["Subject"] == f"[germane] {headline(message.notification)}"
    assert (mail["From"], mail["To"]) == (SENDER, ", ".join(TO))
    assert mail["Message-ID"] == "<0123456789abcdef.germane@example.com>"
    assert mail["Date"] == "Sun, 01 Mar 2026 12:00:00 +0000"
    for body in (text_of(mail), text_of(mail, "html")):
        assert message.alerts[0].message in body
        assert dict(message.facts_for(message.alerts[0]))["Now"] in body
        assert "https://germane.example.com/alerts/a1" in body
        assert "x1, x2" in body


def test_every_delivery_attempt_sends_the_same_email(serve: Callable[..., Email], box: Box) -> None:
    """Mail programs show messages with the same Message-ID once."""
    channel = serve()
    send(channel), send(channel)

    first, second = box.mails
    assert (first["Message-ID"], first["Date"]) == (second["Message-ID"], second["Date"])


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")  # it is encrypted from the first byte
@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_the_smtp_connection_is_encrypted_and_authenticated(
    serve: Callable[..., Email], box: Box, secret: Any, security: str
) -> None:
    """The certificate is trusted. The password is read when it is needed."""
    channel = serve(security, login=True, user="me", password=secret("PW", "hunter2"))

    assert send(channel) == 250
    assert set(box.logins) == {(b"me", b"hunter2")}
    assert box.encrypted == [True]


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_an_untrusted_smtp_certificate_prevents_delivery(serve: Callable[..., Email], box: Box, security: str) -> None:
    """The client sends nothing to an unverified server."""
    error = refused(serve(security, certificates=None))

    assert (error.problem, error.retryable) == ("SSLCertVerificationError", True)
    assert box.mails == []


def test_an_smtp_server_without_encryption_receives_nothing(serve: Callable[..., Email], box: Box, secret: Any) -> None:
    """Neither password nor email is sent if encryption is configured but not offered."""
    channel = serve("none")
    given = channel._settings.model_copy(update={"security": "starttls", "user": "me", "password": secret("PW", "x")})

    error = refused(Email(given))

    assert (error.problem, error.retryable) == ("the server does not support encryption or login", False)
    assert (box.mails, box.logins) == ([], [])


def test_a_wrong_smtp_password_is_a_permanent_error(serve: Callable[..., Email], secret: Any) -> None:
    """The error contains only the status."""
    error = refused(serve("starttls", login=True, user="me", password=secret("PW", "wrong-hunter")))

    assert (error.problem, error.retryable) == ("status 535", False)
    assert (
        serve("none", user="me", password="env:NOWHERE").config_error == "the environment variable NOWHERE is not set"
    )


@pytest.mark.parametrize(("answer", "again"), [("451 later", True), ("452 full", True), ("554 no", False)])
def test_the_smtp_status_determines_whether_delivery_is_retried(
    serve: Callable[..., Email], box: Box, answer: str, again: bool
) -> None:
    """4xx is temporary, 5xx is permanent."""
    box.answers = [answer]
    channel = serve()
    error = refused(channel)

    assert (error.problem, error.retryable) == (f"status {answer[:3]}", again)
    assert send(channel) == 250


def test_recipients_that_the_smtp_server_refuses_are_reported(serve: Callable[..., Email], box: Box) -> None:
    """The other recipients still receive the email."""
    box.refused = set(TO)
    assert (refused(serve()).problem, box.mails) == ("status 550", [])

    box.refused = {TO[0]}
    error = refused(serve())
    assert (error.problem, error.retryable) == ("1 of 2 recipients were rejected", False)
    box.refusal = "450 greylisted, come again"
    assert refused(serve()).retryable
    assert box.envelopes == [(SENDER, TO[1:])] * 2


def test_a_retry_goes_only_to_the_recipients_that_were_rejected(serve: Callable[..., Email], box: Box) -> None:
    """The others would get a copy every minute for a day."""
    box.refused, box.refusal = {TO[0]}, "452 full"
    channel = serve()
    assert refused(channel).retryable
    assert refused(channel).problem == "status 452"
    box.refused = set()

    assert send(channel) == 250
    assert send(channel) == 250

    assert box.envelopes == [(SENDER, TO[1:]), (SENDER, TO[:1]), (SENDER, TO)]


def test_delivery_to_an_unreachable_smtp_server_is_retried(
    serve: Callable[..., Email], box: Box, hold: threading.Event
) -> None:
    """Timeouts and refused connections are temporary."""
    box.hold = hold
    hanging = serve(timeout=1.0)
    away = Email(settings.EmailSettings(type="email", host="127.0.0.1", port=1, security="none", sender=SENDER, to=TO))

    errors = [refused(channel) for channel in (hanging, away)]
    hold.set()

    assert [one.retryable for one in errors] == [True, True]
    assert [one.problem for one in errors] == ["SMTPServerDisconnected", "ConnectionRefusedError"]


@pytest.mark.slow
def test_delivery_to_a_slow_smtp_server_times_out(hold: threading.Event) -> None:
    """Each line arrives in time, but the reply never ends. The next attempt does not start another thread."""

    class Drips(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                while not hold.wait(0.02):
                    self.wfile.write(b"220-wait\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Drips) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        given = {"type": "email", "host": "127.0.0.1", "port": server.server_address[1], "security": "none"}
        channel = Email(settings.EmailSettings(**given, sender=SENDER, to=TO), timeout=0.3)
        before = set(threading.enumerate())
        errors = [refused(channel) for _ in range(2)]
        ours = set(threading.enumerate()) - before
        mine = [one for one in ours if one.name.startswith("germane-email")]
        hold.set()
        server.shutdown()
    thread.join(60)

    assert [(one.problem, one.retryable) for one in errors] == [("TimeoutError", True)] * 2
    assert len(mine) == 1


def test_a_password_that_smtp_cannot_encode_is_not_shown(serve: Callable[..., Email], secret: Any) -> None:
    """SMTP supports only ASCII passwords."""
    error = refused(serve("starttls", login=True, user="me", password=secret("PW", "geheim-\u00fc")))

    assert (error.problem, error.retryable) == ("UnicodeEncodeError", False)


def test_hostile_text_adds_no_header_or_tag_to_an_email(serve: Callable[..., Email], box: Box) -> None:
    """Control characters are also removed."""
    channel = serve()
    asyncio.run(channel.send(a_hostile_message()))

    (mail,) = box.mails
    assert box.envelopes == [(SENDER, TO)]
    assert mail["Bcc"] is None
    assert "<script>" not in text_of(mail, "html")
    assert "&lt;script&gt;" in text_of(mail, "html")
    assert "\x1b" not in text_of(mail) + text_of(mail, "html") + str(mail["Subject"])
    assert len(mail["Subject"]) < 200


def test_any_text_can_be_sent_by_email(serve: Callable[..., Email], box: Box) -> None:
    """This includes lone surrogates and all scripts."""
    send(serve(), an_alert(message="\ud800 \u202e ответы хуже 回答 🙂", rule="правило"))

    assert "ответы хуже 回答 🙂" in text_of(box.mails[0])
    assert "правило" in box.mails[0]["Subject"]


def test_emails_contain_answers_only_if_configured() -> None:
    """By default, messages contain the ids of exchanges and no text."""
    quotes = {"x1": ExchangeQuote(exchange_id="x1", question="How long?", answer=HOSTILE)}

    assert "Question" not in text_of(build_email(a_message(), SENDER, TO))
    quoting = build_email(a_message(quotes=quotes), SENDER, TO)
    assert "Question: How long?" in text_of(quoting)
    assert "<script>" not in text_of(quoting, "html")


def test_an_email_about_a_resolved_alert_says_so() -> None:
    """The message contains the reason."""
    message = a_message(over(an_alert()))
    mail = build_email(message, SENDER, TO)

    assert mail["Subject"] == f"[germane] {headline(message.notification)}"
    assert "recovered" in text_of(mail)
