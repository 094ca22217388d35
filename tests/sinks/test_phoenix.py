"""Scores and labels in Phoenix."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.sinks.backends import Answer, Phoenix
from tests.sinks.items import a_label, a_score, an_item

from germane.delivery import DeliveryError
from germane.settings import PhoenixSettings
from germane.sinks.phoenix import PhoenixSink
from germane.storage import SinkItem


@pytest.fixture
def phoenix() -> Iterator[Phoenix]:
    """A Phoenix that knows the spans 1 to 60."""
    backend = Phoenix()
    backend.spans = {f"{number:016x}" for number in range(1, 61)}
    with backend.served():
        yield backend


def sink_of(phoenix: Phoenix, **given: str) -> PhoenixSink:
    return PhoenixSink("traces", PhoenixSettings(type="phoenix", url=f"{phoenix.url}/", **given))


def write(phoenix: Phoenix, items: Sequence[SinkItem]) -> dict[str, DeliveryError]:
    return dict(asyncio.run(sink_of(phoenix).write(items)))


def test_annotation_contains_score_label_explanation_and_origin(phoenix: Phoenix) -> None:
    """A score becomes one annotation of its span, with everything that explains it."""
    assert write(phoenix, [an_item(1, a_score(), labels=(a_label(),))]) == {}

    origin = {"exchange_id": "x1", "service": "shop", "route": "docs"}
    score, label = phoenix.annotations.values()
    assert score == {
        "span_id": "0000000000000001",
        "name": "answer_relevancy",
        "annotator_kind": "LLM",
        "identifier": "germane:f1",
        "result": {"score": 0.75, "label": "mostly_relevant", "explanation": "It answers most of the question."},
        "metadata": {**origin, "scored_at": "2026-03-01T12:00:00+00:00", "fingerprint": "f1", "judge": "larch-2"},
    }
    assert label == {
        "span_id": "0000000000000001",
        "name": "human_label",
        "annotator_kind": "HUMAN",
        "identifier": "germane:ada",
        "result": {"score": 1.0, "label": None, "explanation": "Right."},
        "metadata": {**origin, "labeled_at": "2026-03-01T12:00:00+00:00", "user": "ada"},
    }


def test_score_without_a_judge_is_annotated_as_code(phoenix: Phoenix) -> None:
    """A score that no judge has given is not shown as a judge's."""
    assert write(phoenix, [an_item(1, a_score(judge=None))]) == {}

    (annotation,) = phoenix.annotations.values()
    assert annotation["annotator_kind"] == "CODE"
    assert "judge" not in annotation["metadata"]


def test_one_missing_span_does_not_hold_up_the_others(phoenix: Phoenix) -> None:
    """Of 50 exchanges, the 49 whose spans are known are written at once, and the other is retried for an hour."""
    items = [an_item(number) for number in (*range(1, 50), 99)]

    errors = write(phoenix, items)

    assert errors.keys() == {"x99"}
    assert errors["x99"].retryable
    assert errors["x99"].retry_timeout == timedelta(hours=1)
    assert len(phoenix.annotations) == 49
    assert len(phoenix.requests) == 2


def test_spans_that_are_named_one_after_another_are_all_left_out(phoenix: Phoenix) -> None:
    """A span that Phoenix deletes between two attempts is left out too."""
    first, second = an_item(98), an_item(99)
    phoenix.interruptions = [lambda: Answer(404, f"Spans with IDs {first.span_id} do not exist.")]

    assert write(phoenix, [first, an_item(1), second]).keys() == {"x98", "x99"}
    assert len(phoenix.annotations) == 1


def test_large_batches_are_sent_in_requests_of_100_annotations(phoenix: Phoenix) -> None:
    """No request has more than 100 annotations, and a missing span in one of them affects no other."""
    scorers = [a_score(scorer=scorer) for scorer in ("answer_relevancy", "faithfulness", "noncommittal")]

    errors = write(phoenix, [an_item(number, *scorers) for number in (*range(1, 61), 99)])

    assert errors.keys() == {"x99"}
    assert len(phoenix.annotations) == 180
    assert [len(request.body["data"]) for request in phoenix.requests] == [100, 83, 80]


def test_writing_again_replaces_the_annotation(phoenix: Phoenix) -> None:
    """A later value, or a repeated request whose response was lost, leaves one annotation."""
    phoenix.interruptions = [lambda: None]
    with pytest.raises(DeliveryError) as failed:
        write(phoenix, [an_item(1)])
    assert failed.value.retryable

    write(phoenix, [an_item(1)])
    write(phoenix, [an_item(1, a_score(value=0.25))])

    assert [each["result"]["score"] for each in phoenix.annotations.values()] == [0.25]


@pytest.mark.parametrize("allows_deletion", [True, False])
def test_score_of_a_new_judge_replaces_that_of_the_old_one(phoenix: Phoenix, *, allows_deletion: bool) -> None:
    """Phoenix never shows the mean of two judges: the older annotation is deleted, or at least has no value."""
    phoenix.allows_deletion = allows_deletion
    write(phoenix, [an_item(1), an_item(2)])

    assert write(phoenix, [an_item(1, a_score(fingerprint="f2", value=0.5, superseded=("f1",)))]) == {}

    results = {(span, key): each["result"] for (span, _, key), each in phoenix.annotations.items()}
    assert results.pop(("0000000000000001", "germane:f2"))["score"] == 0.5
    assert results.pop(("0000000000000002", "germane:f1"))["score"] == 0.75
    assert results == ({} if allows_deletion else {("0000000000000001", "germane:f1"): None})


def test_two_exchanges_of_one_span_replace_its_annotation(phoenix: Phoenix) -> None:
    """An annotation that two exchanges supersede is deleted once."""
    write(phoenix, [an_item(1)])
    new = an_item(1, a_score(fingerprint="f2", superseded=("f1",)))

    assert write(phoenix, [new, replace(new, exchange_id="x2")]) == {}

    assert [identifier for _, _, identifier in phoenix.annotations] == ["germane:f2"]


def test_scores_are_written_even_if_phoenix_has_no_graphql(phoenix: Phoenix) -> None:
    """Deleting an older annotation is not required: its failure is not an error."""
    phoenix.interruptions = [None, lambda: Answer(404, "Not Found")]

    assert write(phoenix, [an_item(1, a_score(fingerprint="f2", superseded=("f1",)))]) == {}


@pytest.mark.parametrize("text", ["Not Found", "Spans with IDs 00000000000000ff do not exist."])
def test_wrong_url_is_not_a_missing_span(phoenix: Phoenix, text: str) -> None:
    """A 404 that names none of our spans is an error of the whole sink, which is retried for longer than an hour."""
    phoenix.interruptions = [lambda: Answer(404, text)]

    with pytest.raises(DeliveryError, match="check the URL") as failed:
        write(phoenix, [an_item(1)])

    assert failed.value.retryable
    assert failed.value.retry_timeout is None


@pytest.mark.parametrize("body", [[], {}, {"data": None}, {"data": [None]}, {"data": [{}]}, {"data": 1}])
def test_unexpected_response_does_not_stop_the_sink(phoenix: Phoenix, body: object) -> None:
    """The ids in a response are used only to delete superseded annotations."""
    phoenix.interruptions = [lambda: Answer(200, body)]

    assert write(phoenix, [an_item(1, a_score(fingerprint="f2", superseded=("f1",)))]) == {}


def test_erased_text_is_removed_from_the_annotation(phoenix: Phoenix) -> None:
    """If an explanation or comment has been erased, the next request removes it in Phoenix too."""
    item = an_item(1, a_score(), labels=(a_label(),))
    write(phoenix, [item])

    erased = replace(item, scores=(a_score(explanation=None),), labels=(a_label(comment=None),))
    write(phoenix, [erased])

    assert [each["result"]["explanation"] for each in phoenix.annotations.values()] == [None, None]


def test_test_writes_nothing_and_sends_the_key(phoenix: Phoenix, monkeypatch: pytest.MonkeyPatch) -> None:
    """`germane sinks test` shows whether the address and the key are right, without a score."""
    monkeypatch.setenv("PHOENIX_KEY", "secret")

    asyncio.run(sink_of(phoenix, api_key="env:PHOENIX_KEY").test())

    assert phoenix.annotations == {}
    assert phoenix.requests[0].headers["Authorization"] == "Bearer secret"
    phoenix.interruptions = [lambda: Answer(404, "Not Found")]
    with pytest.raises(DeliveryError, match="check the URL"):
        asyncio.run(sink_of(phoenix).test())


def test_commands_name_the_url_that_scores_are_written_to() -> None:
    """``germane sinks test`` and ``germane doctor`` show it."""
    settings = PhoenixSettings(type="phoenix", url="http://phoenix.example:6006")
    assert PhoenixSink("traces", settings).destination == "http://phoenix.example:6006"
