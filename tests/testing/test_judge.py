"""The fake judge over real HTTP, and the fake embedder."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection, IncompleteRead, RemoteDisconnected
from typing import Any
from urllib.parse import urlsplit

import pytest

import germane
from germane.registry import BUILTIN_SCORER_NAMES
from germane.testing import FakeEmbedder, FakeJudge, Fault, hashed_words


@pytest.fixture
def judge() -> Iterator[FakeJudge]:
    """A judge with default options."""
    with FakeJudge() as judge:
        yield judge


def post(judge: FakeJudge, path: str, body: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
    """Send a request, and return the status, body and headers of the reply."""
    connection = HTTPConnection(urlsplit(judge.base_url).netloc, timeout=10)
    try:
        connection.request("POST", f"/v1/{path}", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read()), dict(response.getheaders())
    finally:
        connection.close()


def chat(judge: FakeJudge, text: str = "The sky is blue.", **more: Any) -> list[str]:
    """Send a chat request, and return the contents of the choices."""
    _, body, _ = post(judge, "chat/completions", {"messages": [{"role": "user", "content": text}], **more})
    return [choice["message"]["content"] for choice in body["choices"]]


def cosine(one: str, other: str) -> float:
    """Return the similarity of two texts according to the fake embedder."""
    return sum(a * b for a, b in zip(hashed_words(one), hashed_words(other), strict=True))


def test_the_default_reply_contains_questions_about_the_answer(judge: FakeJudge) -> None:
    """The reply contains the requested number of questions, which share words with the answer."""
    texts = chat(judge, n=3)

    assert len(set(texts)) == 3
    assert all(text.endswith("?") for text in texts)
    assert all(cosine(text, "What about the blue sky?") > cosine(text, "Who won the cup?") for text in texts)


def test_questions_and_votes_can_be_functions_of_the_answer(judge: FakeJudge) -> None:
    """The reply is JSON if the prompt asks for it."""
    judge.questions = lambda answer: [f"Is {answer} true?"]
    judge.noncommittal = lambda answer: "maybe" in answer

    (text,) = chat(
        judge, '<text-0f>\nmaybe\n</text-0f>\nReply with JSON only: {"question": "...", "noncommittal": ...}'
    )

    assert json.loads(text) == {"question": "Is maybe true?", "noncommittal": True}


def test_a_fake_judge_without_support_for_n_sends_one_choice(judge: FakeJudge) -> None:
    """Several real servers ignore ``n``."""
    judge.supports_n = False

    assert len(chat(judge, n=3)) == 1


def test_embeddings_of_the_fake_judge_are_deterministic(judge: FakeJudge) -> None:
    """Embeddings are the same over HTTP, in-process, and in every process. Fixed vectors are returned unchanged."""
    _, body, _ = post(judge, "embeddings", {"input": ["the sky", "the sea"]})

    assert [item["index"] for item in body["data"]] == [0, 1]
    assert body["data"][0]["embedding"] == hashed_words("the sky")
    assert cosine("the sky", "the sea") == pytest.approx(0.5)
    judge.vectors = {"a": [1.0, 0.0]}
    assert post(judge, "embeddings", {"input": "a"})[1]["data"][0]["embedding"] == [1.0, 0.0]


def test_the_fake_embedder_records_its_calls() -> None:
    """The embedder runs in-process and returns normalized vectors."""
    import asyncio

    embedder = FakeEmbedder({"a": [3.0, 4.0]})

    assert asyncio.run(embedder.embed(["a"])).tolist() == [[0.6, 0.8]]
    assert embedder.calls == [["a"]]


def test_the_fake_judge_lists_its_models(judge: FakeJudge) -> None:
    """``/v1/models`` lists the judge model and the embedding model."""
    connection = HTTPConnection(urlsplit(judge.base_url).netloc, timeout=10)
    connection.request("GET", "/v1/models")
    names = [model["id"] for model in json.loads(connection.getresponse().read())["data"]]
    connection.close()

    assert names == ["fake-judge", "fake-embedder"]


def test_the_fake_judge_returns_status_404_for_an_unknown_path(judge: FakeJudge) -> None:
    """The server replies with 404."""
    assert post(judge, "images", {})[0] == 404


def test_closing_the_fake_judge_twice_has_no_effect() -> None:
    """A judge that received no requests can also be closed."""
    with FakeJudge() as judge:
        judge.close()


def test_faults_of_the_fake_judge_apply_to_requests_in_order(judge: FakeJudge) -> None:
    """None means a request without a fault. After the last fault, all requests succeed."""
    judge.faults.extend([Fault("status", status=429, retry_after=3, code="busy"), None])

    status, body, headers = post(judge, "chat/completions", {"messages": []})

    assert (status, body["error"]["code"], headers["Retry-After"]) == (429, "busy", "3")
    assert chat(judge)
    assert chat(judge)


def test_an_outage_of_the_fake_judge_affects_all_requests_until_it_is_reset(judge: FakeJudge) -> None:
    """Chat and embedding requests fail."""
    judge.outage = Fault("status", status=503)
    assert post(judge, "chat/completions", {"messages": []})[0] == 503
    assert post(judge, "embeddings", {"input": ["a"]})[0] == 503

    judge.outage = None
    assert chat(judge)


def test_connection_faults_reach_the_client(judge: FakeJudge) -> None:
    """The connection is reset, or closed in the middle of a body."""
    judge.faults.extend([Fault("reset"), Fault("truncated")])

    with pytest.raises((ConnectionResetError, RemoteDisconnected)):
        chat(judge)
    with pytest.raises(IncompleteRead):
        chat(judge)


def test_requests_to_the_fake_judge_are_recorded(judge: FakeJudge) -> None:
    """The path, body and headers of chat and embedding requests are available."""
    chat(judge, "hello")
    post(judge, "embeddings", {"input": ["a"]})

    assert [request.path for request in judge.requests] == ["/v1/chat/completions", "/v1/embeddings"]
    assert judge.chat_requests[0].body["messages"][0]["content"] == "hello"
    assert judge.embedding_requests[0].headers["content-type"] == "application/json"


def test_concurrent_requests_to_the_fake_judge_are_counted(judge: FakeJudge) -> None:
    """The maximum is recorded, and the current number returns to zero."""
    meeting = threading.Barrier(4)
    judge.questions = lambda answer: [f"Who came as number {meeting.wait(60)}?"]
    threads = [threading.Thread(target=chat, args=(judge,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert judge.max_in_flight == 4
    assert judge.in_flight == 0


def chat_until_disconnected(judge: FakeJudge) -> None:
    """Send a chat request, and expect the connection to close."""
    with pytest.raises(RemoteDisconnected):
        chat(judge)


def test_closing_the_fake_judge_ends_waiting_requests() -> None:
    """Closing the judge also ends hanging requests and threads."""
    before = set(threading.enumerate())
    with FakeJudge(faults=[Fault("hang")]) as judge:
        hanging = threading.Thread(target=chat_until_disconnected, args=(judge,))
        hanging.start()
        while not judge.chat_requests:
            hanging.join(0.01)
    hanging.join(10)

    assert not hanging.is_alive()
    assert set(threading.enumerate()) <= before


def test_settings_of_the_fake_judge_make_germane_use_it(judge: FakeJudge) -> None:
    """The settings contain the URL, the key and both models, and disable proxy scores."""
    assert judge.settings() == {
        "base_url": judge.base_url,
        "api_key": "test",
        "judge": "fake-judge",
        "embedder": "fake-embedder",
        "proxy_cpu": "0",
    }


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"answer_relevancy": {"similarity": "judge"}},
        {"answer_relevancy": {"similarity": "judge", "generated_questions": 10}},
        {"faithfulness": {"claims": "judge"}},
        {"noncommittal": {"judge": True}},
    ],
    ids=str,
)
def test_every_built_in_scorer_accepts_default_replies(judge: FakeJudge, options: dict[str, dict[str, object]]) -> None:
    """An evaluation with the fake judge produces values and no failures."""
    row = {
        "question": "Who invented Python, and when?",
        "answer": "Guido van Rossum did. It was in 1991. Perl is older.",
        "contexts": ["Guido van Rossum created Python.", "Perl is from 1987."],
    }
    evaluation = germane.evaluate(
        [row], list(options or BUILTIN_SCORER_NAMES), scorer_options=options, **judge.settings()
    )

    assert [(score.scorer, score.explanation) for score in evaluation.scores if score.value is None] == []


def test_the_fake_judge_can_run_as_a_separate_process() -> None:
    """The first line of output is the judge's URL. Killing the process simulates an outage."""
    command = [sys.executable, "-W", "error", "-m", "germane.testing.judge", "--port", "0", "--latency", "0.01"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().strip())
        connection = HTTPConnection(address.netloc, timeout=10)
        connection.request("GET", f"{address.path}/models")
        assert connection.getresponse().status == 200
        connection.close()

        process.kill()
