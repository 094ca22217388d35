"""Many processes on one database: each exchange is stored and scored once."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from tests.runtime.test_processes import HANDLER, start_and_drain

from germane.storage import TrackingStore
from germane.testing import FakeJudge

pytestmark = pytest.mark.slow

Start = Callable[..., "subprocess.Popen[str]"]
Run = Callable[..., tuple[str, str]]
Until = Callable[..., None]

PREFORK = (
    HANDLER
    + """
import signal

def leave(number, frame):
    sys.exit(0)  # like a forking server: exit handlers run

def worker(number):
    signal.signal(signal.SIGTERM, leave)
    if not PRELOADED:
        germane.start()
    os.write(ready, b'.')
    ask_all(f'worker {number}', 20)
    os.write(done, b'.')
    while not threading.Event().wait(0.1):  # a signal right before a wait does not interrupt it
        pass

PRELOADED = os.environ['PRELOADED'] == '1'
if PRELOADED:
    germane.start()
    ask_all('master', 5)
(_, ready), (finished, done) = os.pipe(), os.pipe()
children = []
for number in range(2):
    child = os.fork()
    if not child:
        worker(number)
    children.append(child)
for child in children:
    os.read(finished, 1)
for child in children:
    os.kill(child, signal.SIGTERM)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""
)


CONCURRENT_APPLICATIONS = (
    HANDLER
    + """
import openai, germane.monitor, germane.scorers, germane.storage  # before the forks, because importing is slow

for number in range(3):
    if not os.fork():
        germane.start()
        ask_all(number, 40)
        os.read(0, 1)
        sys.exit(not germane.stop(drain_timeout=60))
print([os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(3)])
"""
)


@pytest.fixture
def url(database_url: str) -> str:
    """A migrated database, once on SQLite and once on PostgreSQL."""
    with closing(TrackingStore(database_url)) as store:
        store.migrate()
    return database_url


@pytest.fixture
def store(url: str) -> Iterator[TrackingStore]:
    """A store on the test database."""
    with closing(TrackingStore(url)) as opened:
        yield opened


def times_requested(judge: FakeJudge) -> list[int]:
    """Return the distinct numbers of times that a request was sent. An exchange takes two: questions and a rating."""
    return sorted(set(Counter(str(request.body["messages"]) for request in judge.chat_requests).values()))


def test_concurrent_applications_score_each_exchange_once(
    program: Start, judge: FakeJudge, url: str, store: TrackingStore, until: Until
) -> None:
    """Three processes capture and score on one database."""
    without_alerts = json.dumps([{"type": "drop", "enabled": False}])
    processes = program(
        CONCURRENT_APPLICATIONS, judge, GERMANE_DATABASE=url, OTEL_SERVICE_NAME="shop", GERMANE_RULES=without_alerts
    )
    until(lambda: store.answers.counts().done == 120)

    assert processes.communicate("...", timeout=250) == ("[0, 0, 0]\n", "")
    assert (store.answers.counts().captured, store.answers.counts().scores) == (120, 120)
    assert (len(judge.chat_requests), times_requested(judge)) == (2 * 120, [1])
    (covered,) = [one for one in store.trends.coverage() if one.scorer]
    assert (covered.seen, covered.scored, covered.pending) == (120, 120, 0)


@pytest.mark.parametrize("preloaded", ["1", "0"])
def test_no_exchange_is_lost_when_a_forking_server_stops(
    preloaded: str, run: Run, judge: FakeJudge, database: str
) -> None:
    """Whether germane starts before or after the forks, each worker writes the exchanges captured until the signal."""
    printed, logged = run(PREFORK, judge, PRELOADED=preloaded)
    captured = 40 + 5 * int(preloaded)

    assert (printed, logged) == ("[0, 0]\n", "")
    with closing(TrackingStore(database)) as store:
        assert (store.answers.counts().captured, store.answers.counts().running) == (captured, 0)
        start_and_drain(judge, database)
        assert (store.answers.counts().done, store.answers.counts().scores) == (captured, captured)
    assert (len(judge.chat_requests), times_requested(judge)) == (2 * captured, [1])


def test_spawned_servers_stop_when_their_lifespan_ends(run: Run, judge: FakeJudge, database: str) -> None:
    """As in uvicorn workers, SIGTERM ends first the lifespan and then the process."""
    pytest.importorskip("uvicorn", reason="needs a server")
    code = """
import asyncio, multiprocessing, os, signal, socket, sys
import germane

@germane.observe
async def ask(question: str) -> str:
    return f"By card, at counter {question}."

async def app(scope, receive, send):
    if scope['type'] == 'lifespan':
        await receive()
        async with germane.lifespan():
            await send({'type': 'lifespan.startup.complete'})
            await receive()
        await send({'type': 'lifespan.shutdown.complete'})
        return
    for number in range(10):
        await ask(f'{os.getpid()} {number}')
    await send({'type': 'http.response.start', 'status': 200, 'headers': []})
    await send({'type': 'http.response.body', 'body': b'ok'})

def serve(listener):
    import uvicorn
    server = uvicorn.Server(uvicorn.Config(app, log_level='error'))
    asyncio.run(server.serve(sockets=[listener]))

if __name__ == '__main__':
    import urllib.request
    listener = socket.create_server(('127.0.0.1', 0))
    child = multiprocessing.get_context('spawn').Process(target=serve, args=(listener,))
    child.start()
    with urllib.request.urlopen(f'http://127.0.0.1:{listener.getsockname()[1]}/', timeout=60) as reply:
        reply.read()
    child.terminate()
    child.join()
    listener.close()
    print(child.exitcode)
"""
    printed, logged = run(code, judge)

    assert (printed, logged) == (f"{-signal.SIGTERM.value}\n", "")
    with closing(TrackingStore(database)) as store:
        assert (store.answers.counts().captured, store.answers.counts().running) == (10, 0)
