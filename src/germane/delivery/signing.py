"""Headers by which the receiver of a webhook recognizes repeated and forged requests."""

from __future__ import annotations

import hashlib
import hmac
import time


def signed_headers(body: bytes, idempotency_key: str, secret: str | None) -> dict[str, str]:
    """Return the headers of a request: its key, which is the same for every attempt, and a signature if there is a
    secret.

    The signature is ``sha256=`` followed by the HMAC-SHA256 of ``<Germane-Timestamp>.<body>`` in hexadecimal digits.
    """
    timestamp = str(int(time.time()))
    headers = {"Idempotency-Key": idempotency_key, "Germane-Timestamp": timestamp}
    if secret is not None:
        signature = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
        headers["Germane-Signature"] = f"sha256={signature.hexdigest()}"
    return headers
