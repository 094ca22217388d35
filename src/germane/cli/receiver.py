"""The receiver behind ``germane receive`` and ``germane worker --otlp``: its options, and checks before it starts."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from germane import dashboard, sanitize
from germane.cli.core.params import ListenAddress
from germane.errors import SettingsError

if TYPE_CHECKING:
    from germane.receiver import ForwardTarget, ReceiverOptions
    from germane.settings import Settings
    from germane.web_server import TLSFiles


def load_redact(name: str | None) -> Callable[[str], str] | None:
    """Import the function ``MODULE:FUNCTION``, if any. Raise SettingsError if it is not a plain function."""
    from germane.tracer import is_async

    if name is None:
        return None
    module, _, path = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *path.split("."))):
        raise SettingsError(f"--redact {name!r:.100}: must name a module and a function, such as myapp.privacy:redact")
    try:
        function: Any = import_module(module)
        for part in path.split("."):
            function = getattr(function, part)
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"--redact {name!r:.100} cannot be imported: {sanitize.line(str(error), 200)}") from None
    if not callable(function) or is_async(function):
        raise SettingsError(f"--redact must be a function that takes a text and returns a text, not {name!r:.100}")
    return function  # type: ignore[no-any-return]  # any callable


def parse_tls(certificate: Path | None, key: Path | None, client_ca: Path | None) -> TLSFiles | None:
    """Return the TLS files, or None without TLS. Raise UsageError or SettingsError if one is missing or unusable."""
    from germane.web_server import TLSFiles

    if certificate is None and key is None and client_ca is None:
        return None
    if certificate is None or key is None:
        raise click.UsageError("TLS requires both --tls-cert and --tls-key")
    files = TLSFiles(certificate=certificate, key=key, client_ca=client_ca)
    files.check()
    return files


def parse_target(url: str | None, headers: tuple[tuple[str, str], ...]) -> ForwardTarget | None:
    """Return the endpoint that requests are forwarded to, which must be an HTTP URL, or None without one."""
    from germane.receiver import ForwardTarget

    if url is None:
        if headers:
            raise click.UsageError("--forward-header requires --forward")
        return None
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise click.BadParameter(f"{url!r:.100} is not a URL such as http://localhost:6006", param_hint="--forward")
    return ForwardTarget(url=url.rstrip("/").removesuffix("/v1/traces"), headers=dict(headers))


def receiver_options(
    settings: Settings, http: ListenAddress, grpc: ListenAddress, tls: TLSFiles | None = None, **options: Any
) -> ReceiverOptions:
    """Return a receiver's options. Raise UsageError for addresses that other machines reach without credentials."""
    from germane.receiver import ReceiverOptions

    has_access_control = settings.receiver_token is not None or (tls is not None and tls.client_ca is not None)
    for host, _ in (http, grpc):
        if not has_access_control and not dashboard.is_loopback(host):
            raise click.UsageError(
                f"the receiver on {host} is reachable from other machines; set GERMANE_RECEIVER_TOKEN to a token of at "
                "least 16 characters, or see the options --token-file and --client-ca of germane receive"
            )
    return ReceiverOptions(http=http, grpc=grpc, tls=tls, **options)
