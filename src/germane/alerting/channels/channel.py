"""What a channel is, and what it says when it could not send."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from germane.alert import Alert
from germane.alerting.channels.message import Message
from germane.errors import GermaneError, SettingsError


class NotDelivered(GermaneError):
    """A channel did not take a message. What it says holds no secret.

    Args:
        problem: What went wrong, such as ``status 503``.
        status: Of HTTP or SMTP, where there was an answer.
        again: Whether that may pass.
        asked: Seconds for which the receiver asked to be left alone.
    """

    def __init__(
        self, problem: str, *, status: int | None = None, again: bool = True, asked: float | None = None
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.status = status
        self.again = again
        self.asked = asked


class Channel(Protocol):
    """Where alerts go. Messages of one channel are sent one after another."""

    @property
    def answers(self) -> bool:
        """Whether its messages quote questions and answers."""

    @property
    def problem(self) -> str | None:
        """Why it can send nothing from this process, such as a secret that is not there; None when it can."""

    @property
    def where(self) -> str:
        """Where it sends to, without secrets: for people."""

    async def send(self, message: Message) -> int | None:
        """Send it once, and return the status of the answer, if there is such a thing.

        Raises:
            NotDelivered: it was not taken.
        """


def problem_of(read: Callable[[], object]) -> str | None:
    """Return why a channel's secrets cannot be read, by their places; None where they can."""
    try:
        read()
    except SettingsError as error:
        return str(error)
    return None


@runtime_checkable
class Forgetful(Protocol):
    """A channel whose receiver takes an alert for over unless it is told again and again."""

    @property
    def every(self) -> float:
        """Seconds after which it is told again."""

    async def remind(self, alerts: Sequence[Alert], *, link: str | None) -> None:
        """Tell it of alerts that last, and of those that are just over.

        Args:
            alerts: As they are, at least one.
            link: As in a message.

        Raises:
            NotDelivered: it was not taken.
        """
