"""The interface of sinks, which write scores and labels to the tools in which teams look at their traces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from germane.delivery import DeliveryError
from germane.errors import SettingsError
from germane.exchange import AttributeValue
from germane.sinks.client import SinkClient

HUMAN_LABEL: Final = "human_label"
"""Name of people's labels in backends."""
SPAN_TIMEOUT: Final = timedelta(hours=1)
"""Time for which a backend may receive a span later than its scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkScore:
    """The newest score of a scorer for an exchange. Scores without a value are not sent."""

    scorer: str
    fingerprint: str
    value: float
    label: str | None
    explanation: str | None
    """None if the text was not stored, or has been erased."""
    judge: str | None
    """Name of the judge model."""
    scored_at: datetime
    superseded: tuple[str, ...] = ()
    """Fingerprints of older scores by this scorer, which the backend should no longer show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkLabel:
    """A person's label for an exchange."""

    id: str
    """Does not change, so it identifies the label in the backend too."""
    score: float
    """0 (bad) to 1 (good)."""
    comment: str | None
    """None if there is none, or if it has been erased."""
    user: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkItem:
    """The scores and labels of an exchange, as they are stored at the time of sending."""

    exchange_id: str
    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    service: str
    route: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    """What the application has stored with the exchange, such as a tenant."""
    scores: tuple[SinkScore, ...]
    """One for each scorer, by name."""
    labels: tuple[SinkLabel, ...]
    """Oldest first."""


class MissingSpanError(DeliveryError):
    """The backend does not know the span. It may arrive later, but it is not waited for longer than an hour."""

    def __init__(self, problem: str = "the backend has not received the span", *, status: int | None = None) -> None:
        super().__init__(problem, status=status, retry_timeout=SPAN_TIMEOUT)


class Sink(ABC):
    """A backend to which scores and labels are written. Secrets are read on each use, because they can be rotated.

    Attributes:
        name: The name in the settings.
        batch_size: Maximum number of exchanges per call of :meth:`write`.
        client: Sends the requests.
    """

    batch_size: int = 100

    def __init__(self, name: str, *, client: SinkClient | None = None) -> None:
        self.name = name
        self.client = client or SinkClient()

    @property
    def config_error(self) -> str | None:
        """The reason why this process cannot write to the sink, such as a missing secret; None if it can."""
        try:
            self.headers()
        except SettingsError as error:
            return str(error)
        return None

    @property
    @abstractmethod
    def destination(self) -> str:
        """The URL without secrets."""

    @abstractmethod
    def headers(self) -> dict[str, str]:
        """Return the headers of requests, with the credentials. Raise SettingsError if a secret cannot be read."""

    @abstractmethod
    async def write(self, items: Sequence[SinkItem]) -> Mapping[str, DeliveryError]:
        """Write scores and labels. Writing the same ones again changes nothing, because any call may be repeated.

        If a backend refuses several items together, for example because they are too large, the caller halves them.

        Returns:
            The errors of the exchanges that were not written, by exchange id. The others were written.

        Raises:
            DeliveryError: The backend is unreachable or does not accept the request: nothing is known to be written.
            SettingsError: A secret cannot be read.
        """

    @abstractmethod
    async def test(self) -> None:
        """Check the address and the credentials with a request that changes nothing.

        Raises:
            DeliveryError: The backend does not accept the request.
            SettingsError: A secret cannot be read.
        """
