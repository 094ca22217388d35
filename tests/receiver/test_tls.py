"""TLS, and certificates of clients."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import grpc
import httpx2
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GRPCSpanExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HTTPSpanExporter
from opentelemetry.sdk.trace.export import SpanExporter
from tests.databases import ON_SQLITE
from tests.receiver.conftest import ask, exchanges, receive, traced, wait_for

from germane.storage import TrackingStore

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates"),
]


@pytest.fixture
def certificates(tmp_path: Path) -> Callable[[str, str], tuple[Path, Path]]:
    """A function that makes a certificate and its key, given their name and that of the authority."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=tmp_path)

    def make(name: str, authority: str) -> tuple[Path, Path]:
        if not (tmp_path / f"{authority}.pem").exists():
            openssl(
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-keyout", f"{authority}.key", "-out", f"{authority}.pem", "-subj", f"/CN={authority}",
            )  # fmt: skip
        (tmp_path / "extensions").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
        openssl(
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}",
        )  # fmt: skip
        openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key",
            "-CAcreateserial", "-days", "2", "-extfile", "extensions", "-out", f"{name}.pem",
        )  # fmt: skip
        return tmp_path / f"{name}.pem", tmp_path / f"{name}.key"

    return make


@ON_SQLITE
def test_clients_need_a_certificate_if_a_client_authority_is_configured(
    certificates: Callable[[str, str], tuple[Path, Path]],
    tmp_path: Path,
    store: TrackingStore,
    migrated_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With --client-ca, no token is needed on any address; clients of another authority are rejected."""
    for variable in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # would override the exporter's own
        monkeypatch.delenv(variable, raising=False)
    server, key = certificates("server", "authority")
    client, client_key = certificates("client", "authority")
    stranger, stranger_key = certificates("stranger", "other")
    authority = tmp_path / "authority.pem"
    files = ("--tls-cert", str(server), "--tls-key", str(key), "--client-ca", str(authority))
    with receive("--http", "0.0.0.0:0", "--grpc", "0.0.0.0:0", *files, url=migrated_url) as process:
        http, endpoint = (address.replace("0.0.0.0", "localhost") for address in (process.http, process.grpc))
        assert (http[:8], endpoint[:8]) == ("https://", "https://")
        for certificate in (None, (str(stranger), str(stranger_key))):
            context = ssl.create_default_context(cafile=authority)
            if certificate is not None:
                context.load_cert_chain(*certificate)
            with pytest.raises(httpx2.TransportError):
                httpx2.post(f"{http}/v1/traces", content=b"", verify=context)
        credentials = grpc.ssl_channel_credentials(authority.read_bytes())
        with grpc.secure_channel(endpoint.removeprefix("https://"), credentials) as channel:
            export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
            with pytest.raises(grpc.RpcError) as failed:
                export(b"", timeout=10)
        assert failed.value.code() == grpc.StatusCode.UNAVAILABLE

        trusted = grpc.ssl_channel_credentials(authority.read_bytes(), client_key.read_bytes(), client.read_bytes())
        exporters: dict[str, SpanExporter] = {
            "HTTP": HTTPSpanExporter(
                endpoint=f"{http}/v1/traces",
                certificate_file=str(authority),
                client_certificate_file=str(client),
                client_key_file=str(client_key),
            ),
            "gRPC": GRPCSpanExporter(endpoint=endpoint, credentials=trusted),
        }
        for protocol, sender in exporters.items():
            with traced(sender) as provider:
                ask(provider, f"Is {protocol} private?", "Yes.")
        wait_for(lambda: len(exchanges(store)) == 2)


@ON_SQLITE
def test_tls_certificates_are_read_at_the_start(tmp_path: Path, migrated_url: str) -> None:
    """An unusable file is an error before anything is received."""
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    with (
        pytest.raises(AssertionError, match=r"nonsense\.pem"),
        receive("--tls-cert", str(nonsense), "--tls-key", str(nonsense), url=migrated_url),
    ):
        pass
