"""Tests of `germane rescore`."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage import TrackingStore, WorkerHeartbeat

Call = Callable[..., Any]
Scored = Callable[..., list[Exchange]]
LEASE = timedelta(minutes=1)
NOTHING = {"ready": 0, "waiting": 0, "erased": 0, "not_sampled": 0, "unknown": 0}


@pytest.fixture(autouse=True)
def worker(store: TrackingStore) -> None:
    """A scoring process that reports its scorers."""
    store.workers.heartbeat(
        WorkerHeartbeat(id="w", host="h", pid=1, service="shop", version="1", scorers={"answer_relevancy": "f1"}),
        [],
        lease=LEASE,
    )


def ready(store: TrackingStore, fingerprint: str = "f1") -> set[str]:
    """Return the exchanges that are ready to be scored."""
    claims = store.queue.claim_tasks("me", {"answer_relevancy": fingerprint}, limit=100, lease=LEASE)
    return {claim.exchange.id for claim in claims}


def test_failed_scores_can_be_rescored(call: Call, store: TrackingStore, scored: Scored) -> None:
    """All failures can be selected, or only those with one reason. Scores do not change."""
    made = scored(store, [0.9, UnscoredReason.JUDGE_REJECTED, UnscoredReason.UNPARSABLE])

    one = call("rescore", "--failed", "judge_rejected", "--json").content
    assert (one["answers"], one["outcome"]) == (1, NOTHING | {"ready": 1})
    assert ready(store) == {made[1].id}

    rest = call("rescore", "--failed", "--json").content
    assert (rest["answers"], rest["outcome"]) == (1, NOTHING | {"ready": 1})
    assert ready(store) == {made[2].id}
    assert [one.value for one in store.answers.get_scores([made[0].id])[made[0].id]] == [0.9]


def test_all_answers_in_the_window_are_rescored_by_default(call: Call, store: TrackingStore, scored: Scored) -> None:
    """Scores and failures since a given time are rescored. Pending tasks are counted."""
    scored(store, [0.1], started_at=datetime.now(UTC) - timedelta(days=2))
    made = scored(store, [0.9, 0.2, UnscoredReason.UNPARSABLE])

    first = call("rescore")
    second = call("rescore", "--json").content

    assert first.code == 0
    assert "3 answers to rescore:" in first.out
    assert "answer_relevancy: 3 answers, about 6 requests" in first.out
    assert "3 queued for scoring" in first.out
    assert second["outcome"] == NOTHING | {"waiting": 2}
    assert ready(store) == {one.id for one in made}


def test_scores_below_a_value_can_be_rescored(call: Call, store: TrackingStore, scored: Scored) -> None:
    """Scores can also be selected by route and scorer. A note explains regression to the mean."""
    made = scored(store, [0.9, 0.2], route="ask")
    scored(store, [0.1], route="search")

    ended = call("rescore", "--below", "0.5", "--route", "ask", "--scorer", "answer_relevancy")

    assert "1 answer to rescore" in ended.out
    assert "raises the mean slightly" in ended.out
    assert ready(store) == {made[1].id}


def test_an_estimate_of_rescoring_changes_nothing(call: Call, store: TrackingStore, scored: Scored) -> None:
    """The output shows the estimated number of requests."""
    scored(store, [0.9, 0.2])

    content = call("rescore", "--estimate", "--json").content

    assert content["estimate"]
    assert content["outcome"] is None
    (of_scorer,) = content["scorers"]
    assert (of_scorer["scorer"], of_scorer["fingerprint"], of_scorer["answers"]) == ("answer_relevancy", "f1", 2)
    assert of_scorer["requests"] == 4
    assert ready(store) == set()
    assert "queued for scoring" not in call("rescore", "--estimate").out


def test_a_score_with_a_new_fingerprint_is_added_to_the_old_score(
    call: Call, store: TrackingStore, scored: Scored
) -> None:
    """The new fingerprint is that of the running process."""
    made = scored(store, [0.9], fingerprint="old")

    assert call("rescore", "--json").content["outcome"] == NOTHING | {"ready": 1}

    (claim,) = store.queue.claim_tasks("me", {"answer_relevancy": "f1"}, limit=9, lease=LEASE)
    store.queue.complete_tasks(
        "me", [(task, Score(scorer=task.scorer, fingerprint="f1", value=0.4)) for task in claim.tasks]
    )
    assert sorted((one.fingerprint, one.value) for one in store.answers.get_scores([made[0].id])[made[0].id]) == [
        ("f1", 0.4),
        ("old", 0.9),
    ]


def test_the_limit_option_of_rescore_selects_the_newest_answers(
    call: Call, store: TrackingStore, scored: Scored
) -> None:
    """The output states that there are more answers."""
    now = datetime.now(UTC)
    made = [scored(store, [0.5], started_at=now - timedelta(minutes=minutes))[0] for minutes in (5, 3, 1)]

    content = call("rescore", "--limit", "2", "--json").content

    assert (content["answers"], content["is_limited"]) == (2, True)
    assert ready(store) == {made[1].id, made[2].id}


def test_rescore_skips_and_counts_exchanges_with_erased_texts(call: Call, store: TrackingStore, scored: Scored) -> None:
    """There is nothing to send to a judge."""
    scored(store, [0.5, 0.6])
    store.retention.prune(texts_before=datetime.now(UTC))

    assert "2 skipped: the text was erased" in call("rescore").out


def test_the_settings_determine_the_scorers_to_rescore_without_a_worker(
    call: Call, store: TrackingStore, scored: Scored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note states that no process is scoring."""
    store.workers.deregister_worker("w")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    made = scored(store, [0.5], fingerprint="of another judge")

    ended = call("rescore", "--scorer", "answer_relevancy")

    assert "1 queued for scoring" in ended.out
    assert "no process is scoring at the moment; start one with: germane worker" in ended.out
    sheet = store.answers.load_detail(made[0].id)
    assert sheet is not None
    assert [one.state for one in sheet.tasks] == ["done", "pending"]


def test_finding_nothing_to_rescore_is_not_an_error(call: Call, store: TrackingStore) -> None:
    """Invalid combinations of options are an error."""
    nothing = call("rescore").out
    assert nothing.startswith("Nothing to rescore: only answers with a score or a failure can be queued.")
    assert "--since" in nothing
    assert "--all" in nothing
    assert call("rescore", "--below", "0.5", "--failed").code == 2
    assert call("rescore", "--failed", "bored").code == 2
    unknown = call("rescore", "--scorer", "nobody")
    assert unknown.code == 1
    assert "running: answer_relevancy" in unknown.err
    assert store.answers.counts().pending == 0


def _spoken(answer: str, environment: dict[str, str]) -> tuple[int, str]:
    """Run the command on a terminal, and answer its question."""
    near, far = pty.openpty()
    command = [sys.executable, "-m", "germane", "rescore"]
    with subprocess.Popen(command, stdin=far, stdout=far, stderr=far, env=environment, close_fds=True) as process:
        os.close(far)
        os.write(near, answer.encode())
        text = "".join(_read(near))
        code = process.wait(30)
    os.close(near)
    return code, text


def _read(near: int) -> Iterator[str]:
    while True:
        try:
            part = os.read(near, 4096)
        except OSError:  # the other end is closed
            return
        if not part:
            return
        yield part.decode()


@pytest.mark.slow
def test_rescore_asks_for_confirmation_on_a_terminal(
    store: TrackingStore, scored: Scored, environment: dict[str, str]
) -> None:
    """The command first shows the estimate."""
    made = scored(store, [0.5])

    code, text = _spoken("n\n", environment)

    assert code == 130
    assert "about 2 requests," in text
    assert "Rescore these answers?" in text
    assert ready(store) == set()
    code, _ = _spoken("y\n", environment)
    assert code == 0
    assert ready(store) == {made[0].id}
