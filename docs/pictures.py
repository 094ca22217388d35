"""Takes the screenshots of the dashboard in pictures/. Run: make pictures

The screenshots show the real pages with the sample week of the tests at a fixed time, rendered by Chromium. If no page
has changed, the images do not change either, except for font differences and a few pixels at the edges of letters.
"""

from __future__ import annotations

import base64
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Literal

import numpy as np
from palette import png
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.dashboard.seeding import FINGERPRINTS, NOW, SEARCH, SERVICE, Seeded, seed  # noqa: E402 - from the checkout
from tests.dashboard.seeding_traces import FASTAPI, FIRST_ID, OPENAI, add_watched_traces  # noqa: E402

from germane.dashboard import create_app  # noqa: E402
from germane.score import Score  # noqa: E402
from germane.settings import Budget, Settings, load_settings  # noqa: E402
from germane.storage import JobRun, JobRuns, LabelPopulation, RequestUsage, TrackingStore, WorkerHeartbeat  # noqa: E402
from germane.web_server import WebServer  # noqa: E402

FOLDER = ROOT / "docs" / "pictures"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
WIDE, NARROW = 1200, 390
TALLEST = {WIDE: 1400, NARROW: 1700}
"""Maximum height of a screenshot in pixels, by width."""
BUDGET = Budget(requests_per_day=5_000)
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
Act = Callable[[Page], object]


def open_drawer(page: Page) -> None:
    """Open the worst answer that has generated questions."""
    page.locator("#worst tr", has=page.locator(".meter")).first.locator("a[data-drawer]").click()
    page.locator("dialog[open] article.answer").wait_for()


def screens(seeded: Seeded, labeled: str) -> dict[str, tuple[str, Act | None]]:
    """Return the screens by image name: the path and the action to perform there."""
    return {
        "overview": ("/", None),
        "drawer": ("/", open_drawer),
        "answer": ("/", open_full_page),
        "answers": (f"/answers?window=24h&route={SEARCH}&below=0.5&sort=lowest", None),
        "route": (f"/r/{SEARCH}", None),
        "alerts": ("/alerts", None),
        "alert": (f"/alerts/{seeded.open_alert}", None),
        "compare": ("/compare?by=prompt_version", None),
        "label": (f"/labels/{seeded.wave}", None),
        "labels": (f"/labels/{labeled}", None),
        "worker": ("/worker", None),
    }


def open_full_page(page: Page) -> None:
    """Open the full page of the answer from the drawer."""
    open_drawer(page)
    page.locator("dialog[open]").get_by_role("link", name="Full page").click()
    page.locator("main article.answer").wait_for()


@contextmanager
def served(settings: Settings, store: TrackingStore | None = None) -> Iterator[str]:
    """Serve the pages at the end of the sample week, and yield the URL."""
    server = WebServer(create_app(settings, store=store, now=lambda: NOW), host="127.0.0.1", port=0)
    with server.running():
        yield server.address


@contextmanager
def opened(browser: Browser, address: str, theme: Theme, width: int = WIDE) -> Iterator[Page]:
    """Open a page in the given theme, as a returning visitor whose time zone is known."""
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme=theme,
        timezone_id="UTC",
        locale="en-GB",
        reduced_motion="reduce",
    )
    with closing(context):
        context.add_cookies([{"name": "germane_zone", "value": "UTC", "url": address}])
        yield context.new_page()


def take_screenshot(page: Page, address: str, name: str, act: Act | None = None) -> None:
    """Take a screenshot of the whole page, or of the viewport if the drawer is open."""
    page.goto(address, wait_until="networkidle")
    if act is not None:
        act(page)
        page.wait_for_load_state("networkidle")
    width = page.evaluate("document.documentElement.clientWidth")
    height = page.evaluate("document.documentElement.scrollHeight")
    if page.locator("dialog[open]").count() == 0:
        page.set_viewport_size({"width": width, "height": min(TALLEST[width], height)})
    taken = page.screenshot(animations="disabled")
    (FOLDER / f"{name}.png").write_bytes(png(pixels_of(page, taken)))


PIXELS = """async (taken) => {
  const bitmap = await createImageBitmap(await (await fetch("data:image/png;base64," + taken)).blob());
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
  canvas.drawImage(bitmap, 0, 0);
  const { data } = canvas.getImageData(0, 0, bitmap.width, bitmap.height);
  let text = "";
  for (let at = 0; at < data.length; at += 30000) text += String.fromCharCode(...data.subarray(at, at + 30000));
  return [bitmap.height, bitmap.width, btoa(text)];
}"""


def pixels_of(page: Page, taken: bytes) -> np.ndarray:
    """Decode a screenshot with the browser and return its pixels."""
    context = page.context.browser.new_context() if page.context.browser else page.context
    blank = context.new_page()
    height, width, data = blank.evaluate(PIXELS, base64.b64encode(taken).decode())
    context.close()
    return np.frombuffer(base64.b64decode(data), np.uint8).reshape(height, width, 4)[:, :, :3]


def take(browser: Browser, address: str, empty: str, capture_off: str, seeded: Seeded, labeled: str) -> None:
    """Take all screenshots."""
    for theme in THEMES:
        for name, (path, act) in screens(seeded, labeled).items():
            with opened(browser, address, theme) as page:
                take_screenshot(page, address + path, f"{name}-{theme}", act)
        with opened(browser, address, theme, NARROW) as page:
            take_screenshot(page, address + "/", f"narrow-{theme}")
        with opened(browser, empty, theme) as page:
            take_screenshot(page, empty + "/", f"start-{theme}")
        with opened(browser, capture_off, theme) as page:
            take_screenshot(page, capture_off + "/worker", f"traces-{theme}")
        with opened(browser, capture_off, theme) as page:
            take_screenshot(page, capture_off + f"/traces/{FIRST_ID:032x}", f"trace-{theme}")


def add_labels(store: TrackingStore) -> str:
    """Let a person label 80 answers of the sample week, mostly as the judge scored them, and return the wave's id."""
    draws, chance = store.draws, np.random.default_rng(7)
    population = LabelPopulation(since=NOW - timedelta(days=5), until=NOW, scorer="answer_relevancy")
    wave = draws.draw(population, 80, generator=chance)
    while (found := draws.next_answer(wave.id)) is not None:
        scores = {one.scorer: one.value or 0.0 for one in store.answers.get_scores([found[1]])[found[1]]}
        seen = scores["answer_relevancy"] + chance.normal(-0.05, 0.15)
        draws.settle(wave.id, found[1], "answers" if seen > 0.6 else "partly" if seen > 0.4 else "does_not", user="Ada")
    return wave.id


def add_anchors(place: str) -> None:
    """Score the anchors in five rounds for their baselines, and in six more, once a day."""
    days, chance = [NOW - timedelta(days=6)], np.random.default_rng(8)
    with closing(TrackingStore(place, clock=lambda: days[0])) as store:
        store.anchors.refill("answer_relevancy", 50, text_lifetime=timedelta(days=90))
        for number in range(11):
            days[0] = NOW - timedelta(days=max(0, 10 - number), hours=3)
            store.anchors.start_round("answer_relevancy", "daily")
            while (pending := store.anchors.next_pending("answer_relevancy")) is not None:
                value = min(1.0, max(0.0, 0.7 + pending.id % 7 / 30 + chance.normal(0, 0.05)))
                scored = Score(
                    scorer="answer_relevancy",
                    fingerprint=FINGERPRINTS["answer_relevancy"],
                    value=value,
                    judge="larch-2",
                )
                store.anchors.save_score("answer_relevancy", pending, scored)


def add_unreadable_traces(store: TrackingStore) -> None:
    """Add the traces of an application whose content capture is off."""
    traces = {(OPENAI, "content_capture_off"): 1_204, (FASTAPI, "not_an_exchange"): 96}
    add_watched_traces(store, "helpdesk", NOW, traces)


def add_usage(store: TrackingStore) -> None:
    """Add a worker with its job runs, and the judge usage of the last five days."""
    jobs = [
        JobRuns(name=name, every=every, runs=tuple(runs(every or 7.0, seconds)))
        for name, every, seconds in [
            ("sample", 2.0, 0.012),
            ("score", None, 1.6),
            ("evaluate", 2.0, 0.03),
            ("rollup", 60.0, 0.2),
        ]
    ]
    heartbeat = WorkerHeartbeat(
        id="worker-1", host="lighthouse", pid=4711, service=SERVICE, version="0.1.0", scorers=FINGERPRINTS,
        concurrency=16, in_flight=2, jobs=jobs,
    )  # fmt: skip
    store.workers.heartbeat(heartbeat, [], lease=timedelta(minutes=2))
    for days, calls in enumerate((431, 1210, 1184, 940, 1302)):
        with closing(TrackingStore("sqlite:///week.db", clock=lambda days=days: NOW - timedelta(days=days))) as then:
            then.quota.reserve_budget(BUDGET, [RequestUsage(requests=calls, tokens=700.0 * calls, usd=0.00015 * calls)])


def runs(every: float, seconds: float) -> Iterator[JobRun]:
    """Yield fifty runs, one of them slow."""
    for number in range(50):
        at = NOW - timedelta(seconds=every * (50 - number) - 0.5)
        yield JobRun(started_at=at, seconds=seconds * (1 + (number * 7 % 5) / 4) * (4 if number == 23 else 1))


def main() -> None:
    """Seed a database, serve it, and take the screenshots."""
    for name in [name for name in os.environ if name.startswith(("GERMANE_", "OPENAI_", "OTEL_"))]:
        del os.environ[name]
    FOLDER.mkdir(exist_ok=True)
    place = Path(tempfile.gettempdir()) / "handbook"  # the path of the database appears on the pages
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    os.chdir(place)
    with ExitStack() as stack:
        store = stack.enter_context(closing(TrackingStore("sqlite:///week.db", clock=lambda: NOW)))
        store.migrate()
        seeded = seed(store, NOW)
        add_usage(store)
        labeled = add_labels(store)
        add_anchors("sqlite:///week.db")
        link = "https://traces.example.com/{trace_id}"
        settings = load_settings(sample_rate=0.8, trace_url=link, base_url="http://127.0.0.1:9/v1", judge="larch-judge")
        address = stack.enter_context(served(settings, store))
        unread = stack.enter_context(closing(TrackingStore("sqlite:///traces.db", clock=lambda: NOW)))
        unread.migrate()
        add_unreadable_traces(unread)
        capture_off = stack.enter_context(served(settings, unread))
        empty = stack.enter_context(served(load_settings()))
        browser = stack.enter_context(sync_playwright()).chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        take(browser, address, empty, capture_off, seeded, labeled)
        browser.close()
    os.chdir(ROOT)
    shutil.rmtree(place)
    for path in sorted(FOLDER.glob("*.png")):
        print(f"{path.stat().st_size / 1000:6.0f} kB  {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
