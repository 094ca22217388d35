"""The fake judge speaks the protocol over real HTTP, fails as told, and leaves nothing behind."""

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
from germane.scorers import BUILTIN_SCORER_NAMES
from germane.testing import FakeEmbedder, FakeJudge, Fault, hashed_words


@pytest.fixture
def judge() -> Iterator[FakeJudge]:
    """A judge without options."""
    with FakeJudge() as judge:
        yield judge


def post(judge: FakeJudge, path: str, body: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
    """Return status, body and headers of a reply."""
    connection = HTTPConnection(urlsplit(judge.base_url).netloc, timeout=10)
    try:
        connection.request("POST", f"/v1/{path}", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read()), dict(response.getheaders())
    finally:
        connection.close()


def chat(judge: FakeJudge, text: str = "The sky is blue.", **more: Any) -> list[str]:
    """Return the contents of the choices."""
    _, body, _ = post(judge, "chat/completions", {"messages": [{"role": "user", "content": text}], **more})
    return [choice["message"]["content"] for choice in body["choices"]]


def cosine(one: str, other: str) -> float:
    """Return the similarity of two texts as the fake embedder sees it."""
    return sum(a * b for a, b in zip(hashed_words(one), hashed_words(other), strict=True))


def test_it_writes_questions_about_the_answer(judge: FakeJudge) -> None:
    """As many as are asked for, near to a question that shares the answer's words."""
    texts = chat(judge, n=3)

    assert len(set(texts)) == 3
    assert all(text.endswith("?") for text in texts)
    assert all(cosine(text, "What about the blue sky?") > cosine(text, "Who won the cup?") for text in texts)


def test_questions_and_votes_may_be_given(judge: FakeJudge) -> None:
    """As functions of the answer; JSON where the prompt asks for it."""
    judge.questions = lambda answer: [f"Is {answer} true?"]
    judge.noncommittal = lambda answer: "maybe" in answer

    (text,) = chat(judge, '<text-0f>\nmaybe\n</text-0f>\nReply with JSON only: {"question": "..."}')

    assert json.loads(text) == {"question": "Is maybe true?", "noncommittal": True}


def test_it_may_ignore_n(judge: FakeJudge) -> None:
    """As several real servers do."""
    judge.supports_n = False

    assert len(chat(judge, n=3)) == 1


def test_embeddings_are_the_same_everywhere(judge: FakeJudge) -> None:
    """Over HTTP, in process, and in every process; texts set by hand keep their vectors."""
    _, body, _ = post(judge, "embeddings", {"input": ["the sky", "the sea"]})

    assert [item["index"] for item in body["data"]] == [0, 1]
    assert body["data"][0]["embedding"] == hashed_words("the sky")
    assert cosine("the sky", "the sea") == pytest.approx(0.5)
    judge.vectors = {"a": [1.0, 0.0]}
    assert post(judge, "embeddings", {"input": "a"})[1]["data"][0]["embedding"] == [1.0, 0.0]


def test_the_embedder_in_process_needs_no_server() -> None:
    """It remembers what it was asked."""
    import asyncio

    embedder = FakeEmbedder({"a": [3.0, 4.0]})

    assert asyncio.run(embedder.embed(["a"])).tolist() == [[0.6, 0.8]]
    assert embedder.calls == [["a"]]


def test_models_are_listed(judge: FakeJudge) -> None:
    """Both of them."""
    connection = HTTPConnection(urlsplit(judge.base_url).netloc, timeout=10)
    connection.request("GET", "/v1/models")
    names = [model["id"] for model in json.loads(connection.getresponse().read())["data"]]
    connection.close()

    assert names == ["fake-judge", "fake-embedder"]


def test_other_paths_are_not_found(judge: FakeJudge) -> None:
    """404, as anywhere."""
    assert post(judge, "images", {})[0] == 404


def test_closing_twice_is_no_error() -> None:
    """Nor is a judge that nobody asked."""
    with FakeJudge() as judge:
        judge.close()


def test_a_script_of_faults_is_played_in_order(judge: FakeJudge) -> None:
    """None is a request that goes well; afterwards all do."""
    judge.faults.extend([Fault("status", status=429, retry_after=3, code="busy"), None])

    status, body, headers = post(judge, "chat/completions", {"messages": []})

    assert (status, body["error"]["code"], headers["Retry-After"]) == (429, "busy", "3")
    assert chat(judge)
    assert chat(judge)


def test_an_outage_lasts_until_it_is_over(judge: FakeJudge) -> None:
    """For chat and embeddings alike."""
    judge.outage = Fault("status", status=503)
    assert post(judge, "chat/completions", {"messages": []})[0] == 503
    assert post(judge, "embeddings", {"input": ["a"]})[0] == 503

    judge.outage = None
    assert chat(judge)


def test_connections_break_in_the_ways_they_do(judge: FakeJudge) -> None:
    """By reset, and in the middle of a body."""
    judge.faults.extend([Fault("reset"), Fault("truncated")])

    with pytest.raises((ConnectionResetError, RemoteDisconnected)):
        chat(judge)
    with pytest.raises(IncompleteRead):
        chat(judge)


def test_requests_are_recorded(judge: FakeJudge) -> None:
    """Path, body and headers, by kind."""
    chat(judge, "hello")
    post(judge, "embeddings", {"input": ["a"]})

    assert [request.path for request in judge.requests] == ["/v1/chat/completions", "/v1/embeddings"]
    assert judge.chat_requests[0].body["messages"][0]["content"] == "hello"
    assert judge.embedding_requests[0].headers["content-type"] == "application/json"


def test_requests_in_flight_are_counted(judge: FakeJudge) -> None:
    """The most that ever overlapped, and none when all is done."""
    meeting = threading.Barrier(4)
    judge.questions = lambda answer: [f"Who came as number {meeting.wait(60)}?"]
    threads = [threading.Thread(target=chat, args=(judge,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert judge.max_in_flight == 4
    assert judge.in_flight == 0


def chat_in_vain(judge: FakeJudge) -> None:
    """Ask and be cut off."""
    with pytest.raises(RemoteDisconnected):
        chat(judge)


def test_closing_frees_whoever_waits() -> None:
    """A request that hangs ends with the judge, and so do its threads."""
    before = set(threading.enumerate())
    with FakeJudge(faults=[Fault("hang")]) as judge:
        hanging = threading.Thread(target=chat_in_vain, args=(judge,))
        hanging.start()
        while not judge.chat_requests:
            hanging.join(0.01)
    hanging.join(10)

    assert not hanging.is_alive()
    assert set(threading.enumerate()) <= before


def test_settings_point_germane_at_it(judge: FakeJudge) -> None:
    """Address, key and both models; no other model is loaded beside it."""
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
def test_every_scorer_can_read_what_it_says(judge: FakeJudge, options: dict[str, dict[str, object]]) -> None:
    """Whoever tries germane out with it sees values, not failures."""
    row = {
        "question": "Who invented Python, and when?",
        "answer": "Guido van Rossum did. It was in 1991. Perl is older.",
        "contexts": ["Guido van Rossum created Python.", "Perl is from 1987."],
    }
    evaluation = germane.evaluate([row], list(options or BUILTIN_SCORER_NAMES), scorer_options=options, **judge.settings())

    assert [(score.scorer, score.explanation) for score in evaluation.scores if score.value is None] == []


def test_it_runs_as_a_process_of_its_own() -> None:
    """The first line is its address; killing it is a judge that went away."""
    command = [sys.executable, "-W", "error", "-m", "germane.testing.judge", "--port", "0", "--latency", "0.01"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().strip())
        connection = HTTPConnection(address.netloc, timeout=10)
        connection.request("GET", f"{address.path}/models")
        assert connection.getresponse().status == 200
        connection.close()

        process.kill()
