"""Names under which the dashboard may be asked for, and who is on this machine."""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import IPv6Address, ip_address
from typing import Final

ANY: Final = "*"
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
_FORWARDED: Final = frozenset({b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"})
"""What a proxy tells of somebody for whom it asks."""


def name_of(host: str) -> str | None:
    """Return the name in a ``Host`` header, without the port and in small letters; None where that is none."""
    found = _HOST.fullmatch(host)
    return None if found is None else found[1].strip("[]").rstrip(".").lower()


def is_loopback(name: str) -> bool:
    """Whether a name or address is this machine for itself: ``localhost``, 127.0.0.0/8 or ::1."""
    if name == "localhost":
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def is_welcome(name: str, names: Collection[str], *, alone: bool) -> bool:
    """Whether pages are shown under a name.

    A name that somebody else may point at this machine is refused unless it is one of ``names``: a page from there
    would otherwise read ours (DNS rebinding). Addresses in numbers cannot be pointed anywhere.

    Args:
        name: As :func:`name_of` returns it.
        names: What the settings allow.
        alone: Whether only this machine itself is let in.
    """
    if is_loopback(name) or name in names:
        return True
    return not alone and (ANY in names or _is_address(name))


def comes_from_here(client: tuple[str, int] | None, headers: Collection[tuple[bytes, bytes]]) -> bool:
    """Whether a connection comes from this machine, and not from a proxy that asks for somebody else."""
    return client is not None and is_loopback(client[0]) and not any(name in _FORWARDED for name, _ in headers)


def is_foreign(origin: str | None, site: str | None, host: str) -> bool:
    """Whether a browser says that a form was sent by a page that is not ours.

    Args:
        origin: The header ``Origin``; ``null`` says nothing, for our own pages send no referrer.
        site: The header ``Sec-Fetch-Site``, which no page can forge; where it is there, it alone counts.
        host: The header ``Host``.
    """
    if site is not None:
        return site not in {"same-origin", "none"}
    if origin is None or origin == "null":
        return False
    return origin.partition("://")[2].lower() != host.lower()


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
