"""One onset per incident: the same minute everywhere, an interval that contains the truth, and the deploy's side."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
from starlette.testclient import TestClient
from tests.conftest import migrated_file
from tests.insights.incidents import NOW, Incident, incident
from tests.insights.situations import drop_alert

from germane.alerting import Onset
from germane.cli.commands.alerts.show import format_alert
from germane.cli.commands.report.data import load_report, load_verdict
from germane.dashboard import create_app
from germane.insights import WINDOWS, InsightContext, ViewParams, load_fleet
from germane.insights.onset import explain_drop

SIDES = {
    r"(?:just|\d+ \w+) after the deploy": "before",
    "before any recorded deploy": "after",
    r"before or after the deploy \"index v42\" cannot be decided": "undecided",
}
"""The side of the deploy that words state: a drop that began after the deploy had the deploy before it."""
SINCE = re.compile(r"[Ss]ince about (?:\w{3} )?(\d+ \w{3})(?: 2026,)? (\d\d:\d\d)")
LINK = re.compile(r"[?&]since=([^&\"]+)")


def onset_of(found: Incident) -> Onset:
    """Return the onset that pages must show: the alert's, or that of the verdict."""
    if found.alert is not None and found.alert.onset is not None:
        return Onset(found.alert.onset, found.alert.onset_interval)
    context = InsightContext(store=found.store, settings=found.settings, now=lambda: NOW)
    estimated = load_fleet(context, ViewParams(window="", since=NOW, until=NOW), NOW).verdict.onset
    assert estimated is not None
    return estimated


def texts(found: Incident) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of all pages, reports and messages about an incident, with its links."""
    app = create_app(found.settings, store=found.store, now=lambda: NOW)
    with TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 50_000)) as client:
        paths = [
            f"{page}?service={found.service}&window={name}" for page in ("/", f"/r/{found.route}") for name in WINDOWS
        ]
        paths += [] if found.alert is None else [f"/alerts/{found.alert.id}"]
        for path in paths:
            html = unescape(client.get(path).text)
            about = html.partition('id="grid"')[0]  # the links of cells select hours and days
            verdict = about.partition('class="verdict')[2].partition('class="verdict')[0][:4000]
            yield path, re.sub(r"<(?!a )[^>]+>", "", verdict)
    report = load_report(found.store, NOW - timedelta(days=7), service=found.service, route=None)
    yield "report", load_verdict(found.store, found.settings, report)[0]


def problems(found: Incident) -> list[str]:
    """Return where another onset, or a wrong side of the deploy, is stated."""
    onset = onset_of(found)
    expected = (f"{onset.at.day} {onset.at:%b}", f"{onset.at:%H:%M}")
    wrong = []
    for name, text in texts(found):
        if set(SINCE.findall(text)) != {expected}:
            wrong.append(f"{name}: {SINCE.findall(text)}, not {expected}")
        since = {datetime.fromisoformat(unquote(each)) for each in LINK.findall(text)}
        if since - {onset.at}:
            wrong.append(f"{name}: links since {since}")
        sides = {side for words, side in SIDES.items() if re.search(words, text)}
        if not sides <= {found.deploy, "undecided"} or bool(sides) != (found.deploy != "none"):
            wrong.append(f"{name}: the deploy is {found.deploy}, not {sides}")
    if found.alert is not None:
        lines = [found.alert.message, *format_alert(found.alert)]
        wrong += [line for line in lines[:1] + lines[2:] if f"since about {onset.at:%a %Y-%m-%d %H:%M} UTC" not in line]
        payload = found.alert.as_dict()
        wrong += [] if payload["onset"] == onset.at.isoformat() and payload["onset_interval"] else ["payload"]
    return wrong


@pytest.mark.parametrize(
    "seeds",
    [
        range(2, 3),
        pytest.param(range(7), marks=pytest.mark.slow),
        pytest.param(range(20), marks=pytest.mark.thorough),
    ],
)
def test_an_incident_has_one_onset_and_the_deploy_is_on_the_right_side(seeds: range, tmp_path: Path) -> None:
    """Pages, links, reports and messages state the same minute, and nine in ten intervals contain the true one."""
    inside, wrong = 0, {}
    for seed in seeds:
        with incident(seed, migrated_file(tmp_path), tmp_path) as found:
            onset = onset_of(found)
            start, end = onset.bounds
            inside += start <= found.began < end
            wrong |= {seed: each} if (each := problems(found)) else {}
    assert wrong == {}
    assert inside >= 0.9 * len(seeds)


def test_a_drop_without_an_alert_has_the_onset_of_the_alert_of_another_scorer(tmp_path: Path) -> None:
    """The page lists both, so that two times would read like two drops."""
    with incident(2, migrated_file(tmp_path), tmp_path) as found:
        context = InsightContext(store=found.store, settings=found.settings, now=lambda: NOW)
        drop = load_fleet(context, ViewParams(window="", since=NOW, until=NOW), NOW).verdict.movements[0]
        assert drop.situation.onset is not None
        start, end = drop.situation.onset.bounds
        labels = {"service": found.service, "scorer": "faithfulness", "route": found.route}
        other = drop_alert(labels=labels, fingerprint="f9", onset=start, onset_interval=(start, end))
        explained = explain_drop(context, replace(drop, situation=replace(drop.situation, alerts=[other])))

    assert drop.alert is None
    assert explained.onset is not None
    assert (explained.onset.at, explained.onset.interval) == (start, (start, end))
    assert start != drop.situation.onset.at
