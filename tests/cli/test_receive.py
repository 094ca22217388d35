"""``germane receive``: its options are checked before anything listens."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.cases import each
from tests.cli.conftest import Call

from germane.storage import OutgoingRequest, ReceivedItem, TrackingStore


@each(
    ("arguments", "problem"),
    [
        (("--http", "0.0.0.0:0"), "reachable from other machines"),
        (("--grpc", "[::]:0"), "reachable from other machines"),
        (("--tls-cert", __file__), "requires both --tls-cert and --tls-key"),
        (("--forward", "localhost:4318"), "is not a URL"),
        (("--forward-header", "a=b"), "requires --forward"),
        (("--redact", "json:nothing"), "cannot be imported"),
        (("--redact", "re-dact"), "must name a module and a function"),
        (("--redact", "asyncio:open_connection"), "takes a text and returns a text"),
        (("--import", "no.such.module"), "cannot be imported"),
        (("--max-request-size", "none"), "is not a size"),
        (("--trace-wait", "0"), "is not in the range"),
    ],
)
def test_errors_for_invalid_receiver_options_name_the_fix(
    arguments: tuple[str, ...], problem: str, database: str, call: Call
) -> None:
    """In one sentence, without a traceback."""
    ended = call("receive", *arguments)

    assert ended.code in {1, 2}
    assert problem in " ".join(ended.err.split())
    assert "Traceback" not in ended.err


def test_a_receiver_token_that_is_too_short_is_rejected(database: str, call: Call, tmp_path: Path) -> None:
    """As for the dashboard, a token has at least 16 characters."""
    path = tmp_path / "token"
    path.write_text("short")
    ended = call("receive", "--token-file", str(path))

    assert ended.code == 1
    assert "receiver_token" in ended.err
    assert "short" not in ended.err.replace("too short", "")


def test_doctor_reports_received_spans_that_no_receiver_processes(
    database: str, store: TrackingStore, call: Call
) -> None:
    """Traces wait for a receiver that was stopped, and requests for an endpoint that is unreachable."""
    assert "receiver" not in call("doctor", "--offline").out
    item = ReceivedItem("a" * 32, "b" * 16, False, "shop", "scope", b"x", 0.0)
    past = TrackingStore(database, clock=lambda: datetime.now(UTC) - timedelta(hours=1))
    requests = [OutgoingRequest("traces", b"x")]
    options = "capture none, no redaction, 1a2b"
    past.received.stage([item], max_wait=1.0, options=options, requests=requests, target="http://there")
    past.close()

    findings = {one["subject"]: one for one in call("doctor", "--offline", "--json").content["findings"]}
    assert findings["receiver"]["level"] == findings["forwarding"]["level"] == "warning"
    assert "1 received trace cannot be scored" in findings["receiver"]["message"]
    assert "(capture none, no redaction, 1a2b)" in findings["receiver"]["message"]
    message = "1 request (0.0 MiB) waiting to be forwarded to http://there, the oldest for 60 min"
    assert findings["forwarding"]["message"] == message
