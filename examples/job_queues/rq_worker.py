"""A worker that runs each job in a forked process: python rq_worker.py."""

from __future__ import annotations

import os

from redis import Redis
from rq import Worker

import germane

if __name__ == "__main__":
    germane.start(role="capture")
    Worker(["default"], connection=Redis.from_url(os.environ["REDIS_URL"])).work(burst=True)
