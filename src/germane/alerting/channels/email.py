"""Delivery of alerts by email."""

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

from germane import sanitize
from germane.alert import Alert
from germane.alerting.channels.channel import (
    ChannelMessage,
    config_error_of,
)
from germane.alerting.wording import headline
from germane.daemon_pool import DaemonThreadPool
from germane.delivery import DeliveryError
from germane.settings import EmailSettings, resolve_secret

TIMEOUT: Final = 15.0
"""Timeout in seconds for each reply from the server."""
MAX_TIMEOUTS: Final = 8
"""Maximum time per message, as a multiple of the timeout. It protects against servers that send one byte at a time."""
PERMANENT_STATUS: Final = 500
"""SMTP status codes at or above this value are permanent errors."""
MAX_PARTLY_DELIVERED: Final = 100
"""Maximum number of messages to remember of which some recipients have not been reached."""
_DEFAULT_PORTS: Final = {"starttls": 587, "tls": 465, "none": 25}


class Email:
    """Sends each notification as plain text and simple HTML.

    The ``Message-ID`` is derived from the idempotency key, so mail clients show duplicates only once.
    """

    def __init__(self, settings: EmailSettings, *, timeout: float = TIMEOUT) -> None:
        self._settings = settings
        self._timeout = timeout
        self._blocked_threads: DaemonThreadPool | None = None
        self._rejected: dict[str, list[str]] = {}
        """Recipients that were rejected while others accepted a message, by the message's idempotency key."""
        self.include_text = settings.include_text

    def __repr__(self) -> str:
        return f"Email({self.destination})"

    @property
    def config_error(self) -> str | None:
        """The reason the channel cannot send messages; None if it can."""
        return config_error_of(self._password)

    @property
    def destination(self) -> str:
        """The server and the number of recipients."""
        return f"{self._settings.host}:{self._port}, to {sanitize.count_noun(len(self._settings.to), 'address')}"

    async def send(self, message: ChannelMessage) -> int:
        """Send a message, without retries. This runs in a thread, because the SMTP client blocks."""
        threads, self._blocked_threads = self._blocked_threads or DaemonThreadPool(1, name="germane-email"), None
        try:
            async with asyncio.timeout(MAX_TIMEOUTS * self._timeout):
                email = build_email(message, self._settings.sender, self._settings.to)
                return await threads.run(self._send, email, message.notification.idempotency_key)
        except TimeoutError:
            # The next attempt waits for this one, so that blocked threads do not accumulate.
            self._blocked_threads = threads
            raise DeliveryError("TimeoutError") from None
        finally:
            if self._blocked_threads is None:
                threads.close()

    def _send(self, email: EmailMessage, key: str) -> int:
        # Recipients that have accepted the message would otherwise get a copy with every attempt.
        recipients = self._rejected.get(key, list(self._settings.to))
        try:
            with self._connect() as server:
                rejected = server.send_message(email, self._settings.sender, recipients)
        except smtplib.SMTPRecipientsRefused as error:
            raise _rejected(min(code for code, _ in error.recipients.values())) from None
        except smtplib.SMTPResponseException as error:
            raise _rejected(error.smtp_code) from None
        except smtplib.SMTPNotSupportedError:
            raise DeliveryError("the server does not support encryption or login", retryable=False) from None
        except (smtplib.SMTPException, OSError) as error:
            raise DeliveryError(type(error).__name__) from None
        except UnicodeError as error:  # a name or password that SMTP cannot encode
            raise DeliveryError(type(error).__name__, retryable=False) from None
        self._rejected.pop(key, None)
        if rejected:
            self._rejected[key] = list(rejected)
            if len(self._rejected) > MAX_PARTLY_DELIVERED:
                del self._rejected[next(iter(self._rejected))]
            retryable = min(code for code, _ in rejected.values()) < PERMANENT_STATUS
            problem = f"{len(rejected)} of {len(self._settings.to)} recipients were rejected"
            raise DeliveryError(problem, retryable=retryable)
        return 250

    def _connect(self) -> smtplib.SMTP:
        """Return a connection that is encrypted and authenticated as configured."""
        settings = self._settings
        certificates: ssl.SSLContext | None = None
        if settings.security != "none":
            certificates = ssl.create_default_context()
            if settings.certificates is not None:
                certificates.load_verify_locations(settings.certificates)
        server: smtplib.SMTP
        if settings.security == "tls":
            server = smtplib.SMTP_SSL(settings.host, self._port, timeout=self._timeout, context=certificates)
        else:
            server = smtplib.SMTP(settings.host, self._port, timeout=self._timeout)
        with ExitStack() as stack:
            stack.callback(server.close)
            if settings.security == "starttls":
                server.starttls(context=certificates)
            if settings.user is not None:
                server.login(settings.user, self._password() or "")
            stack.pop_all()  # from now on, the caller closes the connection
        return server

    def _password(self) -> str | None:
        return None if self._settings.password is None else resolve_secret(self._settings.password)

    @property
    def _port(self) -> int:
        return self._settings.port or _DEFAULT_PORTS[self._settings.security]


def build_email(message: ChannelMessage, sender: str, recipients: tuple[str, ...]) -> EmailMessage:
    """Build the email for a message. It is the same for every attempt."""
    notification = message.notification
    email = EmailMessage(policy=SMTP)
    email["Subject"] = f"[germane] {headline(notification)}"
    email["From"] = sender
    email["To"] = ", ".join(recipients)
    email["Date"] = format_datetime(notification.created_at)
    email["Message-ID"] = f"<{notification.idempotency_key}.germane@{sender.rpartition('@')[2]}>"
    email["Auto-Submitted"] = "auto-generated"
    texts = [
        "\n".join([*_lines(message, alert), *(f"{label}: {url}" for label, url in message.links_for(alert).items())])
        for alert in message.alerts
    ]
    email.set_content("\n\n".join(texts) + "\n")
    html = ""
    for alert in message.alerts:
        title, text, *rest = map(escape, _lines(message, alert))
        items = "".join(f"<li>{line}</li>" for line in rest)
        for label, link in message.links_for(alert).items():
            url = escape(link)
            items += f'<li>{label}: <a href="{url}">{url}</a></li>'
        html += f"<h3>{title}</h3><p>{text}</p><ul>{items}</ul>\n"
    email.add_alternative(html, subtype="html")
    return email


def _rejected(status: int) -> DeliveryError:
    """Build the error for an SMTP status. Status 4xx is temporary, and 5xx is permanent."""
    return DeliveryError(f"status {status}", status=status, retryable=status < PERMANENT_STATUS)


def _lines(message: ChannelMessage, alert: Alert) -> Iterator[str]:
    yield message.heading_for(alert)
    yield message.text_for(alert)
    for label, value in [*message.facts_for(alert), *message.evidence_for(alert)]:
        yield f"{label}: {value}"
