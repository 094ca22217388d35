"""From the spans of a trace to its exchange: privacy, limits, names and counts."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from tests.cases import each
from tests.receiver.conftest import QUICK
from tests.receiver.messages import chain, export_requests, model_call, span, trace_request

from germane import recognizers
from germane.exchange import Exchange, exchange_id_for
from germane.receiver import exchanges
from germane.receiver.exchanges import ExchangeBuilder
from germane.receiver.finishing import TraceCounts
from germane.receiver.spans import MAX_PLAIN_SIZE, convert_items, read_request, split_requests
from germane.recognizers import SpanData
from germane.score import UnscoredReason
from germane.settings import load_settings
from germane.storage import ReceivedTrace, UncapturedTrace

REMOTE = 0x300
LOCAL = 0x100


def trace_of(*requests: ExportTraceServiceRequest, dropped: int = 0) -> ReceivedTrace:
    """Return the trace that consists of the spans in these requests."""
    items = tuple(item for request in requests for item in read_request(request, QUICK).items)
    return ReceivedTrace(items[0].trace_id, items, len(items), dropped)


def build(trace: ReceivedTrace, **given: Any) -> Exchange | UncapturedTrace | None:
    """Build a trace's exchange with these settings."""
    redact = given.pop("redact", None)
    return ExchangeBuilder(load_settings(database="sqlite://", **given), redact=redact).build(trace).result


def answered(question: str = "How do I pay?", answer: str = "By card.", **given: Any) -> tuple[Span, Span]:
    """Return the spans of an answer: a chain, and the model's call in it."""
    root = chain(question, answer, **given)
    return root, model_call(question, answer, parent=root)


@pytest.fixture(autouse=True)
def alone(bare: Any) -> None:
    """Provide an environment with only the settings that the test creates."""


def test_the_exchange_id_depends_only_on_the_root_span() -> None:
    """A trace that is finished twice, in any process, therefore yields one exchange."""
    root, call = answered()
    first, second = build(trace_of(trace_request(root, call))), build(trace_of(trace_request(call, root)))
    assert isinstance(first, Exchange)
    assert isinstance(second, Exchange)

    assert first.id == second.id == exchange_id_for(first.trace_id, first.span_id, root.start_time_unix_nano)
    assert len(first.id) == 32
    other = build(trace_of(trace_request(*answered())))
    assert isinstance(other, Exchange)
    assert other.id != first.id


def test_received_texts_are_redacted_and_truncated() -> None:
    """Both happen before the exchange is stored."""
    trace = trace_of(trace_request(*answered("My card is 1234", "Thanks 1234")))
    found = build(trace, redact=lambda text: text.replace("1234", "****"), max_text_length=100)
    assert isinstance(found, Exchange)
    assert (found.question, found.answer) == ("My card is ****", "Thanks ****")

    long = build(trace_of(trace_request(*answered("x" * 501, "y" * 400))), max_text_length=100)
    assert isinstance(long, Exchange)
    assert (long.question, long.answer) == ("x" * 100, "y" * 100)


def broken(text: str) -> str:
    """Fail."""
    raise RuntimeError(text)


@pytest.mark.parametrize("given", [{"redact": broken}, {"redact": lambda text: None}, {"capture": "none"}])
def test_text_that_must_not_be_stored_is_omitted_from_the_exchange(
    given: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Text is omitted if redaction fails, or if capture is off. The log does not quote it."""
    found = build(trace_of(trace_request(*answered())), **given)

    assert isinstance(found, Exchange)
    assert (found.question, found.answer, found.contexts, found.history) == (None, None, (), ())
    assert "card" not in caplog.text


def test_received_traffic_above_the_exchange_limit_is_sampled() -> None:
    """Traces are sampled by sampling key, and the probability is stored, as in the application."""
    builder = ExchangeBuilder(load_settings(database="sqlite://", max_exchanges_per_minute=10), redact=None)
    results = [builder.build(trace_of(trace_request(*answered()))).result for _ in range(100)]
    kept = [one for one in results if isinstance(one, Exchange)]
    dropped = [one for one in results if isinstance(one, UncapturedTrace)]

    assert 0 < len(kept) < 60
    assert all(one.sampling_key <= one.capture_probability for one in kept)
    assert {one.reason for one in dropped} == {UnscoredReason.EXCHANGE_LIMIT}
    assert len(kept) + len(dropped) == 100


def test_an_unreadable_trace_is_counted_with_its_fix() -> None:
    """Traces are counted by service, scope and reason. Control characters in names are removed."""
    root = span(name="chat", attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
    trace = trace_of(trace_request(root, service="shop\x1b[2J", scope="opentelemetry.instrumentation.genai.openai"))
    builder, counts = ExchangeBuilder(load_settings(database="sqlite://"), redact=None), TraceCounts()
    outcome = builder.build(trace)
    counts.add(outcome)

    assert isinstance(outcome.result, UncapturedTrace)
    assert outcome.result.reason == UnscoredReason.UNREADABLE
    first, second = counts.describe()
    assert first == "1 trace: 0 recognized, 1 unreadable"
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY" in second
    assert "\x1b" not in second


def test_a_trace_whose_recognition_fails_is_counted() -> None:
    """The other traces are read, whatever a recognizer returns."""
    builder = ExchangeBuilder(
        load_settings(database="sqlite://"),
        redact=None,
        custom=[lambda span: "not a reading"],  # type: ignore[list-item, return-value]
    )
    outcome = builder.build(trace_of(trace_request(*answered(), service="shop")))

    assert isinstance(outcome.result, UncapturedTrace)
    assert outcome.counted is not None
    assert outcome.counted[1:] == ("shop", "openinference.instrumentation.langchain", "recognition_failed")


def test_a_truncated_trace_is_unreadable() -> None:
    """With spans missing, question and answer could be those of different calls."""
    result = build(trace_of(trace_request(*answered()), dropped=1))

    assert isinstance(result, UncapturedTrace)
    assert result.reason == UnscoredReason.UNREADABLE


@pytest.mark.parametrize(
    "spans",
    [
        trace_request(span(name="GET /", attributes={"http.route": "/"}), scope="http"),
        trace_request(chain("Why?", "So.", attributes={"openinference.span.kind": "EVALUATOR"})),
        trace_request(span(attributes={"germane.exchange.id": "1"}), scope="germane"),
    ],
)
def test_traces_of_web_requests_evaluations_and_decorated_handlers_are_ignored(
    spans: ExportTraceServiceRequest,
) -> None:
    """These traces are not counted as unreadable."""
    assert build(trace_of(spans)) is None


def test_an_exchange_belongs_to_the_service_that_answered_the_question() -> None:
    """Its caller may be a gateway without any language model."""
    entry = span(name="POST /chat", kind=Span.SPAN_KIND_CLIENT)
    root = chain("Why?", "So.", parent=entry, flags=REMOTE)
    call = model_call("Why?", "So.", parent=root, flags=LOCAL)
    found = build(
        trace_of(trace_request(root, call, service="rag"), trace_request(entry, service="gateway", scope="http"))
    )

    assert isinstance(found, Exchange)
    assert found.service == "rag"


def test_a_span_with_a_remote_parent_can_be_the_root_of_a_trace() -> None:
    """The calling process may send its spans elsewhere."""
    root = chain("Why?", "So.", parent_span_id=b"elsewher", flags=REMOTE)
    call = model_call("Why?", "So.", parent=root, flags=LOCAL)
    trace = trace_of(trace_request(root, call))
    found = build(trace)

    assert isinstance(found, Exchange)
    assert found.span_id == root.span_id.hex()
    assert [item.wait for item in trace.items] == [QUICK.remote_root, None]


def test_an_exchange_whose_root_span_failed_has_the_status_error() -> None:
    """The status is that of the root span."""
    root, call = answered(status=Status(code=Status.STATUS_CODE_ERROR))
    found = build(trace_of(trace_request(root, call)))

    assert isinstance(found, Exchange)
    assert found.status == "error"


def test_the_number_of_route_and_service_names_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of spans and services may contain ids, and each one would be a series of its own."""
    monkeypatch.setattr(exchanges, "MAX_ROUTES", 3)
    monkeypatch.setattr(exchanges, "MAX_SERVICES", 2)
    builder = ExchangeBuilder(load_settings(database="sqlite://"), redact=None)
    names = set()
    for number in range(12):
        root, call = answered(attributes={"germane.route": f"route-{number % 6}"})
        result = builder.build(trace_of(trace_request(root, call, service=f"service-{number % 4}"))).result
        assert isinstance(result, Exchange)
        names.add((result.service, result.route))

    assert len({service for service, _ in names}) <= 3
    assert all(sum(service == one for service, _ in names) <= 4 for one, _ in names)
    assert "other" in {route for _, route in names}


def test_an_implausible_span_time_is_replaced() -> None:
    """A span without a start time would be stored in 1970."""
    root, call = answered(start_time_unix_nano=0)
    found = build(trace_of(trace_request(root, call)))

    assert isinstance(found, Exchange)
    assert found.started_at.year > 2000


@each("ahead", [0.001, 1, 59, 3_600, 86_399, 86_401, 10 * 86_400, 365 * 86_400, 1e10])
def test_a_clock_that_is_ahead_is_limited_to_the_time_of_receipt(ahead: float) -> None:
    """Otherwise, its answers would belong to a window that has not begun, and hide those of other services."""
    received_at = time.time() - 100
    root, call = answered(start_time_unix_nano=int((received_at + ahead) * 1e9))
    trace = replace(trace_of(trace_request(root, call)), received_at=received_at)
    outcome = ExchangeBuilder(load_settings(database="sqlite://"), redact=None).build(trace)

    assert isinstance(outcome.result, Exchange)
    assert outcome.result.started_at.timestamp() == pytest.approx(received_at, abs=1e-5)
    assert outcome.counted is not None
    assert outcome.counted.hour <= received_at // 3_600
    assert outcome.ended >= received_at + ahead - 1e-3


@each("behind", [0, 1, 600, 86_400, 300 * 86_400])
def test_a_time_before_the_receipt_is_kept(behind: float) -> None:
    """Clients may send spans long after they ended."""
    received_at = time.time() - 100
    root, call = answered(start_time_unix_nano=int((received_at - behind) * 1e9))
    found = ExchangeBuilder(load_settings(database="sqlite://"), redact=None).build(
        replace(trace_of(trace_request(root, call)), received_at=received_at)
    )

    assert isinstance(found.result, Exchange)
    assert found.result.started_at.timestamp() == pytest.approx(received_at - behind, abs=1e-5)


def test_large_spans_without_a_convention_are_staged_without_attributes() -> None:
    """A web framework's headers must not fill the database, but the tree needs the span."""
    large = span(name="GET", attributes={"http.request.header.cookie": "x" * 2 * MAX_PLAIN_SIZE}, flags=LOCAL)
    small = span(name="GET", attributes={"session.id": "s1"})
    known = span(name="GET", attributes={"input.value": "x" * 2 * MAX_PLAIN_SIZE})
    items = read_request(trace_request(large, small, known, scope="http"), QUICK).items

    assert [len(item.payload) > MAX_PLAIN_SIZE for item in items] == [False, False, True]
    (spans, _) = convert_items(tuple(items[:1]))
    assert (spans[0].name, spans[0].attributes, spans[0].start) == ("GET", {}, large.start_time_unix_nano)
    assert convert_items(tuple(items[1:2]))[0][0].attributes == {"session.id": "s1"}


def test_attribute_values_of_all_otlp_types_are_converted() -> None:
    """The values have the same types as in the SDK."""
    values = {"text": "a", "flag": False, "number": 0, "real": 0.5, "list": ["a", 1], "map": {"b": [True]}, "empty": ""}
    (item,) = read_request(trace_request(span(attributes={**values, "bytes": b"\xff"})), QUICK).items

    assert convert_items((item,))[0][0].attributes == {**values, "bytes": "\ufffd"}


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(request=export_requests())
def test_recognition_of_any_spans_never_fails(request: ExportTraceServiceRequest) -> None:
    """Recognition itself never fails, so the safeguard against failing recognizers is not needed for it."""
    batch = read_request(request, QUICK)
    for trace_id in {item.trace_id for item in batch.items}:
        items = {item.key: item for item in batch.items if item.trace_id == trace_id}
        spans, logs = convert_items(tuple(items.values()))
        recognizers.recognize_all(spans, logs)
        build(ReceivedTrace(trace_id, tuple(items.values()), len(items), 0))


def test_a_failing_registered_recognizer_does_not_block_built_in_ones(caplog: pytest.LogCaptureFixture) -> None:
    """The built-in ones read the trace, and the log says where the function failed, without texts."""

    def fails(span: recognizers.SpanData) -> None:
        raise ValueError(span.attributes["input.value"])

    builder = ExchangeBuilder(load_settings(database="sqlite://"), redact=None, custom=[fails])
    results = [builder.build(trace_of(trace_request(*answered()))).result for _ in range(2)]

    assert all(isinstance(one, Exchange) for one in results)
    assert caplog.text.count("ValueError at test_exchanges.py") == 1
    assert "How do I pay" not in caplog.text


def test_stored_unreadable_traces_contain_no_attribute_values() -> None:
    """A few traces per minute and reason are stored, and none with ``capture = none``."""
    builder = ExchangeBuilder(load_settings(database="sqlite://"), redact=None)
    call = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "the secret model"}
    traces = [trace_of(trace_request(span(name="chat m", attributes=call))) for _ in range(5)]
    samples = [builder.build(trace).sample for trace in traces]

    assert [sample is not None for sample in samples] == [True, True, True, False, False]
    assert samples[0] is not None
    assert (samples[0].trace_id, samples[0].reason) == (traces[0].trace_id, "content_capture_off")
    assert [each.name for each in samples[0].spans[0].attributes] == list(call)
    assert "secret" not in repr(samples[0])
    silent = ExchangeBuilder(load_settings(database="sqlite://", capture="none"), redact=None)
    assert silent.build(traces[0]).sample is None
    assert builder.build(trace_of(trace_request(*answered()))).sample is None


def test_all_spans_are_staged_in_full_for_registered_recognizers() -> None:
    """A registered recognizer may read spans of any scope and size."""
    large = span(name="answer", attributes={"shop.answer": "x" * 2 * MAX_PLAIN_SIZE})
    items = read_request(trace_request(large, scope="shop"), QUICK, keeps_all=True).items

    (spans, _) = convert_items(tuple(items))
    assert spans[0].attributes == {"shop.answer": "x" * 2 * MAX_PLAIN_SIZE}


@given(st.lists(st.integers(-2, 9), min_size=1, max_size=10))
def test_each_span_of_a_reopened_trace_belongs_to_one_request(parents: list[int]) -> None:
    """Parents may be finished (-2), missing (-1), other spans of the trace, or part of a cycle."""
    names = {-2: "finished", -1: "missing"}
    spans = [
        SpanData(trace_id="t", span_id=str(number), parent_id=names.get(parent, str(parent)), name="", scope="")
        for number, parent in enumerate(parents)
    ]
    requests = [spans for spans, _ in split_requests(spans, [], {"finished"})]

    assert sorted(span.span_id for request in requests for span in request) == [span.span_id for span in spans]
    home = {span.span_id: number for number, request in enumerate(requests) for span in request}
    for item in spans:
        if item.parent_id in home:
            assert home[item.span_id] == home[item.parent_id]
    roots = [span for request in requests for span in request if span.parent_id is None]
    assert len(roots) == parents.count(-2)
