"""What the compose file runs, as real processes: PostgreSQL, setup, worker, dashboard, receiver and Prometheus."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from tests.conftest import PostgreSQL
from tests.dashboard.test_prometheus import LISTENS, query
from tests.deploy.files import COMPOSE, DEPLOY, SCRIPTS, load, program, run
from tests.receiver.conftest import ask, exporter, traced, wait_for

from germane.testing import FakeJudge

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SERVICES: dict[str, Any] = load(COMPOSE / "compose.yaml")["services"]
ADDRESS = re.compile(r"http://(127\.0\.0\.1:\d+)")


class Host:
    """A directory with the files of deploy/compose, in which the services run on free ports of 127.0.0.1.

    Paths in containers are replaced by paths in the directory, and addresses by 127.0.0.1. Nothing else differs from
    the compose file.
    """

    def __init__(self, directory: Path, database: str) -> None:
        self.directory = directory
        shutil.copytree(COMPOSE, directory, dirs_exist_ok=True)
        (directory / ".env").write_text("BASE_DIGEST=sha256:0")
        (directory / "key").write_text("none")
        prepared = run("sh", directory / "prepare", "key")
        assert (prepared.returncode, prepared.stderr) == (0, "")
        (directory / "secrets" / "database_url").write_text(database)
        # Use the judge that is commented out, but not the budget: with one, few exchanges wait up to an hour.
        settings = re.sub(r'(?m)^# (?=\w+ = ")', "", (directory / "germane.toml").read_text())
        (directory / "germane.toml").write_text(self.local(settings))
        self._stack = ExitStack()

    def secret(self, name: str) -> str:
        """Return the content of a secret."""
        return (self.directory / "secrets" / name).read_text()

    def local(self, text: str) -> str:
        """Replace a container's paths and addresses."""
        for path, name in {
            "/run/secrets": "secrets", "/var/lib/germane/grafana": "grafana-files",
            "/etc/prometheus/germane": "grafana-files",
        }.items():  # fmt: skip
            text = text.replace(path, str(self.directory / name))
        return re.sub(r"^0\.0\.0\.0(:\d+)?$", lambda found: "127.0.0.1" + (":0" if found[1] else ""), text)

    def environment(self, service: str, judge: FakeJudge) -> dict[str, str]:
        """Return the variables of a service. The judge's URL is that of the fake."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GERMANE_", "OPENAI_"))}
        declared = {name: self.local(value) for name, value in SERVICES[service]["environment"].items()}
        path = os.pathsep.join([SCRIPTS, inherited["PATH"]])
        quick = {"GERMANE_POLL_INTERVAL": "0.2", "GERMANE_BASE_URL": judge.base_url}
        return {**inherited, **declared, **quick, "PATH": path}

    def set_up(self, judge: FakeJudge) -> None:
        """Run the setup container's command."""
        (command,) = SERVICES["setup"]["command"]
        entry = [*SERVICES["setup"]["entrypoint"], self.local(command)]
        ended = run(*entry, cwd=self.directory, env=self.environment("setup", judge))
        assert ended.returncode == 0, ended.stderr

    @contextmanager
    def running(self, service: str, judge: FakeJudge) -> Iterator[str]:
        """Run a service until the block ends, and yield its address. It must exit with 0."""
        words = [self.local(str(word)) for word in SERVICES[service]["command"]]
        if service == "serve":
            words += ["--port", "0"]
        process = subprocess.Popen(
            ["germane", *words],
            cwd=self.directory,
            env=self.environment(service, judge),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        lines: list[str] = []
        try:
            while not (found := ADDRESS.search(lines[-1] if lines else "")):
                lines.append(process.stderr.readline())
                assert lines[-1], f"{service} ended: {lines}"
            yield found[1]
            process.send_signal(signal.SIGTERM)
            _, rest = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
        assert process.returncode == 0, "".join(lines) + rest


@contextmanager
def prometheus(host: Host, serve: str, worker: str) -> Iterator[str]:
    """Run Prometheus with the shipped configuration, and yield its URL."""
    path = program("prometheus")
    configuration = yaml.safe_load(host.local((COMPOSE / "prometheus.yaml").read_text()))
    by_job = {scrape["job_name"]: scrape for scrape in configuration["scrape_configs"]}
    by_job["germane-serve"]["static_configs"][0]["targets"] = [serve]
    del by_job["germane-worker"]["dns_sd_configs"]
    by_job["germane-worker"]["static_configs"] = [{"targets": [worker]}]
    configuration["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    file, log = host.directory / "prometheus-local.yaml", host.directory / "prometheus.log"
    file.write_text(json.dumps(configuration))
    checked = run(program("promtool"), "check", "config", file)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    options = {"config.file": file, "storage.tsdb.path": host.directory / "series", "web.listen-address": "127.0.0.1:0"}
    with log.open("w") as output:
        process = subprocess.Popen(
            [path, *(f"--{name}={value}" for name, value in options.items())], stdout=output, stderr=subprocess.STDOUT
        )
        try:
            yield f"http://{wait_for(lambda: LISTENS.search(log.read_text()), timeout=60)[1]}"
        finally:
            process.terminate()
            process.wait(30)


def is_healthy(address: str) -> bool:
    """Run the health check of the image against a service."""
    text = (DEPLOY / "docker" / "Dockerfile").read_text(encoding="utf-8")
    found = re.search(r"(?m)^HEALTHCHECK .*\\\n\s+CMD (\[.*\])$", text)
    assert found is not None
    ended = run(*json.loads(found[1]), env={**os.environ, "HEALTH_URL": f"http://{address}/healthz"})
    return ended.returncode == 0


def test_the_compose_services_turn_spans_into_scores_and_metrics(postgresql: PostgreSQL, tmp_path: Path) -> None:
    """Spans that arrive over OTLP are scored by the judge, and Prometheus scrapes the result with the token."""
    host = Host(tmp_path / "host", postgresql.url(postgresql.create()))
    with FakeJudge() as judge, ExitStack() as running:
        host.set_up(judge)
        receiver, worker, serve = (
            running.enter_context(host.running(service, judge)) for service in ("receiver", "worker", "serve")
        )
        scraped = running.enter_context(prometheus(host, serve, worker))
        assert all(is_healthy(address) for address in (receiver, worker, serve))
        assert not is_healthy("127.0.0.1:9")  # nothing listens there

        token = {"authorization": f"Bearer {host.secret('receiver_token')}"}
        with traced(exporter("http", f"http://{receiver}", headers=token)) as provider:
            for number in range(25):
                ask(provider, f"How do I pay {number}?", f"By card {number}.")
        outcome = 'germane_exchanges{job="germane-serve",outcome="scored",scorer="answer_relevancy",window="1h"} == 25'
        (scored,) = wait_for(lambda: query(scraped, outcome), timeout=400)
        up = query(scraped, "germane_up")
        runs = query(scraped, 'sum(germane_evaluation_runs_total{job="germane-worker",outcome="scored"})')
        (rule,) = load(DEPLOY / "kubernetes" / "prometheus-adapter.yaml")["externalRules"]
        ready = query(scraped, rule["metricsQuery"])
        refused = [httpx2.get(f"http://{address}/metrics").status_code for address in (serve, worker)]
        page = httpx2.get(f"http://{serve}/", headers={"authorization": f"Bearer {host.secret('dashboard_token')}"})

    assert scored["metric"]["service"] == "shop"
    assert {one["metric"]["job"] for one in up if one["value"][1] == "1"} == {"germane-serve", "germane-worker"}
    assert float(runs[0]["value"][1]) >= 25
    assert [one["value"][1] for one in ready] == ["0"]
    assert refused == [401, 401]
    assert page.status_code == 200
    assert "shop" in page.text
    assert judge.chat_requests
