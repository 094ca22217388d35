"""What Langfuse gets."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.cli.conftest import write
from tests.sinks.conftest import Backend, Bench, langfuse

from germane.annotation import Feedback, RecordedScore
from germane.delivery import DeliveryError
from germane.errors import SettingsError


def test_a_score_is_written_to_its_span(bench: Bench, backend: Backend) -> None:
    """With its label, explanation and fingerprint. Its id does not change when it is written again."""
    (exchange,) = bench.add(1)
    bench.store.exchanges.record_scores(
        [
            RecordedScore(
                exchange_id=exchange.id, name="tone", value=0.75, label="polite", explanation="It says please.",
                recorded_at=bench.clock(),
            )
        ]
    )  # fmt: skip
    given = Feedback(id="l1", exchange_id=exchange.id, score=0.0, comment="rude", user="ada", created_at=bench.clock())
    bench.store.labels.add_feedback([given])
    bench.deliver()

    score, label = backend.requests[0]
    assert len({score.pop("id"), label.pop("id")}) == 2
    at: dict[str, Any] = {"traceId": exchange.trace_id, "observationId": exchange.span_id, "dataType": "NUMERIC"}
    assert score.pop("metadata").items() >= {"label": "polite", "fingerprint": "external"}.items()
    assert score == {**at, "name": "tone", "value": 0.75, "comment": "It says please."}
    assert label.pop("metadata")["user"] == "ada"
    assert label == {**at, "name": "human_label", "value": 0.0, "comment": "rude"}
    assert backend.authorizations == ["Basic cGstdGVzdDpzay10ZXN0"]


def test_the_ids_of_scores_never_change(bench: Bench, backend: Backend) -> None:
    """Otherwise, a score that another version of germane has written would be doubled."""
    (exchange,) = bench.add(1)
    bench.score([exchange])
    bench.deliver()

    assert list(backend.stored) == ["072f964e-b8e7-5a7f-a463-b850ef0f4755"]


@pytest.mark.parametrize("is_append_only", [False, True])
def test_a_score_of_another_judge_replaces_that_of_the_old_one(
    bench: Bench, backend: Backend, is_append_only: bool
) -> None:
    """Scores of different fingerprints are not comparable. A server that deletes none keeps the old one."""
    backend.is_append_only = is_append_only
    (exchange,) = write(bench.store, [0.5], scorer="tone", fingerprint="f1")
    bench.deliver()
    (old,) = backend.stored
    bench.clock.now = datetime.now(UTC)
    bench.score([exchange], value=0.9)
    bench.deliver()

    assert [score["value"] for request in backend.requests for score in request] == [0.5, 0.9]
    assert backend.paths == [f"/api/public/scores/{old}"]
    assert [score["value"] for score in backend.stored.values()] == ([0.5, 0.9] if is_append_only else [0.9])
    assert bench.waiting() == 0


def test_an_old_score_stays_until_the_new_one_is_accepted(bench: Bench, backend: Backend) -> None:
    """Langfuse always shows one."""
    (exchange,) = write(bench.store, [0.5], scorer="tone", fingerprint="f1")
    bench.deliver()
    bench.clock.now = datetime.now(UTC)
    bench.score([exchange], value=0.9)
    backend.script.append(lambda scores: (207, {}, json.dumps({"errors": [{"id": scores[0]["id"]}]}).encode()))
    bench.deliver()

    assert [score["value"] for score in backend.stored.values()] == [0.5]
    bench.clock.advance(minutes=10)
    bench.deliver()
    assert [score["value"] for score in backend.stored.values()] == [0.9]


def test_a_later_label_of_the_same_person_replaces_the_earlier_one(bench: Bench, backend: Backend) -> None:
    """As everywhere in germane. Labels without a name are from different people."""
    (exchange,) = bench.add(1)
    for number, (user, score) in enumerate([("ada", 0.0), (None, 0.5), (None, 0.25), ("ada", 1.0), ("bo", 0.0)]):
        given = Feedback(id=str(number), exchange_id=exchange.id, score=score, user=user, created_at=bench.clock())
        bench.store.labels.add_feedback([given])
        bench.clock.advance(minutes=1)
        bench.deliver()

    assert sorted(score["value"] for score in backend.stored.values()) == [0.0, 0.25, 0.5, 1.0]


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"errors": [{"status": "x"}]}', b'{"errors": 3}'])
def test_an_unexpected_partial_response_is_retried(bench: Bench, backend: Backend, body: bytes) -> None:
    """If it is unknown which scores were rejected, all are written again, which changes nothing."""
    backend.script.append(lambda _: (207, {}, body))
    bench.score(bench.add(2))
    bench.deliver(times=2)

    assert [len(request) for request in backend.requests] == [2, 2]
    assert bench.waiting() == 0


@pytest.mark.parametrize("statuses", [(500, 400), (400, 500)])
def test_one_refused_score_does_not_keep_others_of_its_exchange_out(
    bench: Bench, backend: Backend, statuses: tuple[int, int]
) -> None:
    """The exchange is retried as long as one of its scores may still be accepted."""
    (exchange,) = bench.add(1)
    bench.score([exchange], name="a")
    bench.score([exchange], name="b")

    def reject(scores: Any) -> Any:
        errors = [{"id": score["id"], "status": code} for score, code in zip(scores, statuses, strict=True)]
        return 207, {}, json.dumps({"errors": errors}).encode()

    backend.script.append(reject)
    bench.deliver(times=2)

    assert backend.values().keys() == {(exchange.span_id, "a"), (exchange.span_id, "b")}


async def _test(backend: Backend) -> None:
    await langfuse(backend.url).test()


def test_the_test_reads_the_project(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes nothing, and reports a rejected key and a missing variable."""
    import asyncio

    asyncio.run(_test(backend))
    assert (backend.paths, backend.stored) == (["/api/public/projects"], {})
    backend.script.append(lambda _: (401, {}, b"{}"))
    with pytest.raises(DeliveryError, match="status 401: the key was rejected"):
        asyncio.run(_test(backend))
    monkeypatch.delenv("SECRET")
    with pytest.raises(SettingsError, match="the environment variable SECRET is not set"):
        asyncio.run(_test(backend))
    assert "SECRET is not set" in str(langfuse(backend.url).config_error)
