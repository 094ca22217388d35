"""Scores and labels in MLflow."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.sinks.backends import Answer, MLflow
from tests.sinks.items import a_label, a_score, an_item

from germane.delivery import DeliveryError
from germane.settings import MLflowSettings
from germane.sinks.mlflow import MLflowSink
from germane.storage import SinkItem

FIRST = f"tr-{1:032x}"


@pytest.fixture
def mlflow() -> Iterator[MLflow]:
    """An MLflow that knows the traces 1 to 60."""
    backend = MLflow()
    backend.traces = {f"tr-{number:032x}": [] for number in range(1, 61)}
    with backend.served():
        yield backend


def sink_of(mlflow: MLflow, **given: str) -> MLflowSink:
    return MLflowSink("traces", MLflowSettings(type="mlflow", url=f"{mlflow.url}/", **given))


def write(mlflow: MLflow, items: Sequence[SinkItem]) -> dict[str, DeliveryError]:
    mlflow.requests.clear()
    return dict(asyncio.run(sink_of(mlflow).write(items)))


def values(mlflow: MLflow, trace_id: str = FIRST) -> list[tuple[str, Any]]:
    return [(each["source"]["source_id"], each["feedback"]["value"]) for each in mlflow.traces[trace_id]]


def methods(mlflow: MLflow) -> list[str]:
    return [request.method for request in mlflow.requests]


def test_assessment_contains_score_label_explanation_and_origin(mlflow: MLflow) -> None:
    """A score becomes one assessment of its span, with everything that explains it."""
    assert write(mlflow, [an_item(1, a_score(), labels=(a_label(),))]) == {}

    ids = {"trace_id": FIRST, "span_id": "0000000000000001", "valid": True}
    origin = {"exchange_id": "x1", "service": "shop", "route": "docs"}
    stored = [{name: value for name, value in each.items() if name != "assessment_id"} for each in mlflow.traces[FIRST]]
    scored = {"scored_at": "2026-03-01T12:00:00+00:00", "fingerprint": "f1", "judge": "larch-2"}
    assert stored == [
        {
            **ids,
            "assessment_name": "answer_relevancy",
            "source": {"source_type": "LLM_JUDGE", "source_id": "germane/f1"},
            "feedback": {"value": 0.75},
            "rationale": "It answers most of the question.",
            "metadata": {**origin, **scored, "label": "mostly_relevant"},
        },
        {
            **ids,
            "assessment_name": "human_label",
            "source": {"source_type": "HUMAN", "source_id": "germane/ada"},
            "feedback": {"value": 1.0},
            "rationale": "Right.",
            "metadata": {**origin, "labeled_at": "2026-03-01T12:00:00+00:00", "user": "ada", "label": ""},
        },
    ]


def test_assessments_of_all_exchanges_are_read_in_one_request(mlflow: MLflow) -> None:
    """Writing 50 scores takes 51 requests, and writing them again takes one."""
    items = [an_item(number) for number in range(1, 51)]

    assert write(mlflow, items) == {}
    assert len(mlflow.requests) == 51

    assert write(mlflow, items) == {}
    assert len(mlflow.requests) == 1
    assert all(len(stored) == 1 for trace_id, stored in mlflow.traces.items() if int(trace_id[3:], 16) <= 50)


def test_repeated_request_updates_the_assessment(mlflow: MLflow) -> None:
    """A response that was lost, or a later value, leaves one assessment, with the newest value and explanation."""
    mlflow.interruptions = [None, lambda: None]
    with pytest.raises(DeliveryError) as failed:
        write(mlflow, [an_item(1)])
    assert failed.value.retryable
    assert values(mlflow) == [("germane/f1", 0.75)]

    assert write(mlflow, [an_item(1, a_score(value=0.25, explanation="It does not."))]) == {}

    assert values(mlflow) == [("germane/f1", 0.25)]
    assert mlflow.traces[FIRST][0]["rationale"] == "It does not."
    assert methods(mlflow) == ["POST", "PATCH"]


def test_score_of_a_new_judge_replaces_that_of_the_old_one(mlflow: MLflow) -> None:
    """After a rescore, a trace has one assessment per scorer. Assessments of others are left alone."""
    write(mlflow, [an_item(1, a_score(), a_score(scorer="faithfulness"), labels=(a_label(),))])
    of_others = {"assessment_id": "a-1", "assessment_name": "answer_relevancy", "span_id": f"{1:016x}"}
    of_others |= {"source": {"source_type": "HUMAN", "source_id": "f1"}, "feedback": {"value": 0.0}}
    on_another_span = {**mlflow.traces[FIRST][0], "assessment_id": "a-2", "span_id": f"{2:016x}"}
    mlflow.traces[FIRST] += [of_others, on_another_span]

    new = a_score(fingerprint="f2", value=0.5, superseded=("f1", "f0"))
    assert write(mlflow, [an_item(1, new, a_score(scorer="faithfulness"), labels=(a_label(),))]) == {}

    assert sorted(values(mlflow)) == [
        ("f1", 0.0), ("germane/ada", 1.0), ("germane/f1", 0.75), ("germane/f1", 0.75), ("germane/f2", 0.5)
    ]  # fmt: skip
    assert {each["span_id"] for each in mlflow.traces[FIRST] if each["feedback"]["value"] == 0.5} == {f"{1:016x}"}
    assert methods(mlflow) == ["POST", "POST", "DELETE"]


def test_doubled_assessment_is_repaired(mlflow: MLflow) -> None:
    """If two processes have created the same assessment, the next one to write it deletes one of them."""
    write(mlflow, [an_item(1)])
    mlflow.traces[FIRST].append({**mlflow.traces[FIRST][0], "assessment_id": "a-2"})

    assert write(mlflow, [an_item(1)]) == {}

    assert values(mlflow) == [("germane/f1", 0.75)]


def test_two_exchanges_of_one_span_share_an_assessment(mlflow: MLflow) -> None:
    """What has been created for one exchange is found for another in the same batch."""
    assert write(mlflow, [an_item(1), replace(an_item(1), exchange_id="x2")]) == {}

    assert values(mlflow) == [("germane/f1", 0.75)]


def test_missing_trace_does_not_hold_up_the_others(mlflow: MLflow) -> None:
    """Exchanges whose traces are known are written, and the other is retried for an hour."""
    errors = write(mlflow, [an_item(1), an_item(99), an_item(2)])

    assert errors.keys() == {"x99"}
    assert errors["x99"].retryable
    assert errors["x99"].retry_timeout == timedelta(hours=1)
    assert len(values(mlflow, f"tr-{2:032x}")) == 1


def test_trace_deleted_while_it_is_written_does_not_hold_up_the_others(mlflow: MLflow) -> None:
    """A trace, or an assessment, that somebody deletes between two requests is retried."""
    mlflow.interruptions = [
        None,
        lambda: mlflow.traces.pop(FIRST) or Answer(404, {"error_code": "RESOURCE_DOES_NOT_EXIST"}),
    ]

    errors = write(mlflow, [an_item(1), an_item(2)])

    assert errors.keys() == {"x1"}
    assert errors["x1"].retry_timeout == timedelta(hours=1)
    assert len(values(mlflow, f"tr-{2:032x}")) == 1


def test_basic_auth_that_forbids_unknown_traces_does_not_hold_up_the_others(mlflow: MLflow) -> None:
    """With basic-auth, an unknown trace cannot be told from a forbidden one, so it is retried like a rejected key."""
    mlflow.forbids_unknown = True

    errors = write(mlflow, [an_item(1), an_item(99), an_item(2)])

    assert errors.keys() == {"x99"}
    assert errors["x99"].status == 403
    assert errors["x99"].retry_timeout is None
    assert (values(mlflow), values(mlflow, f"tr-{2:032x}")) == ([("germane/f1", 0.75)], [("germane/f1", 0.75)])


def test_server_without_batch_requests_is_asked_for_each_trace(mlflow: MLflow) -> None:
    """An older MLflow does not know the endpoint that reads many traces."""
    mlflow.interruptions = [lambda: Answer(404, "<title>404 Not Found</title>")]

    errors = write(mlflow, [an_item(1), an_item(99)])

    assert errors.keys() == {"x99"}
    assert values(mlflow) == [("germane/f1", 0.75)]


def test_wrong_url_is_not_a_missing_trace(mlflow: MLflow) -> None:
    """A 404 that does not come from MLflow is an error of the whole sink, which is retried for longer than an hour."""
    mlflow.interruptions = [lambda: Answer(404, "Not Found")] * 2

    with pytest.raises(DeliveryError, match="check the URL") as failed:
        write(mlflow, [an_item(1)])

    assert failed.value.retryable
    assert failed.value.retry_timeout is None


@pytest.mark.parametrize(
    "body", [[1], {"trace_infos": None}, {"trace_infos": [None, {}, {"trace_id": FIRST, "assessments": [1]}]}]
)
def test_unexpected_response_does_not_stop_the_sink(mlflow: MLflow, body: object) -> None:
    """Whatever a server responds, there is no other error than a DeliveryError."""
    mlflow.interruptions = [lambda: Answer(200, body), lambda: Answer(200, [])]

    errors = write(mlflow, [an_item(1)])

    assert errors.keys() <= {"x1"}


def test_score_without_a_label_removes_that_of_the_earlier_score(mlflow: MLflow) -> None:
    """MLflow keeps metadata that an update does not mention."""
    write(mlflow, [an_item(1)])
    write(mlflow, [an_item(1, a_score(label=None))])

    assert mlflow.traces[FIRST][0]["metadata"]["label"] == ""


def test_erased_text_is_removed_from_the_assessment(mlflow: MLflow) -> None:
    """If an explanation or comment has been erased, the next request removes it in MLflow too."""
    item = an_item(1, a_score(), labels=(a_label(),))
    write(mlflow, [item])

    write(mlflow, [replace(item, scores=(a_score(explanation=None),), labels=(a_label(comment=None),))])

    assert [each["rationale"] for each in mlflow.traces[FIRST]] == ["", ""]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, None),
        ({"token": "env:KEY"}, "Bearer secret"),
        ({"user": "ada", "password": "env:KEY"}, f"Basic {b64encode(b'ada:secret').decode()}"),
    ],
)
def test_test_writes_nothing_and_sends_the_credentials(
    mlflow: MLflow, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], expected: str | None
) -> None:
    """`germane sinks test` shows whether the address and the credentials are right, without a score."""
    monkeypatch.setenv("KEY", "secret")

    asyncio.run(sink_of(mlflow, **settings).test())

    assert not any(mlflow.traces.values())
    assert mlflow.requests[0].headers.get("Authorization") == expected
