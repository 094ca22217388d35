"""The interface of sinks, which write scores and labels to the tools in which teams look at their traces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from germane.delivery import DeliveryError
from germane.errors import SettingsError
from germane.sinks.client import SinkClient
from germane.storage import SinkItem

HUMAN_LABEL: Final = "human_label"
"""Name of people's labels in backends."""
SPAN_TIMEOUT: Final = timedelta(hours=1)
"""Time for which a backend may receive a span later than its scores."""
MISSING_SPAN: Final = "the backend has not received the span"


class MissingSpanError(DeliveryError):
    """The backend does not know the span. It may arrive later, but it is not waited for longer than an hour."""

    def __init__(self, problem: str = MISSING_SPAN, *, status: int | None = None) -> None:
        super().__init__(problem, status=status, retry_timeout=SPAN_TIMEOUT)


class Sink(ABC):
    """A backend to which scores and labels are written. Secrets are read on each use, because they can be rotated.

    Attributes:
        name: The name in the settings.
        batch_size: Maximum number of exchanges per call of :meth:`write`.
        client: Sends the requests.
    """

    batch_size: int = 100

    def __init__(self, name: str, settings: Any, *, client: SinkClient | None = None) -> None:
        self.name = name
        self._settings = settings
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
    def destination(self) -> str:
        """The URL without secrets."""
        return str(self._settings.url)

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
