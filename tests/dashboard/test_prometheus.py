"""A real Prometheus that scrapes the metrics page, if one is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.dashboard.conftest import Week, now
from tests.dashboard.seeding import SEARCH, SERVICE

from germane.cli.app import group
from germane.cli.commands.grafana import dashboard
from germane.dashboard import create_app
from germane.settings import load_settings
from germane.web_server import WebServer

pytestmark = pytest.mark.slow

LISTENS = re.compile(r'msg="Listening on" address=(127\.0\.0\.1:[1-9]\d*)')
RELEVANCY = "answer_relevancy"


def wait_for(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Poll another process until it returns a result."""
    pause = threading.Event()
    for _ in range(int(seconds * 20)):
        if found := condition():
            return found
        pause.wait(0.05)
    raise AssertionError("it never came true")


@pytest.fixture
def scraping(week: Week, tmp_path: Path) -> Iterator[str]:
    """The URL of a Prometheus that scrapes a served page, with the rules that germane ships."""
    path = shutil.which("prometheus") or pytest.skip("prometheus is not installed: no real scrape is tried")
    assert group.main(["grafana", str(tmp_path / "out")], standalone_mode=False) is None
    server = WebServer(
        create_app(load_settings(database="sqlite://"), store=week.store, now=now), host="127.0.0.1", port=0
    )
    target = {"job_name": "germane", "static_configs": [{"targets": [server.address.removeprefix("http://")]}]}
    times = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config = {"global": times, "scrape_configs": [target], "rule_files": [str(tmp_path / "out" / "rules*.yaml")]}
    (tmp_path / "prometheus.yaml").write_text(json.dumps(config))
    log = tmp_path / "log"
    arguments = {
        "config.file": tmp_path / "prometheus.yaml",
        "storage.tsdb.path": tmp_path / "series",
        "web.listen-address": "127.0.0.1:0",
    }
    command = [path, *(f"--{name}={value}" for name, value in arguments.items())]
    with server.running(), log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield f"http://{wait_for(lambda: LISTENS.search(log.read_text()))[1]}"
        finally:
            process.terminate()
            process.wait(30)


def query(address: str, expression: str) -> list[dict[str, Any]]:
    """Return the current result of a query."""
    answer = httpx2.get(f"{address}/api/v1/query", params={"query": expression}, timeout=30)
    found: list[dict[str, Any]] = answer.json()["data"]["result"] if answer.status_code == 200 else []
    return found


def test_prometheus_returns_the_stored_values_after_a_scrape(week: Week, scraping: str) -> None:
    """A mean is unchanged by scrape and query; a Grafana query and an alerting rule find it."""
    where = f'service="{SERVICE}", route="{SEARCH}", scorer="{RELEVANCY}", window="24h"'
    (found,) = wait_for(lambda: query(scraping, f"germane_score_mean{{{where}}}"))
    ends = {name: f'germane_window_{name}_timestamp_seconds{{window="24h"}}' for name in ("begin", "end")}
    moments = {name: float(query(scraping, expression)[0]["value"][1]) for name, expression in ends.items()}
    since, until_ = (datetime.fromtimestamp(moments[name], UTC) for name in ("begin", "end"))
    (mean,) = week.store.trends.means(scorer=RELEVANCY, route=SEARCH, since=since, until=until_)

    assert float(found["value"][1]) == pytest.approx(mean.mean, abs=1e-9)
    assert found["metric"]["fingerprint"] == mean.fingerprint
    (shown,) = [panel for panel in dashboard()["panels"] if panel.get("repeat") == "route"]
    names = {"$service": SERVICE, "$route": SEARCH, "$scorer": RELEVANCY, "$window": "24h"}
    expressions = [target["expr"] for target in shown["targets"]]
    for name, value in names.items():
        expressions = [expression.replace(name, value) for expression in expressions]
    values = [float(query(scraping, expression)[0]["value"][1]) for expression in expressions]
    assert mean.interval is not None
    assert values[:3] == pytest.approx([mean.mean, *mean.interval], abs=1e-9)
    assert values[3] > mean.mean
    (alert,) = wait_for(lambda: query(scraping, 'ALERTS{alertname="GermaneAlertOpen", alertstate="firing"}'))
    assert (alert["metric"]["rule"], alert["metric"]["service"]) == ("drop", SERVICE)
