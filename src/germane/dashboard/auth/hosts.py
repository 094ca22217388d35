"""Checks for host names, and for requests from this machine or from other sites.

Starlette's TrustedHostMiddleware is not used, because it rejects IPv6 addresses, cannot accept all IP addresses, and
does not suggest a fix in its error responses.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import IPv6Address, ip_address
from typing import Final

ANY_HOST: Final = "*"
_HOST_HEADER: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
_PROXY_HEADERS: Final = frozenset({b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"})


def parse_host(header: str) -> str | None:
    """Return the host name or address in a ``Host`` header, in lower case and without the port; None if invalid."""
    match = _HOST_HEADER.fullmatch(header)
    return None if match is None else match[1].strip("[]").rstrip(".").lower()


def is_loopback(host: str) -> bool:
    """Return whether a host is ``localhost``, an address in 127.0.0.0/8, or ::1."""
    if host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def is_allowed_host(host: str, allowed: Collection[str], *, local_only: bool) -> bool:
    """Return whether pages may be served under a host name or address.

    Names that are not in ``allowed`` are rejected, because anyone can point a domain name at this machine and let a
    page on that domain read the dashboard (DNS rebinding). This attack is not possible with IP addresses. ``host`` is
    the result of :func:`parse_host`. With ``local_only``, only requests from this machine are accepted.
    """
    if is_loopback(host) or host in allowed:
        return True
    if local_only:
        return False
    try:
        ip_address(host)
    except ValueError:
        return ANY_HOST in allowed
    return True


def is_from_this_machine(client: tuple[str, int] | None, headers: Collection[tuple[bytes, bytes]]) -> bool:
    """Return whether a connection comes directly from this machine, not from another client through a proxy."""
    return client is not None and is_loopback(client[0]) and not any(name in _PROXY_HEADERS for name, _ in headers)


def is_cross_site(origin: str | None, fetch_site: str | None, host: str) -> bool:
    """Return whether the request headers show that a form was submitted from another site.

    If ``Sec-Fetch-Site`` is present, it takes precedence, because pages cannot forge it. The origin ``null`` is
    inconclusive, because the dashboard's own pages send no referrer.
    """
    if fetch_site is not None:
        return fetch_site not in {"same-origin", "none"}
    if origin is None or origin == "null":
        return False
    return origin.partition("://")[2].lower() != host.lower()
