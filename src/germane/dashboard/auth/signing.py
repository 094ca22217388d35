"""Seals: values that go to a browser and must come back as they were, and those who were let in by a token."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta
from typing import Final

from pydantic import SecretStr

LIFETIME: Final = timedelta(days=7)
"""For so long somebody who gave the token is let in without it."""


class Seals:
    """Seals of one token; without a token of one process.

    With a token the key is made from it, so that any number of processes accept each other's seals, also after a
    restart. What is sealed says nothing of the token.

    Args:
        token: What machines and people show; None where nobody has to.
    """

    def __init__(self, token: SecretStr | None) -> None:
        self._token = None if token is None else token.get_secret_value().encode()
        secret = secrets.token_bytes(32) if self._token is None else self._token
        self._key = hmac.digest(secret, b"germane dashboard", hashlib.sha256)

    @property
    def asks(self) -> bool:
        """Whether a token has to be shown."""
        return self._token is not None

    def fits(self, shown: str) -> bool:
        """Whether this is the token; takes as long for one wrong token as for another."""
        return self._token is not None and hmac.compare_digest(shown.encode("utf-8", "replace"), self._token)

    def admission(self, now: datetime) -> str:
        """Return what a browser keeps of somebody who gave the token: when it ends, at random, sealed."""
        said = f"{int((now + LIFETIME).timestamp())}.{secrets.token_urlsafe(12)}"
        return f"{said}.{self._seal('admission', said)}"

    def admits(self, shown: str, now: datetime) -> bool:
        """Whether it was made by :meth:`admission`, and has not ended."""
        said, _, seal = shown.rpartition(".")
        if not hmac.compare_digest(seal.encode("utf-8", "replace"), self._seal("admission", said).encode()):
            return False
        return now.timestamp() < int(said.partition(".")[0])

    def form_seal(self, visit: str) -> str:
        """Return what the forms of a visit carry, so that no other site can have made them."""
        return self._seal("form", visit)

    def is_form_seal(self, visit: str, shown: str) -> bool:
        """Whether a form came from a page that was shown on this visit."""
        return hmac.compare_digest(shown.encode("utf-8", "replace"), self.form_seal(visit).encode())

    def _seal(self, purpose: str, said: str) -> str:
        return hmac.new(self._key, f"{purpose}\n{said}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()
