"""Takes the screenshots of Phoenix and MLflow with germane's scores. Run: .venv/bin/python docs/sink_pictures.py

Installs both servers as `make sinks` does. Eight answers are scored, and the sinks write the scores.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import set_tracer_provider
from palette import png
from pictures import CHROMIUM, FOLDER, ROOT, pixels_of
from playwright.sync_api import FloatRect, Page, sync_playwright

import germane
from germane.storage import TrackingStore
from germane.testing import FakeJudge

sys.path.insert(0, str(ROOT / "tests" / "sinks"))
from servers import SERVERS, Server, is_isolated, isolate

ANSWERS = {
    "How long can I return an order?": "You can return an order within 30 days of delivery.",
    "Do you ship to Iceland?": "Yes, we ship to Iceland within five days.",
    "Is there a warranty on lamps?": "Lamps have a warranty of two years.",
    "How do I change my address?": "Our shop opens at nine on weekdays.",
    "Can I pay by invoice?": "Companies can pay by invoice within 14 days.",
    "Where is my parcel?": "I don't know where your parcel is.",
    "Which bulbs fit the desk lamp?": "The desk lamp takes E14 bulbs of up to 40 watts.",
    "Do you have gift cards?": "We have gift cards from 10 to 200 euros.",
}
GENERATED = (
    "How long can I return an order after delivery?",
    "Do you ship to Iceland?",
    "What is the warranty on lamps?",
    "When does the shop open?",
    "Can companies pay by invoice?",
    "Where is my parcel?",
    "Which bulbs does the desk lamp take?",
    "Do you have gift cards?",
)
QUESTIONS = dict(zip(ANSWERS.values(), GENERATED, strict=True))
"""The question that the judge generates for each answer."""
TIMEOUT = 120.0


@germane.observe(route="support")
def ask(question: str) -> str:
    """Answer from the table. Two answers get a label."""
    labels = {"Do you ship to Iceland?": 1.0, "How do I change my address?": 0.0}
    exchange = germane.current_exchange()
    if question in labels and exchange.id is not None:
        germane.feedback(exchange.id, score=labels[question], user="ada")
    return ANSWERS[question]


def write_scores(server: Server, folder: Path) -> None:
    """Answer all questions, and wait until their scores are written."""
    database = f"sqlite:///{folder}/germane.db"
    provider = TracerProvider(resource=Resource({"service.name": "shop"}))
    provider.add_span_processor(germane.ScoreSpanProcessor(BatchSpanProcessor(OTLPSpanExporter())))
    set_tracer_provider(provider)
    with FakeJudge(model="larch-2", questions=lambda answer: [QUESTIONS[answer]] * 3) as judge:
        sinks = {"traces": {"type": server.name, "url": server.url}}
        scorers = ["answer_relevancy", "noncommittal"]
        germane.start(database=database, service="shop", scorers=scorers, sinks=sinks, **judge.settings())
        for question in ANSWERS:
            ask(question)
        with closing(TrackingStore(database)) as store:
            deadline = time.monotonic() + TIMEOUT
            while time.monotonic() < deadline and (len(list(server.read(spans(store)))) < 2 * len(ANSWERS) + 2):
                time.sleep(1)
        germane.stop()


def spans(store: TrackingStore) -> list[tuple[str, str]]:
    """Return the ids of the traces and spans of all exchanges."""
    return [(exchange.trace_id, exchange.span_id) for exchange in store.answers.list_exchanges()]


def open_phoenix(page: Page, url: str) -> FloatRect:
    """Open the list of spans, without the columns of status, error and user."""
    page.add_init_script("localStorage.setItem('arize-phoenix-theme', 'light')")
    page.goto(f"{url}/projects", wait_until="networkidle")
    page.get_by_role("link", name="default").first.click()
    page.get_by_label("Collapse side navigation").click()
    page.get_by_label("Hide aside panel").click()
    page.get_by_label("Wrap each row over as many lines as it needs").click()
    page.get_by_role("button", name="Columns").click()
    for column in ("status", "error", "user"):
        page.locator("label", has_text=column).first.click()
    page.keyboard.press("Escape")
    page.get_by_text("human_label").first.wait_for()
    return {"x": 53, "y": 305, "width": 1020, "height": 662}


def open_mlflow(page: Page, url: str) -> FloatRect:
    """Open the list of traces, without the columns of time, duration, state, tokens and tags."""
    page.goto(f"{url}/#/experiments/0/traces")
    page.get_by_role("button", name="Got it").click()
    page.get_by_role("button", name="Close").click()
    page.get_by_label("Toggle sidebar").click()
    for column in (3, 3, 3, 3, 0):
        page.get_by_label("Column options", exact=True).nth(column).click()
        page.get_by_role("menuitem", name="Hide column").click()
    page.get_by_text("human_label").first.wait_for()
    return {"x": 76, "y": 165, "width": 1364, "height": 360}


PAGES: dict[str, Callable[[Page, str], FloatRect]] = {"phoenix": open_phoenix, "mlflow": open_mlflow}
"""Functions that open a page and return the part to be shown."""


def take_picture(name: str) -> None:
    """Start a server, write scores, and take a screenshot."""
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        server = SERVERS[name](Path(place))
        server.start()
        os.environ.update(server.otlp, OTEL_EXPORTER_OTLP_TIMEOUT="60")
        try:
            write_scores(server, Path(place))
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1500, "height": 1000}, color_scheme="light", timezone_id="UTC")
            page.set_default_timeout(1000 * TIMEOUT)
            clip = PAGES[name](page, server.url)
            page.mouse.move(0, 0)
            taken = page.screenshot(animations="disabled", clip=clip)
            (FOLDER / f"{name}.png").write_bytes(png(pixels_of(page, taken)))
            browser.close()
        finally:
            server.kill()


def main() -> None:
    """Take both screenshots, each in a process of its own."""
    if not is_isolated():
        for name in SERVERS:
            SERVERS[name].install()
        isolate()
    if len(sys.argv) > 1:
        for variable in [name for name in os.environ if name.startswith(("GERMANE_", "OPENAI_", "OTEL_"))]:
            del os.environ[variable]
        take_picture(sys.argv[1])
        return
    for name in SERVERS:
        subprocess.run([sys.executable, __file__, name], check=True)  # noqa: S603 - this file


if __name__ == "__main__":
    main()
