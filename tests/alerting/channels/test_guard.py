"""Addresses that are not trusted lead to nothing private, whatever their names resolve to, now or a moment later."""

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

from germane.alerting.channels import NotDelivered, Webhook
from germane.alerting.channels.http import Web, web_for
from germane.alerting.channels.network_guard import CLOSED, METADATA, Guard, GuardedTransport, is_closed
from germane.settings import channels as settings

PUBLIC = "93.184.216.34"


class Names:
    """A resolver that is told what to say, time after time; the last stays."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def addresses(url: str, *found: str, allow: Sequence[str] = ()) -> list[str]:
    return asyncio.run(Guard(allow, resolve=Names(found)).addresses(httpx2.URL(url)))


def refusal(url: str, *found: str, allow: Sequence[str] = ()) -> NotDelivered:
    with pytest.raises(NotDelivered) as told:
        addresses(url, *found, allow=allow)
    return told.value


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
def test_what_is_not_public_is_closed(address: str) -> None:
    """Private, loopback, link-local, metadata, CGNAT, NAT64, 6to4, Teredo, multicast, unspecified, mapped."""
    told = refusal("https://example.com/x", address)

    assert not told.again
    assert address not in str(told)


@pytest.mark.parametrize("address", [PUBLIC, "1.1.1.1", "2606:2800:220:1:248:1893:25c8:1946", "2a00:1450:4001::64"])
def test_what_is_public_is_open(address: str) -> None:
    """Or no alert would go anywhere."""
    assert addresses("https://example.com/x", address) == [address]


@given(st.sampled_from(CLOSED), st.integers(min_value=0, max_value=2**128 - 1))
def test_no_address_of_a_closed_network_is_open(network: Any, number: int) -> None:
    """Wherever in it the address lies."""
    assert is_closed(network[number % network.num_addresses])


def test_one_closed_address_closes_the_name() -> None:
    """A name with a public and a private address is an attack, or useless."""
    refusal("https://example.com/", PUBLIC, "10.0.0.1")
    refusal("https://example.com/", "::1", PUBLIC)


@pytest.mark.parametrize(
    "url", ["http://example.com/", "https://example.com:8443/", "https://example.com:22/", "http://example.com:443/"]
)
def test_only_https_at_usual_ports_is_spoken(url: str) -> None:
    """No other service is talked to in HTTP by way of us."""
    assert not refusal(url, PUBLIC).again


@pytest.mark.parametrize("url", ["https://example.com/", "https://example.com:443/", "https://example.com:80/"])
def test_https_at_usual_ports_is(url: str) -> None:
    """443 and 80."""
    assert addresses(url, PUBLIC) == [PUBLIC]


def test_networks_can_be_allowed() -> None:
    """Then by any scheme and at any port: an Alertmanager of one's own. Metadata stays closed."""
    assert addresses("http://alertmanager:9093/", "10.1.0.7", allow=["10.1.0.0/16"]) == ["10.1.0.7"]
    refusal("http://alertmanager:9093/", "10.2.0.7", allow=["10.1.0.0/16"])
    refusal("http://alertmanager:9093/", "10.1.0.7", "10.2.0.7", allow=["10.1.0.0/16"])
    behind = ["::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "fd20:ce::254%eth0"]
    for address in (*map(str, METADATA), *behind):
        refusal("http://metadata/", address, allow=["0.0.0.0/0", "::/0"])


def test_a_name_that_cannot_be_looked_up_may_be_there_later() -> None:
    """It is tried again."""

    async def nowhere(host: str, port: int) -> list[str]:
        raise OSError

    with pytest.raises(NotDelivered) as told:
        asyncio.run(Guard(resolve=nowhere).addresses(httpx2.URL("https://nowhere.example/")))
    assert told.value.again
    assert refusal("https://nowhere.example/").again


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "localhost", "[::1]"])
def test_loopback_by_any_other_name_is_closed(host: str) -> None:
    """The system's resolver says what a name means, and that is checked."""
    with pytest.raises(NotDelivered):
        asyncio.run(Web(Guard()).post(f"https://{host}/", b"{}"))


def test_the_connection_goes_to_the_address_that_was_checked(receiver: Receiver) -> None:
    """A name is looked up once: what it says a moment later leads nowhere. Host stays the name."""
    names = Names(["127.0.0.1"], ["10.9.9.9"])
    guard = Guard(["127.0.0.0/8"], resolve=names)

    asyncio.run(Web(guard).post(f"http://rebinding.example:{receiver.server_port}/x", b"{}"))

    assert names.asked == [("rebinding.example", receiver.server_port)]
    (post,) = receiver.posts
    assert post.headers["Host"] == f"rebinding.example:{receiver.server_port}"


def test_a_name_that_turns_private_is_closed_at_the_next_message(receiver: Receiver) -> None:
    """What was good once is checked again each time."""
    guard = Guard(["127.0.0.0/8"], resolve=Names(["127.0.0.1"], ["10.9.9.9"]))
    web, url = Web(guard), f"http://rebinding.example:{receiver.server_port}/"
    asyncio.run(web.post(url, b"{}"))

    with pytest.raises(NotDelivered, match="closed"):
        asyncio.run(web.post(url, b"{}"))
    assert len(receiver.posts) == 1


def test_the_next_address_is_tried_when_one_takes_no_connection(receiver: Receiver) -> None:
    """As any client does."""
    guard = Guard(["127.0.0.0/8", "::1/128"], resolve=Names(["::1", "127.0.0.1"]))

    assert asyncio.run(Web(guard).post(f"http://two.example:{receiver.server_port}/", b"{}")) == 200


def test_a_redirect_leads_nowhere(receiver: Receiver) -> None:
    """Neither to where the guard would say no, nor anywhere else."""
    receiver.answers = [Answer(307, {"Location": f"http://127.0.0.1:{receiver.server_port}/elsewhere"})]
    guard = Guard(["127.0.0.0/8"])

    with pytest.raises(NotDelivered, match="307"):
        asyncio.run(Web(guard).post(receiver.url, b"{}"))
    assert [post.path for post in receiver.posts] == ["/"]


def test_no_proxy_of_the_environment_is_asked(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would connect to what it likes."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    assert asyncio.run(Web(Guard(["127.0.0.0/8"])).post(receiver.url, b"{}")) == 200


def test_configured_addresses_are_trusted_unless_they_say_otherwise(receiver: Receiver, secret: Any) -> None:
    """`trusted = false` closes what is private, `allow` opens some of it again."""
    url = secret("URL", receiver.url)
    asyncio.run(Webhook(settings.Webhook(kind="webhook", url=url)).send(a_message()))
    with pytest.raises(NotDelivered, match="closed"):
        asyncio.run(Webhook(settings.Webhook(kind="webhook", url=url, trusted=False)).send(a_message()))
    allowed = settings.Webhook(kind="webhook", url=url, trusted=False, allow=("127.0.0.0/8",))
    asyncio.run(Webhook(allowed, web=web_for(allowed)).send(a_message()))

    assert len(receiver.posts) == 2


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A key and a certificate for good.example alone, in one file."""
    file = tmp_path / "server.pem"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=good.example"
    names = ["-addext", "subjectAltName=DNS:good.example", "-keyout", str(tmp_path / "key"), "-out", str(file)]
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl here to make a certificate")
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
def test_the_certificate_is_compared_with_the_name(secure: Receiver, certificate: Path, host: str, taken: bool) -> None:
    """Not with the address that is connected to, which anybody may have."""
    context = ssl.create_default_context(cafile=str(certificate))
    guard = Guard(["127.0.0.0/8"], resolve=Names(["127.0.0.1"]))

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


def test_the_closed_networks_are_networks() -> None:
    """And hold what clouds tell their machines, or that stands by itself."""
    assert all(isinstance(network, type(ip_network(str(network)))) for network in CLOSED)
    assert is_closed(ip_address("168.63.129.16"))
