"""Latency and size of dashboard pages: python benchmarks/pages.py [--keep PATH] [--database sqlite] [--scores N].

The benchmark starts germane serve on a small database and on two with one and ten million scores from one year
(benchmarks/history.py; --scores measures another number), and sends requests over HTTP. Goals: the first page within
1 s of process start, with at most 80 MB of memory, and at most 110 MB after all pages; each page in 100 ms at p95, over
24 hours to 90 days; each page below 110 kB including style and script, and below 200 kB with ten thousand routes; and
no requests to other hosts, as observed in Chromium (skipped with a message if it is not installed). The exit code is 1
if a goal is missed. Times cover complete requests over the loopback interface; the start time is the median of several
starts.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from common import KINDS, Goals, add_database_arguments, fill_once, filled, percentile, repeated, resident_megabytes
from history import History, last_hour

from germane.settings import load_settings
from germane.storage import SamplingDecision, TrackingStore

START_GOAL, PAGE_GOAL, PAINT_GOAL = 1.0, 0.1, 0.5
"""Goals in seconds."""
MEMORY_GOAL, FINAL_MEMORY_GOAL = 80.0, 110.0
"""Goals for the peak memory at the first page and after all pages, in MB."""
SIZE_GOAL, SMALL_SIZE_GOAL = 200.0, 110.0
"""Goals in kB, the second one for the small database."""
ROUTES = 10_000
"""Routes that are added to the small database, after it is measured with its own routes."""
SMALL = 5_000
"""Scores in the small database."""
LARGE = (1_000_000, 10_000_000)
"""Scores in the large databases."""
WINDOWS = ("24h", "7d", "30d", "90d")
PAGES_OF_WINDOW = (
    "/", "/answers", "/answers?sort=newest", "/answers?sort=highest_cost", "/answers?state=failed",
    "/answers?group=question", "/r/{route}", "/a/{answer}", "/compare", "/compare?by=model",
    "/compare?by=prompt_version", "/usage",
)  # fmt: skip
"""Pages that show a window, which are measured for each one."""
PAGES = (*PAGES_OF_WINDOW, "/sessions/{session}", "/alerts", "/worker", "/labels", "/metrics")
PAINT = "first-contentful-paint"


class Server:
    """A running ``germane serve``."""

    def __init__(self, process: subprocess.Popen[str], address: str, began: float) -> None:
        self.address, self.began, self._pid = address, began, process.pid

    def memory(self) -> float:
        """Return the peak memory of the process in MB."""
        return resident_megabytes(self._pid, peak=True)


@contextmanager
def serving(url: str) -> Iterator[Server]:
    """Run a server on a free port."""
    command = [sys.executable, "-m", "germane", "serve", "--port", "0", "--database", url]
    # pip compiles the modules that it installs, so this process may write compiled modules and templates.
    ignored = ("GERMANE_", "OTEL_", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ignored)}
    began = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stderr is not None
        line = next(one for one in process.stderr if "http://" in one)
        yield Server(process, "http://" + line.split("http://")[1].strip(), began)
    finally:
        process.terminate()
        process.communicate(timeout=30)


def measure_start(url: str, name: str, starts: int, goals: Goals) -> None:
    """Start the server several times and request one page each time."""
    seconds, memory = [], []
    for _ in range(starts):
        with serving(url) as server:
            httpx2.get(server.address).raise_for_status()
            seconds.append(time.perf_counter() - server.began)
            memory.append(server.memory())
    goals.medians(f"{name}: start to first page", seconds, "s", most=START_GOAL)
    goals.medians(f"{name}: memory at the first page", memory, "MB", most=MEMORY_GOAL)


def measure_latency(server: Server, name: str, paths: list[str], runs: int, goals: Goals) -> None:
    """Measure each page, in each window if it shows one."""
    with httpx2.Client(base_url=server.address, timeout=60) as client:
        for index, path in enumerate(paths):
            for window in WINDOWS if index < len(PAGES_OF_WINDOW) else ("",):
                link = f"{path}{'&' if '?' in path else '?'}window={window}" if window else path
                client.get(link).raise_for_status()  # compiles queries and templates
                seconds = repeated(runs, lambda link=link: client.get(link).raise_for_status())  # type: ignore[misc]  # mypy: no type for a default
                title = f"{name}: {path:.28} {window}".strip()
                goals.medians(f"{title}, p50", [1e3 * one for one in seconds], "ms")
                goals.line(f"{title}, p95", 1e3 * percentile(seconds, 0.95), "ms", most=1e3 * PAGE_GOAL)
    goals.line(f"{name}: memory after all pages", server.memory(), "MB", most=FINAL_MEMORY_GOAL)


def measure_sizes(server: Server, name: str, paths: list[str], goals: Goals, most: float = SIZE_GOAL) -> None:
    """Measure the size of each page including style and script."""
    with httpx2.Client(base_url=server.address, timeout=60) as client:
        files = sum(len(client.get(f"/static/{file}").content) for file in ("style.css", "germane.js"))
        for path in ["/?window=90d", *(one for one in paths if one != "/metrics")]:
            size = (len(client.get(path).content) + files) / 1e3
            goals.line(f"{name}: size of {path:.28}", size, "kB", most=most)


def measure_with_browser(server: Server, paths: list[str], goals: Goals) -> None:
    """Open every page in Chromium; count requests to other hosts and measure the first paint of the overview."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("Chromium is not installed: requests to other hosts were not checked")
        return
    from playwright.sync_api import sync_playwright

    own = urlsplit(server.address).netloc
    requested: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: requested.append(request.url))
        paints = []
        for path in ["/", "/", *(one for one in paths if one != "/metrics")]:
            page.goto(server.address + path, wait_until="networkidle")
            if path == "/":
                page.wait_for_function(f"performance.getEntriesByName('{PAINT}').length > 0")
                paints.append(page.evaluate(f"performance.getEntriesByName('{PAINT}')[0].startTime"))
        browser.close()
    foreign = [one for one in requested if urlsplit(one).netloc != own and not one.startswith("data:")]
    goals.line("first paint of the overview, median", statistics.median(paints) / 1e3, "s", most=PAINT_GOAL)
    goals.line(f"requests to other hosts, of {len(requested)}", len(foreign), most=0)


def _paths(url: str) -> list[str]:
    """Return the paths of the pages, with an existing route and answer."""
    with closing(TrackingStore(url)) as store:
        store.migrate()
        found = store.answers.worst(limit=1)[0].exchange
    return [path.format(route=found.route, answer=found.id, session=found.session) for path in PAGES]


def add_routes(url: str) -> None:
    """Add one exchange on each of many routes with long names."""
    with closing(TrackingStore(url)) as store:
        scored = store.answers.worst(limit=1)[0]
        copies = [
            replace(scored.exchange, id=f"{number:032x}", route=f"tenant-{number:05d}/documents/search")
            for number in range(ROUTES)
        ]
        for start in range(0, ROUTES, 1_000):
            added = copies[start : start + 1_000]
            store.exchanges.add(added)
            decisions = [SamplingDecision(one.id, 1.0, "sampled") for one in added]
            store.sampling.assign_tasks(decisions, {scored.score.scorer: scored.score.fingerprint or ""})


def main() -> int:
    """Run the benchmark; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    add_database_arguments(parser, scores=0)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--starts", type=int, default=7)
    given = parser.parse_args()
    goals = Goals(width=62)
    with tempfile.TemporaryDirectory(prefix="germane-pages-") as temporary:
        small = f"sqlite:///{temporary}/small.db"
        fill_once(small, History(SMALL, 7, last_hour()), Path(temporary) / "small.until")
        measure_start(small, "small", given.starts, goals)
        with serving(small) as server:
            measure_with_browser(server, _paths(small), goals)
            measure_sizes(server, "small", _paths(small), goals, SMALL_SIZE_GOAL)
            add_routes(small)
            measure_sizes(server, f"{ROUTES:,} routes", _paths(small), goals)
        for kind in KINDS[given.database]:
            for scores in [given.scores] if given.scores else LARGE:
                history, name = History(scores, given.days, last_hour()), f"{kind}, {scores / 1e6:g} million"
                breakdowns = load_settings(database=small).breakdowns
                with filled(kind, history, given.keep or Path(temporary), breakdowns) as (url, _):
                    paths = _paths(url)
                    measure_start(url, name, given.starts, goals)
                    with serving(url) as server:
                        measure_latency(server, name, paths, given.runs, goals)
                        measure_sizes(server, name, paths, goals)
    return goals.exit_code()


if __name__ == "__main__":
    sys.exit(main())
