"""The channel protocol, and the error of a failed delivery."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from germane.alert import Alert
from germane.alerting.channels.message import ChannelMessage
from germane.errors import GermaneError, SettingsError


class DeliveryError(GermaneError):
    """A channel did not accept a message. The text contains no secret.

    Args:
        problem: What failed, such as ``status 503``.
        status: HTTP or SMTP status, if there was a response.
        retryable: Whether a later attempt may succeed.
        retry_after: Seconds that the receiver asked to wait.
    """

    def __init__(
        self, problem: str, *, status: int | None = None, retryable: bool = True, retry_after: float | None = None
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after


class Channel(Protocol):
    """A destination of notifications. Messages of one channel are sent one after another."""

    @property
    def include_text(self) -> bool:
        """Whether messages quote questions and answers."""

    @property
    def config_error(self) -> str | None:
        """Why this process cannot send anything, such as a missing secret; None if it can."""

    @property
    def destination(self) -> str:
        """Where messages go, without secrets, for display."""

    async def send(self, message: ChannelMessage) -> int | None:
        """Send a message once; return the status of the response, if there is one.

        Raises:
            DeliveryError: The message was not accepted.
        """


@runtime_checkable
class ResendingChannel(Protocol):
    """A channel whose receiver resolves an alert by itself unless it is sent again."""

    @property
    def resend_interval(self) -> float:
        """Seconds after which firing alerts are sent again."""

    async def resend(self, alerts: Sequence[Alert], *, alert_url_template: str | None) -> None:
        """Send firing and recently resolved alerts again.

        Args:
            alerts: At least one, in their current state.
            alert_url_template: As in :class:`ChannelMessage`.

        Raises:
            DeliveryError: The alerts were not accepted.
        """


def config_error_of(read_secrets: Callable[[], object]) -> str | None:
    """Return why a channel's secrets cannot be read; None if they can. Secrets are named by their location."""
    try:
        read_secrets()
    except SettingsError as error:
        return str(error)
    return None
