"""The chart that the pages of routes, alerts and comparisons share."""

from __future__ import annotations

import re

from starlette.testclient import TestClient
from tests.cases import each
from tests.dashboard.conftest import Week
from tests.dashboard.seeding import SEARCH

from germane.score import MIN_SAMPLES


def levels(text: str) -> list[tuple[str, int]]:
    """Return the names and n of the sides that are written into the wide charts of a page."""
    pattern = r'<text class="level \w+"[^>]*>(\w+) [\d.]+ \(n=(\d+)\)'
    wide = re.findall(r'<svg [^>]*class="wide".*?</svg>', text, re.DOTALL)
    return [(name, int(n)) for picture in wide for name, n in re.findall(pattern, picture)]


@each("path", [f"/r/{SEARCH}", "/alerts/{open}"])
def test_a_chart_is_divided_at_the_onset(page: TestClient, week: Week, path: str) -> None:
    """The time before and since is shaded with the mean and n of each; no step crosses the onset."""
    text = page.get(path.format(open=week.seeded.open_alert)).text
    (before, since), table = levels(text)[:2], text[text.index('class="twin"') :].partition("</details>")[0]
    sizes = [int(n) for n in re.findall(r"<td>(\d+)(?: \(few\))?</td>", table)]

    assert [before[0], since[0]] == ["before", "since"]
    assert re.search(r'<g class="split worse">.*?url\(#', text)
    assert min(sizes[1:]) >= MIN_SAMPLES
    sums = [sum(sizes[:count]) for count in range(1, len(sizes))]
    assert since[1] in sums
    assert since[1] + before[1] == sum(sizes)
    assert 'class="dots low"' in text


def test_the_sides_of_a_comparison_have_the_numbers_of_the_page(page: TestClient) -> None:
    """Periods are shaded and named as on the page; periods that overlap are not drawn, and versions not shaded."""
    text = page.get(f"/compare?route={SEARCH}").text
    earlier, later = levels(text)
    tiles = re.findall(r"95% interval [\d.]+\u2013[\d.]+, n=(\d+)", text[text.index('id="sides"') :])
    assert [earlier, later] == [("earlier", int(tiles[0])), ("later", int(tiles[1]))]

    ends = "since=2026-11-17T00:00Z&until=2026-11-20T00:00Z&old_since=2026-11-15T00:00Z&old_until=2026-11-18T00:00Z"
    assert 'id="over-time"' not in page.get(f"/compare?{ends}").text
    versions = page.get("/compare?by=prompt_version").text
    assert levels(versions) == []
    assert re.search("prompt version 7 per .*prompt version 6", versions, re.DOTALL)
    assert versions.count('<g class="earlier">') >= 2
