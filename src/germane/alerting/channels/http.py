"""HTTP requests sent by channels.

Each request is attempted once, does not follow redirects, and keeps the URL out of error messages.

With a guard, requests cannot reach private networks or cloud metadata services (SSRF). A host name is resolved and
checked immediately before connecting, and the connection goes to the checked address, so DNS rebinding (where a name
resolves to a different address a moment later) has no effect.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

import httpx2

from germane.delivery import DeliveryError
from germane.logging_filters import suppressed_loggers
from germane.retry_after import parse_retry_after
from germane.settings import HTTPChannel

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""A function that resolves a host name and port to addresses, or raises OSError."""
ALLOWED_PORTS: Final = (80, 443)
METADATA_ADDRESSES: Final[frozenset[Address]] = frozenset(
    map(
        ip_address,
        (
            "169.254.169.254",  # most clouds
            "169.254.170.2",  # Amazon ECS tasks
            "169.254.170.23",  # Amazon EKS pods
            "fd00:ec2::254",  # Amazon EC2
            "fd00:ec2::23",  # Amazon EKS pods
            "fd20:ce::254",  # Google Cloud
            "100.100.100.200",  # Alibaba Cloud
            "168.63.129.16",  # Azure
        ),
    )
)
"""Addresses of cloud metadata services. They are blocked even if their network is allowed."""
BLOCKED_NETWORKS: Final[Sequence[Network]] = tuple(
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
            "192.88.99.0/24",  # 6to4 relays
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
_EMBEDDED_IPV4: Final = tuple(map(IPv6Network, ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")))
"""IPv6 networks whose addresses embed an IPv4 address in their last 32 bits."""
TIMEOUT: Final = 10.0
"""Timeout in seconds for each step of a request. The timeout for the whole request is twice as long."""
_HEADERS: Final = {"Content-Type": "application/json", "User-Agent": "germane"}


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host name from the system's resolver."""
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in infos]


class NetworkGuard:
    """Allows HTTPS requests to public addresses on port 443 or 80.

    Args:
        allowed_networks: Private networks that are also allowed, with any scheme and port.
        resolve: The function that resolves host names.
    """

    def __init__(self, allowed_networks: Iterable[str] = (), *, resolve: Resolve = resolve) -> None:
        self._allowed_networks = tuple(map(ip_network, allowed_networks))
        self._resolve = resolve

    async def resolve_allowed(self, url: httpx2.URL) -> list[str]:
        """Resolve the URL's host and return its addresses. Raise DeliveryError if one of them is blocked."""
        port = url.port or {"http": 80, "https": 443}.get(url.scheme, 0)
        try:
            addresses = [ip_address(address) for address in await self._resolve(url.raw_host.decode(), port)]
        except (OSError, UnicodeError, ValueError):
            raise DeliveryError("the host name cannot be resolved") from None
        if not addresses:
            raise DeliveryError("the host name has no address")
        if all(map(self._is_allowed, addresses)):
            return list(map(str, addresses))
        if any(map(is_blocked, addresses)):
            raise DeliveryError(
                "the host is in a private network, and allow_private_networks is false", retryable=False
            )
        if url.scheme != "https" or port not in ALLOWED_PORTS:
            raise DeliveryError(
                "if allow_private_networks is false, the URL must use https:// and port 443 or 80", retryable=False
            )
        return list(map(str, addresses))

    def _is_allowed(self, address: Address) -> bool:
        equivalents: set[Address | None] = {address}
        if isinstance(address, IPv6Address):  # also check the IPv4 address that a gateway would translate it to
            plain = IPv6Address(int(address))  # without a zone
            equivalents = {plain, plain.ipv4_mapped, plain.sixtofour}
            if any(plain in network for network in _EMBEDDED_IPV4):
                equivalents.add(IPv4Address(int(plain) & 0xFFFF_FFFF))
        return METADATA_ADDRESSES.isdisjoint(equivalents) and any(
            address in network for network in self._allowed_networks
        )


def is_blocked(address: Address) -> bool:
    """Return whether an address is not public, or belongs to a cloud metadata service."""
    return (
        any(address in network for network in BLOCKED_NETWORKS)
        or address in METADATA_ADDRESSES
        or address.is_multicast
        or not address.is_global
    )


class GuardedTransport(httpx2.AsyncBaseTransport):
    """A transport that connects only to checked addresses, and ignores proxies.

    TLS and the Host header use the original host name.
    """

    def __init__(self, guard: NetworkGuard, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self._guard = guard
        self._transport = transport or httpx2.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the first of the host's addresses that accepts a connection."""
        url = request.url
        addresses = await self._guard.resolve_allowed(url)
        # The certificate is verified against this name. The Host header already contains it.
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


class JsonPoster:
    """Sends JSON in POST requests.

    Args:
        guard: The guard that restricts addresses, or None to allow all of them.
        timeout: Timeout in seconds for each step of a request.
    """

    def __init__(self, guard: NetworkGuard | None = None, *, timeout: float = TIMEOUT) -> None:
        self._guard = guard
        self._timeout = timeout

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str] = {}, *, auth: tuple[str, str] | None = None
    ) -> int:
        """Send a request, without retries, and return the status of the successful response.

        Raises:
            DeliveryError: The request failed or was rejected. The error text contains no part of the URL.
        """
        sent_headers = {**_HEADERS, **headers}
        try:
            client = httpx2.AsyncClient(
                timeout=self._timeout,
                follow_redirects=False,
                transport=None if self._guard is None else GuardedTransport(self._guard),
                trust_env=self._guard is None,
            )
        except (ImportError, ValueError) as error:  # the text may quote the proxy's password
            raise DeliveryError(f"the proxy from the environment is unusable ({type(error).__name__})") from None
        try:
            with suppressed_loggers():  # httpx would log the whole URL
                async with (
                    asyncio.timeout(2 * self._timeout),
                    client,
                    client.stream("POST", url, content=body, headers=sent_headers, auth=auth) as response,
                ):
                    status = response.status_code  # the body is not read
        except (httpx2.TransportError, TimeoutError) as error:  # before HTTPError, which includes TransportError
            raise DeliveryError(type(error).__name__) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
            raise DeliveryError(type(error).__name__, retryable=False) from None
        if response.is_success:
            return status
        retryable = status == httpx2.codes.TOO_MANY_REQUESTS or response.is_server_error
        retry_after = parse_retry_after(response.headers) if retryable else None
        raise DeliveryError(f"status {status}", status=status, retryable=retryable, retry_after=retry_after)


def build_poster(settings: HTTPChannel) -> JsonPoster:
    """Build the poster for a channel from its settings."""
    guard = None if settings.allow_private_networks else NetworkGuard(settings.allowed_networks)
    return JsonPoster(guard)
