"""The fake judge, in this process or as one of its own: ``python -m germane.testing.judge --port 0 --latency 0.1``."""

from __future__ import annotations

import argparse
import sys
import threading

from germane.testing.fake_judge import FakeJudge, questions_about
from germane.testing.fault import Fault
from germane.testing.judge_request import Request
from germane.testing.judge_server import hashed_words

__all__ = ["FakeJudge", "Fault", "Request", "hashed_words", "main", "questions_about"]


def main() -> None:
    """Serve until killed. The first line of output is the address, such as ``http://127.0.0.1:40123/v1``."""
    parser = argparse.ArgumentParser(prog="python -m germane.testing.judge", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each reply")
    parser.add_argument("--embedding-latency", type=float, help="the same for embeddings, where it differs")
    arguments = parser.parse_args()
    given = {"latency": arguments.latency, "embedding_latency": arguments.embedding_latency}
    with FakeJudge(port=arguments.port, **given) as judge:
        sys.stdout.write(judge.base_url + "\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
