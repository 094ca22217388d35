"""The receiver of one process: servers, staging, recognition and forwarding, and the options that they depend on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from germane import sanitize
from germane.exchange import Redact
from germane.receiver.exchanges import ExchangeBuilder
from germane.receiver.finishing import TraceFinisher
from germane.receiver.forwarding import Forwarder, ForwardTarget
from germane.receiver.grpc import GRPCServer
from germane.receiver.holding import SpanHolder
from germane.receiver.http import create_http_app
from germane.receiver.service import ExportService
from germane.receiver.spans import Waits
from germane.receiver.staging import StagingWriter
from germane.recognizers import Recognizer, registered_recognizers
from germane.settings import Settings
from germane.storage import TrackingStore
from germane.web_server import TLSFiles, WebServer

HTTP_PORT: Final = 4318
GRPC_PORT: Final = 4317
MAX_REQUEST_SIZE: Final = 20 * 2**20
"""Default maximum size of a request in bytes, as in the OpenTelemetry Collector."""
MAX_STAGED_SIZE: Final = 1 * 2**30
"""Default maximum size of everything that is staged or waiting to be forwarded, in bytes."""
GRPC_STOP_TIMEOUT: Final = 2.0
"""Seconds for which the gRPC server waits for active requests when it stops."""
STOP_TIMEOUT: Final = 10.0
"""Default maximum duration of stopping, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverOptions:
    """The addresses, limits and privacy settings of a receiver."""

    http: tuple[str, int] = ("127.0.0.1", HTTP_PORT)
    """Host and port; port 0 picks a free port."""
    grpc: tuple[str, int] = ("127.0.0.1", GRPC_PORT)
    """Host and port; port 0 picks a free port."""
    tls: TLSFiles | None = None
    redact: Redact | None = None
    """Called with each text before it is stored as part of an exchange."""
    redact_name: str = ""
    """Name of the function, such as ``myapp.privacy:redact``. Defaults to its own name."""
    forward: ForwardTarget | None = None
    """Another OTLP endpoint that gets everything that is received."""
    max_request_size: int = MAX_REQUEST_SIZE
    """Maximum size of a decompressed request in bytes."""
    max_staged_size: int = MAX_STAGED_SIZE
    waits: Waits = field(default_factory=Waits)


class Receiver:
    """Receives spans and log records over OTLP, and stores the exchanges that it recognizes in them.

    Args:
        store: The tracking store.
        settings: The settings of the process.
        options: Addresses, limits and privacy.
        scorers: Names of the scorers for which traces without an exchange are counted.

    Raises:
        ListenError: An address is in use, or does not belong to this machine.
    """

    def __init__(
        self, store: TrackingStore, settings: Settings, options: ReceiverOptions, *, scorers: Sequence[str] = ()
    ) -> None:
        token, custom = settings.receiver_token, registered_recognizers()
        self._staging = StagingWriter(
            store,
            max_wait=options.waits.longest,
            max_staged_size=options.max_staged_size,
            options=describe_options(settings, options.redact, options.redact_name, custom),
            target="" if options.forward is None else options.forward.name,
        )
        # A budget selects exchanges at the end of an interval, and spans cannot wait that long.
        sample_rate = settings.sample_rate if settings.budget is None else 0.0
        holder = None
        if options.forward is not None:
            holder = SpanHolder(
                sample_rate=sample_rate,
                max_delay=settings.max_span_delay,
                waits=options.waits,
                keeps_all=bool(custom),
            )
        self._service = ExportService(
            self._staging,
            waits=options.waits,
            token=None if token is None else token.get_secret_value(),
            holder=holder,
            keeps_all=bool(custom),
        )
        builder = ExchangeBuilder(settings, redact=options.redact, custom=custom)
        self._finisher = TraceFinisher(store, builder, self._staging, scorers, max_span_delay=settings.max_span_delay)
        self._forwarder = None if options.forward is None else Forwarder(store, options.forward)
        app = create_http_app(self._service, options.max_request_size)
        self._http = WebServer(app, host=options.http[0], port=options.http[1], tls=options.tls)
        self._grpc = GRPCServer(
            self._service,
            host=options.grpc[0],
            port=options.grpc[1],
            tls=options.tls,
            max_request_size=options.max_request_size,
        )

    @property
    def http_address(self) -> str:
        """The URL of the HTTP endpoint, such as ``http://127.0.0.1:4318``."""
        return self._http.address

    @property
    def grpc_address(self) -> str:
        """The URL of the gRPC endpoint, such as ``http://127.0.0.1:4317``."""
        return self._grpc.address

    @property
    def is_serving(self) -> bool:
        """Whether the HTTP server is running."""
        return self._http.is_serving

    @contextmanager
    def running(
        self,
        log: Callable[[str], None],
        *,
        timeout: float = STOP_TIMEOUT,
        wait_for_tables: Callable[..., bool] = lambda **_: True,
    ) -> Iterator[None]:
        """Receive requests while the block runs. Then stop accepting requests, and commit the accepted ones.

        Unfinished traces stay in the database, for this receiver's next start or for another receiver.

        Args:
            log: Called with each line about the addresses, and about what was received.
            timeout: Maximum duration of stopping in seconds, in addition to the HTTP server's 5 seconds.
            wait_for_tables: Called before the block starts. Returns True once the tables exist, or False if the
                receiver stops first or, with ``once=True``, if they cannot be created now. Then, health checks
                succeed, and other clients are asked to retry.
        """
        self._service.is_ready = wait_for_tables(once=True)
        self._staging.start()
        self._grpc.start()
        try:
            with self._http.running():
                log(f"receiving OTLP on {self.http_address} (HTTP) and {self.grpc_address} (gRPC)")
                if self._service.is_ready or wait_for_tables():
                    self._service.is_ready = True
                    self._finisher.start()
                    if self._forwarder is not None:
                        self._forwarder.start()
                yield
        finally:
            deadline = time.monotonic() + timeout
            self._grpc.stop(min(GRPC_STOP_TIMEOUT, timeout))
            if not self._staging.stop(max(0.0, deadline - time.monotonic())):
                log("not all accepted requests were committed in time; clients retry those without a response")
            self._finisher.stop(max(0.0, deadline - time.monotonic()))
            if self._forwarder is not None:
                self._forwarder.stop(max(0.0, deadline - time.monotonic()))
            for line in self.describe():
                log(line)

    def describe(self) -> list[str]:
        """Return the counts of received traces and requests, as lines of text without control characters."""
        counts = self._staging.counts
        parts = {
            "repeated": counts.repeated,
            "too late for their trace": counts.late,
            "beyond the limits of their trace": counts.over_limit,
            "invalid": self._service.rejected,
        }
        details = "".join(f", {count:,} {what}" for what, count in parts.items() if count)
        lines = [f"{self._service.received:,} spans and log records received{details}"]
        lines += self._finisher.counts.describe()
        if self._forwarder is not None:
            lines.append(self._forwarder.describe())
        return lines


def describe_options(
    settings: Settings, redact: Redact | None, redact_name: str, recognizers: Sequence[Recognizer]
) -> str:
    """Return a line that is the same in all processes that store the same texts of a span.

    It names the options for people, and ends with a fingerprint. If the file changes that defines the redaction, the
    fingerprint does, too.
    """
    redaction, source = "no redaction", b""
    if redact is not None:
        redaction, source = redact_name or _name(redact), _source(redact)
    decisive = settings.capture, settings.max_text_length, redaction, source, [_name(each) for each in recognizers]
    names = f"capture {settings.capture}, {redaction}"
    names += f", {sanitize.count_noun(len(recognizers), 'recognizer')}" if recognizers else ""
    return f"{names}, {sha256(repr(decisive).encode()).hexdigest()[:12]}"


def _definition(function: Callable[..., Any]) -> Any:
    """Return the function or class that defines a callable."""
    while isinstance(function, partial):
        function = function.func
    return function if hasattr(function, "__qualname__") else type(function)


def _name(function: Callable[..., Any]) -> str:
    definition = _definition(function)
    return f"{definition.__module__}.{definition.__qualname__}"


def _source(function: Callable[..., Any]) -> bytes:
    """Return the content of the file that defines a function, if there is one."""
    file = getattr(sys.modules.get(_definition(function).__module__), "__file__", None) or ""
    return Path(file).read_bytes() if Path(file).is_file() else b""
