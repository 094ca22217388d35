"""What is answered in place of a page: the cause, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping

from germane.errors import GermaneError


class Refusal(GermaneError):
    """A request that is not answered as it was meant.

    Args:
        status: Of HTTP.
        cause: A sentence of ours, without anything that the visitor sent.
        next_step: A sentence: what to do now.
        headers: To be sent with it.
    """

    def __init__(self, status: int, cause: str, next_step: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(cause)
        self.status = status
        self.cause = cause
        self.next_step = next_step
        self.headers = dict(headers or {})
