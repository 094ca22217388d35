"""The fake judge as a separate process: ``python -m germane.testing.judge --port 0 --latency 0.1``."""

from __future__ import annotations

import argparse
import sys
import threading

from germane.testing.fake_judge import FakeJudge


def main() -> None:
    """Run the fake judge until interrupted.

    The first line of output is its base URL, such as http://127.0.0.1:40123/v1.
    """
    parser = argparse.ArgumentParser(prog="python -m germane.testing.judge", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: a free port)")
    parser.add_argument("--latency", type=float, default=0.0, help="delay before each reply, in seconds")
    parser.add_argument(
        "--embedding-latency",
        type=float,
        help="delay before each embedding reply, in seconds (default: the value of --latency)",
    )
    arguments = parser.parse_args()
    latencies = {"latency": arguments.latency, "embedding_latency": arguments.embedding_latency}
    with FakeJudge(port=arguments.port, **latencies) as judge:
        sys.stdout.write(judge.base_url + "\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
