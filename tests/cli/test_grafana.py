"""Tests of `germane grafana`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from germane.cli.commands.grafana import FILE_NAMES
from germane.dashboard.metrics.exposition import DatabaseCollector
from germane.exchange import Exchange
from germane.score import Score
from germane.settings import load_settings
from germane.storage import TrackingStore
from germane.tracer import attach_scores, connect, disconnect, expose_registry

Call = Callable[..., Any]
METRIC = re.compile(r"\b(?:germane|rag)_[a-z_]+\b(?!:)")


@pytest.fixture
def written(call: Call, bare: Path) -> dict[str, str]:
    """The written files by name, with links to germane's pages."""
    assert call("grafana", "out", "--link", "https://germane.example.com/").code == 0
    return {part: (bare / "out" / name).read_text("utf-8") for part, name in FILE_NAMES.items()}


def expressions(written: dict[str, str]) -> list[str]:
    """Return the queries of all panels."""
    panels = json.loads(written["dashboard"])["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def test_grafana_files_are_written_or_printed(call: Call, bare: Path) -> None:
    """The directory contains what --print shows, and the output states where each file belongs."""
    ended = call("grafana", "new/out")
    assert ended.code == 0
    assert len(ended.out.splitlines()) == 4
    for part, name in FILE_NAMES.items():
        assert call("grafana", "--print", part).out == (bare / "new" / "out" / name).read_text("utf-8")


def test_modified_grafana_files_are_not_overwritten(call: Call, bare: Path) -> None:
    """The error names the files, and nothing is written without --force."""
    assert call("grafana", "out").code == 0
    assert call("grafana", "out").code == 0
    (bare / "out" / "rules.yaml").write_text("groups: []\n")
    ended = call("grafana", "out", "--link", "http://localhost:8321")

    assert ended.code == 1
    assert str(Path("out") / "rules.yaml") in ended.err
    assert (bare / "out" / "rules.yaml").read_text() == "groups: []\n"
    assert call("grafana", "out", "--force").code == 0
    assert "GermaneAlertOpen" in (bare / "out" / "rules.yaml").read_text()


@pytest.mark.parametrize(
    "arguments", [(), ("out", "--print", "rules"), ("--print", "everything"), ("out", "--link", "javascript:alert(1)")]
)
def test_invalid_grafana_arguments_are_rejected(arguments: tuple[str, ...], call: Call, bare: Path) -> None:
    """No file is written."""
    assert call("grafana", *arguments).code == 2
    assert not (bare / "out").exists()


def test_the_grafana_dashboard_can_be_provisioned(written: dict[str, str]) -> None:
    """The dashboard has a fixed uid, no id, a variable for the data source, and no overlapping panels."""
    made = json.loads(written["dashboard"])

    assert (made["uid"], made["id"]) == ("germane-answers", None)
    names = [variable["name"] for variable in made["templating"]["list"]]
    assert names == ["source", "service", "scorer", "route", "window"]
    assert made["templating"]["list"][0]["type"] == "datasource"
    sources = [part["datasource"] for panel in made["panels"] for part in (panel, *panel["targets"])]
    assert all(source == {"type": "prometheus", "uid": "${source}"} for source in sources)
    assert len({panel["id"] for panel in made["panels"]}) == len(made["panels"])
    cells = [
        (column, row)
        for panel in made["panels"]
        for column in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for row in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(column for column, _ in cells) < 24


def test_grafana_route_panels_link_to_the_route_page(call: Call, written: dict[str, str]) -> None:
    """Grafana escapes names in URLs. Without --link, there are no links."""
    panels = json.loads(written["dashboard"])["panels"]
    urls = [link["url"] for panel in panels for link in panel["fieldConfig"]["defaults"].get("links", ())]

    assert len(urls) == 4
    assert all(url.startswith("https://germane.example.com/r/${") for url in urls)
    assert all("route:percentencode}?service=${service:percentencode}" in url for url in urls)
    assert '"links": [\n' not in call("grafana", "--print", "dashboard").out


def test_grafana_histogram_panels_say_that_they_use_the_scoring_time(written: dict[str, str]) -> None:
    """Histograms count scores by scoring time. No query averages over routes or judges."""
    panels = json.loads(written["dashboard"])["panels"]
    of_histograms = [panel for panel in panels if any("_bucket" in target["expr"] for target in panel["targets"])]

    assert [panel["title"] for panel in of_histograms] == ["Scores by scoring time"]
    assert not any("avg" in text for text in (*expressions(written), written["rules"]))


@pytest.fixture
def page(store: TrackingStore) -> Iterator[str]:
    """A metrics page with all metrics of a database and of a scoring process."""
    registry = CollectorRegistry()
    expose_registry(registry)
    connect(sink=print, service="shop")
    attach_scores(Exchange.from_texts("How?", "So."), [Score(scorer="s", fingerprint="f", value=0.5, latency=0.1)])
    registry.register(DatabaseCollector(store, load_settings(database="sqlite://"), now=lambda: datetime.now(UTC)))
    yield generate_latest(registry).decode()
    disconnect()
    expose_registry(None)


def test_every_metric_in_grafana_queries_is_exposed(written: dict[str, str], page: str) -> None:
    """Each name in panels, variables and rules is declared on /metrics."""
    declared = set(re.findall(r"^# TYPE (\S+) ", page, re.MULTILINE))
    variables = [variable.get("definition", "") for variable in json.loads(written["dashboard"])["templating"]["list"]]
    lines = (written["rules"] + written["examples"]).splitlines()
    rules = "\n".join(line for line in lines if not line.lstrip().startswith(("#", "summary")))
    used = {name for text in (*expressions(written), *variables, rules) for name in METRIC.findall(text)}

    assert len(used) > 15
    assert {name.removesuffix("_bucket") for name in used} <= declared


@pytest.fixture
def promtool() -> Callable[..., str]:
    """A function that runs promtool, and fails if it reports a problem."""
    path = shutil.which("promtool") or pytest.skip("promtool is not installed: rules and expressions are not checked")

    def run(*arguments: str, given: str = "") -> str:
        done = subprocess.run([path, *arguments], input=given, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.mark.slow
def test_promtool_accepts_the_rules_and_queries_for_grafana(written: dict[str, str], promtool: Any, bare: Path) -> None:
    """The rules are checked unchanged, and each panel's query as a rule."""
    queries = [query.replace("$__rate_interval", "5m") for query in expressions(written)]
    rules = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(queries)]
    (bare / "panels.yaml").write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))

    assert "SUCCESS: 7 rules found" in promtool("check", "rules", "out/rules.yaml")
    assert "SUCCESS: 8 rules found" in promtool("check", "rules", "out/rules-examples.yaml")
    assert f"SUCCESS: {len(queries)} rules found" in promtool("check", "rules", "panels.yaml")


@pytest.mark.slow
def test_promtool_accepts_the_metrics_page(promtool: Any, page: str) -> None:
    """Database gauges and OpenTelemetry instruments follow the naming rules."""
    assert promtool("check", "metrics", given=page) == ""


LABELS = 'service="shop",route="ask",scorer="s"'
JUDGE = f'{LABELS},fingerprint="f",newest="true"'
SERIES = {
    'germane_up{instance="a",job="serve"}': "1x100",
    'germane_up{instance="b",job="worker"}': "0x100",
    **{f'germane_score_mean{{{JUDGE},window="24h",instance="{one}"}}': "0.6x100" for one in "ab"},
    f'germane_score_mean{{{JUDGE},window="1h"}}': "0.6x100",
    f'germane_score_mean{{{JUDGE},window="7d"}}': "0.8x100",
    f'germane_score_mean_ci_upper{{{JUDGE},window="24h"}}': "0.65x100",
    f'germane_scores{{{JUDGE},window="24h"}}': "40x100",
    f'germane_score_mean{{{LABELS},fingerprint="old",newest="false",window="24h"}}': "0.1x100",
    f'germane_scores{{{LABELS},fingerprint="old",newest="false",window="24h"}}': "99x100",
    f'germane_baseline_mean{{{LABELS},fingerprint="f"}}': "0.8x100",
    f'germane_noncommittal_ratio{{{JUDGE},window="24h"}}': "0.1x100",
    **{
        f'germane_alerts_open{{{LABELS},rule="drop",severity="critical",state="firing",instance="{one}"}}': "1x100"
        for one in "ab"
    },
    f'germane_alerts_open{{{LABELS},rule="mean_threshold",severity="warning",state="pending"}}': "1x100",
    "germane_queue_lag_seconds": "900x100",
    "germane_workers": "2x100",
    'germane_budget_used_ratio{limit="usd"}': "0.5x100",
    f'germane_exchanges{{{LABELS},outcome="scored",reason="",window="1h"}}': "70x100",
    f'germane_exchanges{{{LABELS},outcome="failed",reason="judge_timeout",window="1h"}}': "20x100",
    f'germane_exchanges{{{LABELS},outcome="failed",reason="unparsable",window="1h"}}': "10x100",
    'germane_exchanges{service="shop",route="ask",scorer="t",outcome="pending",reason="",window="1h"}': "25x100",
    'germane_exchanges{service="shop",route="ask",scorer="t",outcome="scored",reason="",window="1h"}': "0x100",
}
RULE_FILES = ["out/rules.yaml", "out/rules-examples.yaml"]
PLACE = {"service": "shop", "route": "ask", "scorer": "s"}
FIRING: dict[str, dict[str, str] | None] = {
    "GermaneAlertOpen": {**PLACE, "rule": "drop", "severity": "critical"},
    "GermaneDatabaseUnreachable": {"instance": "b", "job": "worker", "severity": "critical"},
    "GermaneQueueLag": {"severity": "warning"},
    "GermaneScorerErrors": {"service": "shop", "scorer": "s", "severity": "warning"},
    "GermaneNoScores": {"service": "shop", "scorer": "t", "severity": "critical"},
    "GermaneMeanLow": {**PLACE, "fingerprint": "f", "window": "24h", "severity": "warning"},
    "GermaneMeanUnderBaseline": {**PLACE, "fingerprint": "f", "severity": "warning"},
    "GermaneMeanDropped": {**PLACE, "fingerprint": "f", "severity": "warning"},
    "GermaneNotScraped": None,
    "GermaneNoWorker": None,
    "GermaneBudgetSpent": None,
    "GermaneRefusals": None,
}


@pytest.mark.slow
def test_prometheus_rules_fire_only_on_their_condition(written: dict[str, str], promtool: Any, bare: Path) -> None:
    """Rules fire once per problem, not per instance, and not for pending alerts or earlier judges."""
    alerts = [
        {
            "eval_time": "90m",
            "alertname": name,
            "exp_alerts": [] if labels is None else [{"exp_labels": labels, "exp_annotations": _said(name)}],
        }
        for name, labels in FIRING.items()
    ]
    series = [{"series": name, "values": values} for name, values in SERIES.items()]
    test = {"interval": "1m", "input_series": series, "alert_rule_test": alerts}
    (bare / "tests.yaml").write_text(
        json.dumps({"rule_files": RULE_FILES, "evaluation_interval": "1m", "tests": [test]})
    )

    assert set(re.findall(r"- alert: (\w+)", written["rules"] + written["examples"])) == set(FIRING)
    assert "SUCCESS" in promtool("test", "rules", "tests.yaml")


def test_active_prometheus_rules_have_no_fixed_score_thresholds(written: dict[str, str]) -> None:
    """A fixed threshold would fire on some scorer's healthy data. Such rules are in a separate file of examples."""
    active = set(re.findall(r"- alert: (\w+)", written["rules"]))

    assert not re.search(r"germane_(score|low|noncommittal|baseline)\w*|germane:score", written["rules"])
    assert active == {
        "GermaneAlertOpen", "GermaneDatabaseUnreachable", "GermaneNoScores", "GermaneNoWorker", "GermaneNotScraped",
        "GermaneScorerErrors",
    }  # fmt: skip


@pytest.mark.slow
def test_missing_metrics_fire_exactly_one_alert(written: dict[str, str], promtool: Any, bare: Path) -> None:
    """If no process is scraped, exactly one rule fires."""
    alerts = [
        {"eval_time": "30m", "alertname": name, "exp_alerts": _only(name, "GermaneNotScraped")} for name in FIRING
    ]
    test = {"interval": "1m", "input_series": [], "alert_rule_test": alerts}
    (bare / "tests.yaml").write_text(
        json.dumps({"rule_files": RULE_FILES, "evaluation_interval": "1m", "tests": [test]})
    )

    assert "SUCCESS" in promtool("test", "rules", "tests.yaml")


def _only(name: str, fires: str) -> list[dict[str, Any]]:
    return [{"exp_labels": {"severity": "critical"}, "exp_annotations": _said(name)}] if name == fires else []


def _said(name: str) -> dict[str, str]:
    said = {
        "GermaneAlertOpen": "germane: drop for shop, ask, s",
        "GermaneDatabaseUnreachable": "germane on b cannot read its database; answer quality is unknown",
        "GermaneQueueLag": "the oldest unscored exchange has been waiting for 15m 0s",
        "GermaneScorerErrors": "30% of s scores for shop failed",
        "GermaneNoScores": "t scored none of 25 answers from shop in the last hour",
        "GermaneMeanLow": "the daily mean of s on ask is 0.60",
        "GermaneMeanUnderBaseline": "the 95% interval of the daily mean of s on ask is below the baseline",
        "GermaneMeanDropped": "the hourly mean of s on ask is 0.60, less than 80% of the weekly mean",
        "GermaneNotScraped": "Prometheus is not scraping any germane process",
    }
    return {"summary": said[name]}
