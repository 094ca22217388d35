"""The targets of deliveries. A new kind of target says how an item is sent, and which errors are worth a retry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from germane.errors import GermaneError
from germane.storage import Delivery, TargetQueue


class DeliveryError(GermaneError):
    """A target did not accept an item. The error text contains no secrets.

    Args:
        problem: Description of the failure, such as ``status 503``.
        status: HTTP or SMTP status, if there was a response.
        retryable: Whether a later attempt may succeed.
        retry_after: The target's requested delay before a retry, in seconds.
        retry_timeout: The time for which an item is retried after it first failed with this error; by default, the age
            at which items of the queue are given up.
    """

    def __init__(
        self,
        problem: str,
        *,
        status: int | None = None,
        retryable: bool = True,
        retry_after: float | None = None,
        retry_timeout: timedelta | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        self.retry_timeout = retry_timeout


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of sending items together."""

    status: int | None = None
    """HTTP or SMTP status, if there was a response."""
    errors: Mapping[int, DeliveryError] = field(default_factory=dict)
    """The errors of the items that the target did not accept, by item id. It accepted the others."""


class Target(ABC):
    """A target, to which items are sent one after another.

    Attributes:
        queue: The items for the target.
        label: The target in log messages, such as ``channel oncall``.
        noun: An item in log messages, such as ``an alert``.
    """

    def __init__(self, queue: TargetQueue, *, label: str, noun: str) -> None:
        self.queue = queue
        self.label = label
        self.noun = noun

    @property
    def config_error(self) -> str | None:
        """The reason why this process cannot send to the target, or None if it can."""
        return None

    def group(self, items: Sequence[Delivery]) -> Iterable[Sequence[Delivery]]:
        """Divide claimed items into those that are sent together. By default, each is sent alone."""
        return ([item] for item in items)

    @abstractmethod
    async def send(self, items: Sequence[Delivery]) -> Sent:
        """Send items together, without retries.

        Raises:
            DeliveryError: None of the items was accepted. If items have no order, the worker assumes that the target
                accepts no other ones either, and pauses.
            SettingsError: The target is not configured correctly. The attempt is repeated.
        """
