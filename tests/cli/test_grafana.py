"""`germane grafana`: a dashboard and rules that ask for what is really there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from germane.cli.commands.grafana import NAMES
from germane.dashboard.metrics.gauges import Gauges
from germane.exchange import Exchange
from germane.score import Score
from germane.settings import load
from germane.storage import Store, utc_now
from germane.tracer import attach, connect, disconnect, expose

Call = Callable[..., Any]
METRIC = re.compile(r"\b(?:germane|rag)_[a-z_]+\b(?!:)")


@pytest.fixture
def written(call: Call, bare: Path) -> dict[str, str]:
    """The files, by what they are, with links to germane's pages."""
    assert call("grafana", "out", "--link", "https://germane.example.com/").code == 0
    return {part: (bare / "out" / name).read_text("utf-8") for part, name in NAMES.items()}


def expressions(written: dict[str, str]) -> list[str]:
    """Return what all panels ask for."""
    panels = json.loads(written["dashboard"])["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def test_three_files_are_written_and_each_can_be_printed(call: Call, bare: Path) -> None:
    """The folder holds what --print shows, and one line for each says where it belongs."""
    ended = call("grafana", "new/out")
    assert ended.code == 0
    assert len(ended.out.splitlines()) == 3
    for part, name in NAMES.items():
        assert call("grafana", "--print", part).out == (bare / "new" / "out" / name).read_text("utf-8")


def test_what_somebody_changed_is_not_written_over(call: Call, bare: Path) -> None:
    """A file that says something else is named and kept, all others as well; --force writes."""
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
def test_what_cannot_be_meant_is_refused(arguments: tuple[str, ...], call: Call, bare: Path) -> None:
    """Neither or both of folder and file, an unknown file, a link that is none: nothing is written."""
    assert call("grafana", *arguments).code == 2
    assert not (bare / "out").exists()


def test_the_dashboard_can_be_provisioned(written: dict[str, str]) -> None:
    """A fixed uid, no id, the source by a variable in every panel and query, and no two panels in one place."""
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


def test_every_panel_of_routes_leads_to_the_page_of_the_route(call: Call, written: dict[str, str]) -> None:
    """A name in an address is escaped by Grafana; without --link nothing leads anywhere."""
    panels = json.loads(written["dashboard"])["panels"]
    urls = [link["url"] for panel in panels for link in panel["fieldConfig"]["defaults"].get("links", ())]

    assert len(urls) == 4
    assert all(url.startswith("https://germane.example.com/r/${") for url in urls)
    assert all("route:percentencode}?service=${service:percentencode}" in url for url in urls)
    assert '"links": [\n' not in call("grafana", "--print", "dashboard").out


def test_histograms_say_when_they_count(written: dict[str, str]) -> None:
    """What is counted at scoring time is called so; nothing averages over routes or judges."""
    panels = json.loads(written["dashboard"])["panels"]
    of_histograms = [panel for panel in panels if any("_bucket" in target["expr"] for target in panel["targets"])]

    assert [panel["title"] for panel in of_histograms] == ["Scores, counted at scoring time"]
    assert not any("avg" in text for text in (*expressions(written), written["rules"]))


@pytest.fixture
def page(store: Store) -> Iterator[str]:
    """A page of metrics on which everything is that can be: of a database, and of a process that scores."""
    registry = CollectorRegistry()
    expose(registry)
    connect(sink=print, service="shop")
    attach(Exchange.of("How?", "So."), [Score(scorer="s", fingerprint="f", value=0.5, latency=0.1)])
    registry.register(Gauges(store, load(database="sqlite://"), now=utc_now))
    yield generate_latest(registry).decode()
    disconnect()
    expose(None)


def test_every_metric_that_is_asked_for_is_exposed(written: dict[str, str], page: str) -> None:
    """Each name in panels, variables and rules is one that the page declares."""
    declared = set(re.findall(r"^# TYPE (\S+) ", page, re.MULTILINE))
    variables = [variable.get("definition", "") for variable in json.loads(written["dashboard"])["templating"]["list"]]
    rules = "\n".join(line for line in written["rules"].splitlines() if not line.lstrip().startswith(("#", "summary")))
    used = {name for text in (*expressions(written), *variables, rules) for name in METRIC.findall(text)}

    assert len(used) > 15
    assert {name.removesuffix("_bucket") for name in used} <= declared


@pytest.fixture
def promtool() -> Callable[..., str]:
    """Runs promtool; it must not complain."""
    path = shutil.which("promtool") or pytest.skip("promtool is not installed: rules and expressions are not checked")

    def run(*arguments: str, given: str = "") -> str:
        done = subprocess.run([path, *arguments], input=given, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_promtool_accepts_rules_and_every_expression(written: dict[str, str], promtool: Any, bare: Path) -> None:
    """The rules as they are, and each panel's query as a rule of its own."""
    queries = [query.replace("$__rate_interval", "5m") for query in expressions(written)]
    rules = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(queries)]
    (bare / "panels.yaml").write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))

    assert "SUCCESS: 15 rules found" in promtool("check", "rules", "out/rules.yaml")
    assert f"SUCCESS: {len(queries)} rules found" in promtool("check", "rules", "panels.yaml")


def test_promtool_accepts_what_a_worker_shows(promtool: Any, page: str) -> None:
    """Gauges of the database and instruments of OpenTelemetry on one page: names and types are as they should be."""
    assert promtool("check", "metrics", given=page) == ""


LABELS = 'service="shop",route="ask",scorer="s"'
JUDGE = f'{LABELS},fingerprint="f",newest="true"'
SERIES = {
    'germane_up{instance="a",job="serve"}': "1x100",
    'germane_up{instance="b",job="worker"}': "0x100",
    **{f'germane_score_mean{{{JUDGE},window="24h",instance="{one}"}}': "0.6x100" for one in "ab"},
    f'germane_score_mean{{{JUDGE},window="1h"}}': "0.6x100",
    f'germane_score_mean{{{JUDGE},window="7d"}}': "0.8x100",
    f'germane_score_mean_upper{{{JUDGE},window="24h"}}': "0.65x100",
    f'germane_scores{{{JUDGE},window="24h"}}': "40x100",
    f'germane_score_mean{{{LABELS},fingerprint="old",newest="false",window="24h"}}': "0.1x100",
    f'germane_scores{{{LABELS},fingerprint="old",newest="false",window="24h"}}': "99x100",
    f'germane_baseline_mean{{{LABELS},fingerprint="f"}}': "0.8x100",
    f'germane_noncommittal_ratio{{{JUDGE},window="24h"}}': "0.1x100",
    **{
        f'germane_alerts_open{{{LABELS},rule="drop",severity="critical",state="firing",instance="{one}"}}': "1x100"
        for one in "ab"
    },
    f'germane_alerts_open{{{LABELS},rule="floor",severity="warning",state="pending"}}': "1x100",
    "germane_queue_lag_seconds": "900x100",
    "germane_workers": "2x100",
    'germane_budget_used_ratio{limit="usd"}': "0.5x100",
    f'germane_exchanges{{{LABELS},outcome="scored",reason="",window="1h"}}': "70x100",
    f'germane_exchanges{{{LABELS},outcome="failed",reason="judge_timeout",window="1h"}}': "20x100",
    f'germane_exchanges{{{LABELS},outcome="failed",reason="unparsable",window="1h"}}': "10x100",
    'germane_exchanges{service="shop",route="ask",scorer="t",outcome="pending",reason="",window="1h"}': "25x100",
    'germane_exchanges{service="shop",route="ask",scorer="t",outcome="scored",reason="",window="1h"}': "0x100",
}
PLACE = {"service": "shop", "route": "ask", "scorer": "s"}
FIRING: dict[str, dict[str, str] | None] = {
    "GermaneAlertOpen": {**PLACE, "rule": "drop", "severity": "critical"},
    "GermaneDatabaseAway": {"instance": "b", "job": "worker", "severity": "critical"},
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


def test_rules_fire_for_what_they_say_and_for_nothing_else(written: dict[str, str], promtool: Any, bare: Path) -> None:
    """Once for each thing that is wrong, whoever shows it: not for what is pending, well, or of an earlier judge."""
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
        json.dumps({"rule_files": ["out/rules.yaml"], "evaluation_interval": "1m", "tests": [test]})
    )

    assert set(re.findall(r"- alert: (\w+)", written["rules"])) == set(FIRING)
    assert "SUCCESS" in promtool("test", "rules", "tests.yaml")


def test_rules_tell_that_nothing_is_scraped(written: dict[str, str], promtool: Any, bare: Path) -> None:
    """Where no process shows anything, exactly one rule fires: that there is none."""
    alerts = [
        {"eval_time": "30m", "alertname": name, "exp_alerts": _only(name, "GermaneNotScraped")} for name in FIRING
    ]
    test = {"interval": "1m", "input_series": [], "alert_rule_test": alerts}
    (bare / "tests.yaml").write_text(
        json.dumps({"rule_files": ["out/rules.yaml"], "evaluation_interval": "1m", "tests": [test]})
    )

    assert "SUCCESS" in promtool("test", "rules", "tests.yaml")


def _only(name: str, fires: str) -> list[dict[str, Any]]:
    return [{"exp_labels": {"severity": "critical"}, "exp_annotations": _said(name)}] if name == fires else []


def _said(name: str) -> dict[str, str]:
    said = {
        "GermaneAlertOpen": "germane: drop for shop, ask, s",
        "GermaneDatabaseAway": "germane on b cannot read its database: nothing is known of the answers",
        "GermaneQueueLag": "the oldest exchange has waited 15m 0s for its score",
        "GermaneScorerErrors": "30% of what s tried for shop failed",
        "GermaneNoScores": "t was to score 25 answers of shop in an hour, and scored none",
        "GermaneMeanLow": "s of ask is 0.60 on average of a day",
        "GermaneMeanUnderBaseline": "s of ask: the whole 95 % interval of a day lies under the baseline",
        "GermaneMeanDropped": "s of ask is 0.60 on average of an hour, under four fifths of that of the week",
        "GermaneNotScraped": "no process of germane is scraped",
    }
    return {"summary": said[name]}
