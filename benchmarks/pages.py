"""Latency and size of dashboard pages: python benchmarks/pages.py [--keep PATH] [--database sqlite] [--scores N].

The benchmark starts germane serve on a small database and on one with ten million scores from one year
(benchmarks/history.py), and sends requests over HTTP. Goals: the first page within 1 s of process start, with at most
80 MB of memory, and at most 110 MB after all pages; the overview of ten million scores in 100 ms at p95; each page
below 200 kB including style and script, also with ten thousand routes; and no requests to other hosts, as observed in
Chromium (skipped with a message if it is not installed). The exit code is 1 if a goal is missed. Times cover complete
requests over the loopback interface; the start time is the median of several starts.
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
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from history import History, last_hour
from queries import SERVERS, made

from germane.storage import SamplingDecision, TrackingStore

START_GOAL, OVERVIEW_GOAL, PAINT_GOAL = 1.0, 0.1, 0.5
"""Goals in seconds."""
MEMORY_GOAL, FINAL_MEMORY_GOAL = 80.0, 110.0
"""Goals for the peak memory at the first page and after all pages, in MB."""
SIZE_GOAL = 200.0
"""Goal in kB."""
ROUTES = 10_000
"""Routes that are added to the small database, after it is measured with its own routes."""
SMALL = 5_000
"""Scores in the small database."""
WINDOWS = ("24h", "7d", "30d", "90d")
PAGES = (
    "/answers", "/answers?sort=newest", "/answers?group=question", "/r/{route}", "/a/{answer}", "/sessions/{session}",
    "/compare", "/compare?by=model", "/usage", "/alerts", "/worker", "/metrics",
)  # fmt: skip
PAINT = "first-contentful-paint"
MB, KB = 1e6, 1e3


@dataclass
class Goals:
    """Prints figures with their goals, and collects the missed goals."""

    missed: list[str] = field(default_factory=list)

    def line(self, name: str, value: float, goal: float | None, unit: str) -> None:
        """Print one figure with its goal, if it has one."""
        over = goal is not None and value > goal
        shown = "" if goal is None else f"{goal:>9g}{'  MISSED' if over else ''}"
        print(f"{name:<44}{value:>9.4g} {unit:<3}{shown}", flush=True)
        if over:
            self.missed.append(name)


@dataclass
class Server:
    """A running ``germane serve``."""

    process: subprocess.Popen[str]
    address: str
    began: float

    def memory(self) -> float:
        """Return the peak memory of the process in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) * 1024 / MB


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
    goals.line(f"{name}: start to first page, median", statistics.median(seconds), START_GOAL, "s")
    goals.line(f"{name}: memory at the first page, median", statistics.median(memory), MEMORY_GOAL, "MB")


def measure_latency(server: Server, name: str, paths: list[str], runs: int, goals: Goals) -> None:
    """Measure the overview for each window, then the other pages."""
    with httpx2.Client(base_url=server.address, timeout=60) as client:
        for window in WINDOWS:
            _time(client, f"{name}: overview, {window}", f"/?window={window}", runs, OVERVIEW_GOAL, goals)
        for path in paths:
            _time(client, f"{name}: {path:.28}", path, max(5, runs // 5), None, goals)
    goals.line(f"{name}: memory after all pages", server.memory(), FINAL_MEMORY_GOAL, "MB")


def _time(client: httpx2.Client, name: str, path: str, runs: int, goal: float | None, goals: Goals) -> None:
    client.get(path).raise_for_status()
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        client.get(path).raise_for_status()
        seconds.append(time.perf_counter() - began)
    seconds.sort()
    goals.line(f"{name}, p50", statistics.median(seconds) * 1e3, None, "ms")
    goals.line(f"{name}, p95", seconds[int(0.95 * (len(seconds) - 1) + 0.5)] * 1e3, goal and goal * 1e3, "ms")


def measure_sizes(server: Server, name: str, paths: list[str], goals: Goals) -> None:
    """Measure the size of each page including style and script."""
    with httpx2.Client(base_url=server.address, timeout=60) as client:
        files = sum(len(client.get(f"/static/{file}").content) for file in ("style.css", "germane.js"))
        for path in ["/?window=7d", "/?window=90d", *(one for one in paths if one != "/metrics")]:
            size = (len(client.get(path).content) + files) / KB
            goals.line(f"{name}: size of {path:.28}", size, SIZE_GOAL, "kB")


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
        for path in ["/", "/", "/", *(one for one in paths if one != "/metrics")]:
            page.goto(server.address + path, wait_until="networkidle")
            if path == "/":
                page.wait_for_function(f"performance.getEntriesByName('{PAINT}').length > 0")
                paints.append(page.evaluate(f"performance.getEntriesByName('{PAINT}')[0].startTime"))
        browser.close()
    foreign = [one for one in requested if urlsplit(one).netloc != own and not one.startswith("data:")]
    goals.line("first paint of the overview, median", statistics.median(paints) / 1e3, PAINT_GOAL, "s")
    goals.line(f"requests to other hosts, of {len(requested)}", len(foreign), 0, "")


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
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--scores", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--starts", type=int, default=7)
    parser.add_argument("--database", choices=(*SERVERS, "both"), default="both")
    parser.add_argument(
        "--keep", type=Path, help="keep the databases in this folder, shared with benchmarks/queries.py"
    )
    given = parser.parse_args()
    goals = Goals()
    print(f"{'':<44}{'measured':>9} {'':<3}{'goal':>9}")
    with tempfile.TemporaryDirectory(prefix="germane-pages-") as temporary:
        folder = given.keep or Path(temporary)
        small = f"sqlite:///{temporary}/small.db"
        made(small, History(SMALL, 7, last_hour()), Path(temporary) / "small.until")
        measure_start(small, "small", given.starts, goals)
        with serving(small) as server:
            measure_with_browser(server, _paths(small), goals)
            add_routes(small)
            measure_sizes(server, f"{ROUTES:,} routes", _paths(small), goals)
        for name in SERVERS if given.database == "both" else [given.database]:
            history = History(given.scores, given.days, last_hour())
            measure_large(name, history, folder, (given.starts, given.runs), goals)
    print("missed: " + ", ".join(goals.missed) if goals.missed else "all goals are met")
    return 1 if goals.missed else 0


def measure_large(name: str, history: History, folder: Path, times: tuple[int, int], goals: Goals) -> None:
    """Fill one large database and measure all of its pages; ``times`` contains the numbers of starts and requests."""
    starts, runs = times
    place = folder.absolute() / f"{name}-{history.scores}-{history.days}"
    place.mkdir(parents=True, exist_ok=True)
    with SERVERS[name](place) as url:
        made(url, history, folder / f"{place.name}.until")
        paths = _paths(url)
        measure_start(url, name, starts, goals)
        with serving(url) as server:
            measure_latency(server, name, paths, runs, goals)
            measure_sizes(server, name, paths, goals)


if __name__ == "__main__":
    sys.exit(main())
