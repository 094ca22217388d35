"""Protection against requests to private networks."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator, Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.alerting.channels.conftest import Answer, Receiver, a_message

from germane.alerting.channels.http import (
    BLOCKED_NETWORKS,
    METADATA_ADDRESSES,
    GuardedTransport,
    JsonPoster,
    NetworkGuard,
    build_poster,
    is_blocked,
)
from germane.alerting.channels.webhook import Webhook
from germane.delivery import DeliveryError
from germane.settings import channels as settings

PUBLIC = "93.184.216.34"


class Names:
    """A resolver that returns the given answers in turn and then repeats the last."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def addresses(url: str, *found: str, allow: Sequence[str] = ()) -> list[str]:
    return asyncio.run(NetworkGuard(allow, resolve=Names(found)).resolve_allowed(httpx2.URL(url)))


def refusal(url: str, *found: str, allow: Sequence[str] = ()) -> DeliveryError:
    with pytest.raises(DeliveryError) as raised:
        addresses(url, *found, allow=allow)
    return raised.value


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.9.9.9", "169.254.1.1", "169.254.169.254", "172.16.0.1",
        "172.31.255.255", "192.0.0.8", "192.168.1.1", "198.18.0.1", "224.0.0.251", "239.1.1.1", "240.0.0.1",
        "255.255.255.255", "192.88.99.1", "168.63.129.16", "100.100.100.200",
        "::", "::1", "::ffff:10.0.0.1", "::ffff:93.184.216.34", "::10.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2002:7f00:1::", "2002:a9fe:a9fe::1", "fc00::1", "fd00:ec2::254",
        "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "2001:db8::1", "100::1", "::ffff:0:10.0.0.1",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public_are_blocked(address: str) -> None:
    """This covers private, loopback, link-local, metadata, CGNAT, NAT64, 6to4, Teredo and multicast addresses."""
    error = refusal("https://example.com/x", address)

    assert not error.retryable
    assert address not in str(error)


@pytest.mark.parametrize("address", [PUBLIC, "1.1.1.1", "2606:2800:220:1:248:1893:25c8:1946", "2a00:1450:4001::64"])
def test_public_addresses_are_allowed(address: str) -> None:
    """Ordinary receivers are reachable."""
    assert addresses("https://example.com/x", address) == [address]


@given(st.sampled_from(BLOCKED_NETWORKS), st.integers(min_value=0, max_value=2**128 - 1))
def test_every_address_in_a_blocked_network_is_blocked(network: Any, number: int) -> None:
    """The position of the address in the network does not matter."""
    assert is_blocked(network[number % network.num_addresses])


def test_a_host_is_blocked_if_one_of_its_addresses_is_blocked() -> None:
    """A name with a public and a private address is rejected."""
    refusal("https://example.com/", PUBLIC, "10.0.0.1")
    refusal("https://example.com/", "::1", PUBLIC)


@pytest.mark.parametrize(
    "url", ["http://example.com/", "https://example.com:8443/", "https://example.com:22/", "http://example.com:443/"]
)
def test_unsupported_url_schemes_and_ports_are_blocked(url: str) -> None:
    """Requests cannot reach other services."""
    assert not refusal(url, PUBLIC).retryable


@pytest.mark.parametrize("url", ["https://example.com/", "https://example.com:443/", "https://example.com:80/"])
def test_https_is_allowed_on_ports_443_and_80(url: str) -> None:
    """Both ports are allowed."""
    assert addresses(url, PUBLIC) == [PUBLIC]


def test_configured_networks_are_reachable() -> None:
    """Any scheme and port are allowed, but metadata addresses stay blocked."""
    assert addresses("http://alertmanager:9093/", "10.1.0.7", allow=["10.1.0.0/16"]) == ["10.1.0.7"]
    refusal("http://alertmanager:9093/", "10.2.0.7", allow=["10.1.0.0/16"])
    refusal("http://alertmanager:9093/", "10.1.0.7", "10.2.0.7", allow=["10.1.0.0/16"])
    behind = ["::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "fd20:ce::254%eth0"]
    for address in (*map(str, METADATA_ADDRESSES), *behind):
        refusal("http://metadata/", address, allow=["0.0.0.0/0", "::/0"])


def test_delivery_to_a_host_that_cannot_be_resolved_is_retried() -> None:
    """DNS failures are temporary."""

    async def nowhere(host: str, port: int) -> list[str]:
        raise OSError

    with pytest.raises(DeliveryError) as raised:
        asyncio.run(NetworkGuard(resolve=nowhere).resolve_allowed(httpx2.URL("https://nowhere.example/")))
    assert raised.value.retryable
    assert refusal("https://nowhere.example/").retryable


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "localhost", "[::1]"])
def test_every_host_name_that_resolves_to_loopback_is_blocked(host: str) -> None:
    """The resolved address is checked, not the name."""
    with pytest.raises(DeliveryError):
        asyncio.run(JsonPoster(NetworkGuard()).post(f"https://{host}/", b"{}"))


def test_the_connection_uses_the_address_that_was_checked(receiver: Receiver) -> None:
    """A name is resolved once, so DNS rebinding has no effect. The Host header still contains the name."""
    names = Names(["127.0.0.1"], ["10.9.9.9"])
    guard = NetworkGuard(["127.0.0.0/8"], resolve=names)

    asyncio.run(JsonPoster(guard).post(f"http://rebinding.example:{receiver.server_port}/x", b"{}"))

    assert names.asked == [("rebinding.example", receiver.server_port)]
    (post,) = receiver.posts
    assert post.headers["Host"] == f"rebinding.example:{receiver.server_port}"


def test_addresses_are_checked_for_every_request(receiver: Receiver) -> None:
    """A name that becomes private later is blocked."""
    guard = NetworkGuard(["127.0.0.0/8"], resolve=Names(["127.0.0.1"], ["10.9.9.9"]))
    web, url = JsonPoster(guard), f"http://rebinding.example:{receiver.server_port}/"
    asyncio.run(web.post(url, b"{}"))

    with pytest.raises(DeliveryError, match="private network"):
        asyncio.run(web.post(url, b"{}"))
    assert len(receiver.posts) == 1


def test_the_next_address_is_used_if_one_refuses_the_connection(receiver: Receiver) -> None:
    """HTTP clients usually do the same."""
    guard = NetworkGuard(["127.0.0.0/8", "::1/128"], resolve=Names(["::1", "127.0.0.1"]))

    assert asyncio.run(JsonPoster(guard).post(f"http://two.example:{receiver.server_port}/", b"{}")) == 200


def test_guarded_requests_do_not_follow_redirects(receiver: Receiver) -> None:
    """Redirects are followed neither to allowed nor to blocked addresses."""
    receiver.answers = [Answer(307, {"Location": f"http://127.0.0.1:{receiver.server_port}/elsewhere"})]
    guard = NetworkGuard(["127.0.0.0/8"])

    with pytest.raises(DeliveryError, match="307"):
        asyncio.run(JsonPoster(guard).post(receiver.url, b"{}"))
    assert [post.path for post in receiver.posts] == ["/"]


def test_guarded_requests_ignore_proxies(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy could connect to any address."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    assert asyncio.run(JsonPoster(NetworkGuard(["127.0.0.0/8"])).post(receiver.url, b"{}")) == 200


def test_webhooks_to_private_networks_are_allowed_by_default(receiver: Receiver, secret: Any) -> None:
    """`allow_private_networks = false` blocks them, `allowed_networks` permits some."""
    url = secret("URL", receiver.url)
    asyncio.run(Webhook(settings.WebhookSettings(type="webhook", url=url)).send(a_message()))
    with pytest.raises(DeliveryError, match="private network"):
        asyncio.run(
            Webhook(settings.WebhookSettings(type="webhook", url=url, allow_private_networks=False)).send(a_message())
        )
    allowed = settings.WebhookSettings(
        type="webhook", url=url, allow_private_networks=False, allowed_networks=("127.0.0.0/8",)
    )
    asyncio.run(Webhook(allowed, poster=build_poster(allowed)).send(a_message()))

    assert len(receiver.posts) == 2


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A key and a certificate for good.example only, in one file."""
    file = tmp_path / "server.pem"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=good.example"
    names = ["-addext", "subjectAltName=DNS:good.example", "-keyout", str(tmp_path / "key"), "-out", str(file)]
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which creates the certificate, is not installed")
    subprocess.run(["openssl", *made.split(), *names], check=True, capture_output=True)
    file.write_bytes((tmp_path / "key").read_bytes() + file.read_bytes())
    return file


@pytest.fixture
def secure(certificate: Path) -> Iterator[Receiver]:
    """A receiver that speaks TLS."""
    with Receiver() as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("host", "taken"), [("good.example", True), ("evil.example", False)])
def test_the_certificate_is_checked_against_the_host_name(
    secure: Receiver, certificate: Path, host: str, taken: bool
) -> None:
    """The certificate is not checked against the address."""
    context = ssl.create_default_context(cafile=str(certificate))
    guard = NetworkGuard(["127.0.0.0/8"], resolve=Names(["127.0.0.1"]))

    async def post() -> int:
        inner = httpx2.AsyncHTTPTransport(verify=context, trust_env=False)
        async with httpx2.AsyncClient(transport=GuardedTransport(guard, inner)) as client:
            return (await client.post(f"https://{host}:{secure.server_port}/", content=b"{}")).status_code

    if taken:
        assert asyncio.run(post()) == 200
        assert secure.posts[0].headers["Host"] == f"{host}:{secure.server_port}"
    else:
        with pytest.raises(httpx2.ConnectError):
            asyncio.run(post())


def test_blocked_networks_cover_metadata_services() -> None:
    """Metadata addresses outside those networks are listed separately."""
    assert all(isinstance(network, type(ip_network(str(network)))) for network in BLOCKED_NETWORKS)
    assert is_blocked(ip_address("168.63.129.16"))
