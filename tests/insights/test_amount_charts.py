"""Charts of amounts over time: durations and costs."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each

from germane.insights.charts.amounts import Amount, AmountChart, amount_figure, round_up
from germane.insights.usage import format_usd

HOUR = timedelta(hours=1)
SINCE = datetime(2026, 11, 20, 8, tzinfo=UTC)
HOSTILE = '"><script>alert(1)</script>'


def chart(amounts: list[Amount], **given: Any) -> AmountChart:
    """Return a chart of amounts within one day."""
    fields: dict[str, Any] = {
        "series": [("median", amounts), ("95th percentile", amounts)],
        "kind": "lines",
        "since": SINCE,
        "until": SINCE + 24 * HOUR,
        "bucket": HOUR,
        "title": "Response time",
        "name": "durations",
        "format_amount": lambda value: f"{value:g} s",
        "counted": "answers",
        "zone": UTC,
        "answers": "/answers?sort=slowest",
    }
    return AmountChart(**fields | given)


def pictures(figure: str) -> list[ET.Element]:
    """Return the images of a figure, which must be well-formed."""
    return [ET.fromstring(text) for text in re.findall(r"<svg xmlns.*?</svg>", figure)]


@given(st.floats(1e-6, 1e6))
def test_the_axis_of_an_amount_chart_ends_at_a_round_number_above_the_highest_amount(value: float) -> None:
    """It is at most 2.5 times the highest amount, so that the chart is not flat."""
    top = round_up(value)

    assert value * (1 - 1e-8) <= top <= 2.5 * value * (1 + 1e-8)
    assert round(top / 10 ** math.floor(math.log10(top * (1 + 1e-9))), 6) in {1, 2, 5}


def test_buckets_without_answers_interrupt_the_line() -> None:
    """A bucket without answers interrupts the steps, and few answers make a dashed step."""
    hours = (0, 1, 3, 4)
    figure = amount_figure(chart([Amount(SINCE + hour * HOUR, 1.0, 19 if hour == 4 else 20) for hour in hours]))
    (picture,) = pictures(figure)
    lines = [element for element in picture.iter() if element.get("class", "").startswith("line")]
    steps = [part for element in lines for part in re.findall("[MV][^MVH]+(?:V[^H]+)?H", element.get("d", ""))]
    assert len(steps) == 2 * len(hours)
    assert sum("V" in step for step in steps) == 2 * 2  # in two series
    assert figure.count('class="line thin"') == 2 + 1  # in two series, and in the legend
    assert "n below 20" in figure


def test_the_table_of_an_amount_chart_links_each_amount_to_its_answers() -> None:
    """Each row links to the answers in its bucket, newest first."""
    figure = amount_figure(chart([Amount(SINCE + hour * HOUR, hour + 0.5, 30 + hour) for hour in range(3)]))
    rows = re.findall(r"<tr><th scope=\"row\"><a href=\"([^\"]+)\">.*?</tr>", figure)

    assert [re.findall("<td>([^<]+)</td>", row) for row in re.findall(r'<tr><th scope="row".*?</tr>', figure)] == [
        ["2.5 s", "2.5 s", "32"],
        ["1.5 s", "1.5 s", "31"],
        ["0.5 s", "0.5 s", "30"],
    ]
    window = "since=20261120T08Z&amp;until=20261120T09Z"
    assert rows[2] == f"/answers?sort=slowest&amp;{window}"


def test_sums_are_drawn_as_bars_with_a_text_alternative() -> None:
    """The description states the last and the highest amount; amounts outside the window are omitted."""
    amounts = [Amount(SINCE - 2 * HOUR, 9.0, 5), Amount(SINCE, 4.0, 7), Amount(SINCE + HOUR, 1.0, 3)]
    figure = amount_figure(chart(amounts[1:], kind="bars", series=[("cost", amounts[1:])], format_amount=format_usd))
    (picture,) = pictures(figure)

    assert [element.get("d", "").count("M") for element in picture.iter() if element.get("class") == "total"] == [2]
    assert "cost: last $1.00 (n=3), highest $4.00 (n=7)." in figure


@each("values", [[], [0.0], [0.0, 0.0]])
def test_a_chart_of_amounts_that_are_all_zero_is_drawn(values: list[float]) -> None:
    """The axis does not divide by zero."""
    amounts = [Amount(SINCE + number * HOUR, value, 1) for number, value in enumerate(values)]
    for kind in ("lines", "bars"):
        assert len(pictures(amount_figure(chart(amounts, kind=kind)))) == 1


def test_hostile_chart_titles_are_escaped() -> None:
    """Titles contain the names of routes."""
    figure = amount_figure(
        chart([Amount(SINCE, 1.0, 1)], title=HOSTILE, name=HOSTILE, answers=f"/answers?route={HOSTILE}")
    )

    assert "<script" not in figure
    assert len(pictures(figure)) == 1


@each(
    ("value", "expected"),
    [(0.0, "$0"), (0.00042, "$0.00042"), (0.5, "$0.5"), (1.0, "$1.00"), (12345.678, "$12,345.68")],
)
def test_dollars_are_formatted_without_exponents(value: float, expected: str) -> None:
    """Small costs keep their digits."""
    assert format_usd(value) == expected
