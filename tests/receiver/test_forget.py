"""``germane forget`` while spans of the user wait in the database."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.chaos.test_receiver_kills import free_port
from tests.databases import POSTGRESQL_IS_THOROUGH
from tests.receiver.conftest import exchanges, post, receive, wait_for
from tests.receiver.messages import chain, model_call, trace_request

from germane.storage import TrackingStore


@POSTGRESQL_IS_THOROUGH
@pytest.mark.slow
def test_a_users_spans_are_neither_stored_nor_forwarded_after_forget(store: TrackingStore, migrated_url: str) -> None:
    """The receiver goes on with the traces of others, whose spans came in the same requests."""
    dead = f"http://127.0.0.1:{free_port()}"
    roots = {user: chain(f"Who is {user}?", f"I am {user}.", attributes={"user.id": user}) for user in ("ann", "bob")}
    calls = [model_call(f"Who is {user}?", f"I am {user}.", parent=root) for user, root in roots.items()]
    with receive("--forward", dead, "--trace-wait", "20", url=migrated_url) as process:
        for spans in (calls, list(roots.values())):
            assert post(process.http, trace_request(*spans, service="shop")).status_code == 200
        forget = [sys.executable, "-m", "germane", "forget", "--user", "ann", "--yes", "--database", migrated_url]
        ended = subprocess.run(forget, capture_output=True, text=True, timeout=60, check=True)
        assert "1 unfinished trace, 2 unsent requests" in ended.stdout
        (found,) = wait_for(lambda: exchanges(store), timeout=60)
        wait_for(lambda: store.received.measure().traces == 0)
        assert process.stop() == 0
    assert found.answer == "I am bob."
