"""Signed session cookies and form tokens.

Starlette's SessionMiddleware is not used, because it cannot limit cookies to the prefix of a mounted application, set
``Secure`` per request, or use an injected clock.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta
from typing import Final

from pydantic import SecretStr

SESSION_LIFETIME: Final = timedelta(days=7)
SESSION_COOKIE: Final = "germane_session"
"""Session cookie for a visitor who has signed in with the token."""
VISITOR_COOKIE: Final = "germane_visit"
"""Cookie that ties forms to a browser if no token is required."""


class Signer:
    """Creates and verifies signatures with a key derived from the token, or with a random key if there is no token.

    Processes with the same token accept each other's signatures, even after a restart. Signatures do not reveal the
    token.
    """

    def __init__(self, token: SecretStr | None) -> None:
        self._token = None if token is None else token.get_secret_value().encode()
        secret = secrets.token_bytes(32) if self._token is None else self._token
        self._key = hmac.digest(secret, b"germane dashboard", hashlib.sha256)

    @property
    def requires_token(self) -> bool:
        """Whether visitors must present a token."""
        return self._token is not None

    def is_token(self, presented: str) -> bool:
        """Return whether a string is the token. The comparison takes constant time."""
        return self._token is not None and hmac.compare_digest(presented.encode("utf-8", "replace"), self._token)

    def create_session(self, now: datetime) -> str:
        """Return the value of a new session cookie, which consists of expiry time, random id and signature."""
        payload = f"{int((now + SESSION_LIFETIME).timestamp())}.{secrets.token_urlsafe(12)}"
        return f"{payload}.{self._sign('admission', payload)}"

    def is_valid_session(self, cookie: str, now: datetime) -> bool:
        """Return whether a cookie's value was created by :meth:`create_session` and has not expired."""
        payload, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), self._sign("admission", payload).encode()):
            return False
        return now.timestamp() < int(payload.partition(".")[0])

    def create_form_token(self, session_id: str) -> str:
        """Return the CSRF token for a session's forms."""
        return self._sign("form", session_id)

    def is_form_token(self, session_id: str, presented: str) -> bool:
        """Return whether a CSRF token belongs to a session. The comparison takes constant time."""
        return hmac.compare_digest(presented.encode("utf-8", "replace"), self.create_form_token(session_id).encode())

    def _sign(self, purpose: str, payload: str) -> str:
        return hmac.new(self._key, f"{purpose}\n{payload}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()
