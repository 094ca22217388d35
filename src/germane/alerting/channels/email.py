"""Alerts by e-mail."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from html import escape
from typing import Final

from germane.alert import Alert
from germane.alerting.channels.channel import NotDelivered, problem_of
from germane.alerting.channels.message import Message, facts, headline, quoted, sentence, state_of, subject, worst
from germane.daemon_pool import Threads
from germane.sanitize import counted
from germane.settings import channels as settings
from germane.settings.kinds import read_secret

TIMEOUT: Final = 15.0
"""Seconds that the server may take for each of its answers."""
ANSWERS: Final = 8
"""It may take as long as so many of them in all: one that drips is as good as one that hangs."""
PERMANENT: Final = 500
"""The least status of what will not pass."""
_PORTS: Final = {"starttls": 587, "tls": 465, "none": 25}


class Email:
    """Sends each notification as text and as simple HTML.

    Its ``Message-ID`` is made from the idempotency key: mail programs show a message that came twice once.
    """

    def __init__(self, given: settings.Email, *, timeout: float = TIMEOUT) -> None:
        self._given = given
        self._timeout = timeout
        self._hanging: Threads | None = None
        self.answers = given.answers

    def __repr__(self) -> str:
        return f"Email({self.where})"

    @property
    def problem(self) -> str | None:
        """Why it can send nothing."""
        return problem_of(self._password)

    @property
    def where(self) -> str:
        """The server, and how many hear of it."""
        return f"{self._given.host}:{self._port}, to {counted(len(self._given.to), 'address')}"

    async def send(self, message: Message) -> int:
        """Send it once, in a thread: the client blocks."""
        threads, self._hanging = self._hanging or Threads(1, name="germane-email"), None
        try:
            async with asyncio.timeout(ANSWERS * self._timeout):
                return await threads.run(self._send, mail_of(message, self._given.sender, self._given.to))
        except TimeoutError:
            self._hanging = threads  # the next try waits behind this one: threads that hang do not pile up
            raise NotDelivered("TimeoutError") from None
        finally:
            if self._hanging is None:
                threads.close()

    def _send(self, mail: EmailMessage) -> int:
        try:
            with self._connected() as server:
                refused = server.send_message(mail, self._given.sender, list(self._given.to))
        except smtplib.SMTPRecipientsRefused as error:
            raise _refused(min(code for code, _ in error.recipients.values())) from None
        except smtplib.SMTPResponseException as error:
            raise _refused(error.smtp_code) from None
        except smtplib.SMTPNotSupportedError:
            raise NotDelivered("the server offers no encryption or no login", again=False) from None
        except (smtplib.SMTPException, OSError) as error:
            raise NotDelivered(type(error).__name__) from None
        except UnicodeError as error:  # a name or a password that the protocol cannot say
            raise NotDelivered(type(error).__name__, again=False) from None
        if refused:
            again = min(code for code, _ in refused.values()) < PERMANENT
            raise NotDelivered(f"{len(refused)} of {len(self._given.to)} recipients were refused", again=again)
        return 250

    def _connected(self) -> smtplib.SMTP:
        given = self._given
        if given.security == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                given.host, self._port, timeout=self._timeout, context=self._certificates()
            )
        else:
            server = smtplib.SMTP(given.host, self._port, timeout=self._timeout)
        with ExitStack() as stack:
            stack.callback(server.close)
            self._introduce(server)
            stack.pop_all()  # it is the caller's to close now
        return server

    def _introduce(self, server: smtplib.SMTP) -> None:
        if self._given.security == "starttls":
            server.starttls(context=self._certificates())
        if self._given.user is not None:
            server.login(self._given.user, self._password() or "")

    def _certificates(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self._given.certificates is not None:
            context.load_verify_locations(self._given.certificates)
        return context

    def _password(self) -> str | None:
        return None if self._given.password is None else read_secret(self._given.password)

    @property
    def _port(self) -> int:
        return self._given.port or _PORTS[self._given.security]


def mail_of(message: Message, sender: str, to: tuple[str, ...]) -> EmailMessage:
    """Return the mail: the same for every try."""
    told = message.notification
    mail = EmailMessage(policy=SMTP)
    mail["Subject"] = f"[germane] {headline(told)}"
    mail["From"] = sender
    mail["To"] = ", ".join(to)
    mail["Date"] = format_datetime(told.created_at)
    mail["Message-ID"] = f"<{told.idempotency_key}.germane@{sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content("\n\n".join("\n".join(_lines(message, alert)) for alert in message.alerts) + "\n")
    mail.add_alternative("".join(_html(message, alert) for alert in message.alerts), subtype="html")
    return mail


def _refused(status: int) -> NotDelivered:
    """Return what a status of SMTP says: 4xx may pass, 5xx does not."""
    return NotDelivered(f"status {status}", status=status, again=status < PERMANENT)


def _lines(message: Message, alert: Alert) -> Iterator[str]:
    yield f"{state_of(alert)}: {subject(alert)}"
    yield sentence(alert)
    for name, value in facts(alert):
        yield f"{name}: {value}"
    for quote in message.quotes_of(alert):
        yield f"Question: {quoted(quote.question)}"
        yield f"Answer: {quoted(quote.answer)}"
    if alert.exchange_ids:
        yield f"Worst exchanges: {worst(alert)}"
    link = message.link_to(alert)
    if link is not None:
        yield link


def _html(message: Message, alert: Alert) -> str:
    head, said, *rest = _lines(message, alert)
    link = message.link_to(alert)
    items = "".join(f"<li>{escape(line)}</li>" for line in rest if line != link)
    linked = "" if link is None else f'<p><a href="{escape(link)}">{escape(link)}</a></p>'
    return f"<h3>{escape(head)}</h3><p>{escape(said)}</p><ul>{items}</ul>{linked}\n"
