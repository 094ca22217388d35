"""Keeping requests to addresses that are not trusted away from private networks and from machines' metadata.

What a name resolves to is checked in the moment in which it is connected to, and the connection goes to the address
that was checked: a name that resolves otherwise a moment later leads nowhere else.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

import httpx2

from germane.alerting.channels.channel import NotDelivered

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a name, for a port. Raises OSError."""
PORTS: Final = (80, 443)
METADATA: Final[frozenset[Address]] = frozenset(
    map(
        ip_address,
        (
            "169.254.169.254",  # most clouds
            "169.254.170.2",  # tasks of Amazon ECS
            "169.254.170.23",  # pods of Amazon EKS
            "fd00:ec2::254",  # Amazon EC2
            "fd00:ec2::23",  # pods of Amazon EKS
            "fd20:ce::254",  # Google Cloud
            "100.100.100.200",  # Alibaba Cloud
            "168.63.129.16",  # Azure
        ),
    )
)
"""Where clouds tell machines their secrets: closed also where their network is allowed."""
CLOSED: Final[Sequence[Network]] = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this network, unspecified
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared by a provider's customers (CGNAT)
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link-local
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, broadcast
            "::/96",  # unspecified, loopback, IPv4-compatible
            "::ffff:0:0/96",  # IPv4-mapped
            "::ffff:0:0:0/96",  # IPv4-translated
            "64:ff9b::/96",  # NAT64
            "64:ff9b:1::/48",  # NAT64, local
            "100::/64",  # discarded
            "2001::/23",  # protocol assignments, Teredo, ORCHID
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "3fff::/20",  # documentation
            "5f00::/16",  # segment routing
            "fc00::/7",  # private
            "fe80::/10",  # link-local
            "fec0::/10",  # site-local
            "ff00::/8",  # multicast
        ),
    )
)

_TRANSLATED: Final = tuple(map(IPv6Network, ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")))
"""Networks of IPv6 whose addresses end with one of IPv4."""


async def resolve(host: str, port: int) -> list[str]:
    """Ask the system for the addresses of a name."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class Guard:
    """Says to which addresses a request may go: public ones over https at ports 80 and 443.

    Args:
        allow: Networks that are open although they are private, by any scheme and at any port.
        resolve: Looks names up.
    """

    def __init__(self, allow: Iterable[str] = (), *, resolve: Resolve = resolve) -> None:
        self._allowed = tuple(map(ip_network, allow))
        self._resolve = resolve

    async def addresses(self, url: httpx2.URL) -> list[str]:
        """Return the addresses to connect to, all of them checked.

        Raises:
            NotDelivered: one of them is closed, the name has none, or it is not https at a usual port.
        """
        port = url.port or {"http": 80, "https": 443}.get(url.scheme, 0)
        try:
            found = [ip_address(one) for one in await self._resolve(url.raw_host.decode(), port)]
        except (OSError, UnicodeError, ValueError):
            raise NotDelivered("its host cannot be looked up") from None
        if not found:
            raise NotDelivered("its host has no address")
        if all(map(self._is_allowed, found)):
            return list(map(str, found))
        if any(map(is_closed, found)):
            raise NotDelivered(
                "its host lies in a network that is closed to addresses that are not trusted", again=False
            )
        if url.scheme != "https" or port not in PORTS:
            raise NotDelivered("an address that is not trusted must be https:// at port 443 or 80", again=False)
        return list(map(str, found))

    def _is_allowed(self, address: Address) -> bool:
        return METADATA.isdisjoint(_meant(address)) and any(address in network for network in self._allowed)


def _meant(address: Address) -> set[Address]:
    """Return the address, and the IPv4 address that an IPv6 address of a gateway leads to."""
    if isinstance(address, IPv4Address):
        return {address}
    plain = IPv6Address(int(address))  # without the interface that may be named behind it
    translated = IPv4Address(int(plain) & 0xFFFF_FFFF) if any(plain in one for one in _TRANSLATED) else None
    return {one for one in (plain, plain.ipv4_mapped, plain.sixtofour, translated) if one is not None}


def is_closed(address: Address) -> bool:
    """Whether the address is other than public."""
    known = any(address in network for network in CLOSED)
    return known or address in METADATA or address.is_multicast or not address.is_global


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Connects to addresses that the guard has checked, under the name that was asked for. It knows no proxy."""

    def __init__(self, guard: Guard, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self._guard = guard
        self._transport = transport or httpx2.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the first of its addresses that takes a connection."""
        url = request.url
        addresses = await self._guard.addresses(url)
        # The certificate is compared with this name, and the header Host was made of it already.
        request.extensions = {**request.extensions, "sni_hostname": url.raw_host.decode()}
        for address in addresses[:-1]:
            request.url = url.copy_with(host=address)
            try:
                return await self._transport.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        request.url = url.copy_with(host=addresses[-1])
        return await self._transport.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()
