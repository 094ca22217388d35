"""The query parameters of all pages: the error for an unknown or malformed parameter states what is valid."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode, urlsplit

import pytest
from starlette.routing import Route
from starlette.testclient import TestClient
from tests.cases import each
from tests.dashboard.conftest import BOTH, Week
from tests.dashboard.seeding import SEARCH

from germane.dashboard.app import PAGE_ROUTES
from germane.insights import answers

HTML = {"Accept": "text/html"}
UNCHECKED = {"/metrics", "/logout"}
"""Prometheus may add its own parameters to /metrics, and /logout has no query."""
PAGES = sorted(
    {
        route.path
        for route in PAGE_ROUTES
        if isinstance(route, Route) and "GET" in (route.methods or ()) and route.path not in UNCHECKED
    }
)
MALFORMED: Mapping[str, Sequence[tuple[str, str]]] = {
    "window": [
        ("3w", "24h, 7d, 30d, 90d"),
        ("24", "did you mean \u201c24h\u201d?"),
        ("7D", "did you mean \u201c7d\u201d?"),
    ],
    "since": [("soon", "such as 2026-11-18"), ("0001-01-01T00:00+14:00", "such as"), ("2027-01-01", "window is empty")],
    "until": [("never", "such as 2026-11-18"), ("9999-12-31", "such as 2026-11-18")],
    "bucket": [("2h", "1h, 3h, 6h, 12h, 1d, 3d, 7d"), ("1 h", "did you mean \u201c1h\u201d?")],
    "scorer": [("faithfulnes", "did you mean \u201cfaithfulness\u201d?"), ("nope", "answer_relevancy")],
    "service": [("handbok", "did you mean \u201chandbook\u201d?"), ("nobody", "Known: \u201chandbook\u201d")],
    "route": [("doc-search", "did you mean \u201cdocs-search\u201d?"), ("\0", "must be text")],
    "below": [("abc", "a number from -1 to 1"), ("nan", "a number"), ("1e9", "a number"), ("0,5", "a number")],
    "at_least": [("half", "a number from -1 to 1")],
    "low": [("maybe", "one of 1, yes")],
    "refusals": [("hidden", "one of show, hide, only")],
    "labeled": [("perhaps", "one of yes, no")],
    "reason": [("judge_timeou", "did you mean \u201cjudge_timeout\u201d?"), ("'", "judge_timeout")],
    "sort": [("lowst", "did you mean \u201clowest\u201d?"), ("DROP TABLE", "lowest, highest, newest")],
    "severity": [("CRITICAL", "did you mean \u201ccritical\u201d?")],
    "state": [("nonsense", "one of ")],
    "text": [("x" * 300, "at most 200 characters"), ("\0", "at most 200 characters")],
    "after": [("1~2~3", "a position"), ("never", "a position")],
    "question": [("x" * 501, "must be text")],
    "group": [("questions", "did you mean \u201cquestion\u201d?")],
    "selection": [("all", "one of 1")],
    "good": [("many", "a count")],
    "replay": [("dropp", "did you mean \u201cdrop\u201d?")],
    "to": [("drak", "did you mean \u201cdark\u201d?")],
    "done": [("acc", "did you mean \u201cack\u201d?")],
    "part": [("drawr", "did you mean \u201cdrawer\u201d?")],
    "result": [("readyy", "did you mean \u201cready\u201d?")],
    "ready": [("-1", "a count"), ("\u0663", "a count"), ("12345678", "a count")],
    "resent": [("many", "a count")],
    "by": [
        ("prompt_versio", "did you mean \u201cprompt_version\u201d?"),
        ("day", "one of period, prompt_version, model"),
    ],
    "old_since": [("soon", "such as 2026-11-18"), ("2026-11-01", "Give both old_since and old_until.")],
    "old_until": [("never", "such as 2026-11-18")],
}
"""Malformed values by parameter, each with the part of the message that states what is valid."""
HOSTILE = ("<script>alert(1)</script>", "a\0b", "\u202eetuor", "x" * 700, "__proto__", "[]", "a\r\nSet-Cookie: b=c")


def address_of(week: Week, path: str) -> str:
    """Return the URL of a page in the sample week."""
    exchange, alert = week.seeded.exchanges[0].id, week.seeded.open_alert
    return (
        path.replace("{exchange_id}", exchange)
        .replace("{alert_id}", alert)
        .replace("{wave}", week.seeded.wave)
        .replace("{route:path}", SEARCH)
        .replace("{session:path}", "session-490")
        .replace("{trace_id}", week.seeded.unreadable_trace)
    )


def parameters_of(page: TestClient, address: str) -> list[str]:
    """Return the parameters that a page accepts, as listed in its error message."""
    message = page.get(address, params={"zzzzzzzz": "1"}).text
    if "It has no parameters." in message:
        return []
    found = re.search(r"It has these parameters: (.*)\.$", message, re.MULTILINE)
    assert found is not None, message
    return found[1].split(", ")


@pytest.mark.slow
def test_every_page_rejects_unknown_parameters_and_suggests_a_known_one(page: TestClient, week: Week) -> None:
    """Each parameter of each page is tried with a letter missing, doubled or in the wrong case."""
    for path in PAGES:
        address = address_of(week, path)
        for name in parameters_of(page, address):
            stem = name.removesuffix("NAME")
            for wrong in {f"{stem[:1]}{stem[2:]}", f"{stem}{stem[-1]}", stem.upper()} - {stem}:
                if stem.endswith(".") and wrong.startswith(stem):
                    continue
                response = page.get(address, params={wrong: "1"}, headers=HTML)

                assert response.status_code == 400, (path, wrong)
                text = html.unescape(response.text)
                assert f"This page has no parameter \u201c{wrong}\u201d" in text
                assert re.search("did you mean \u201c[a-z_.A-Z]+\u201d", text) or len(stem) < 4, (path, wrong)


@pytest.mark.slow
def test_every_page_rejects_malformed_values_and_says_what_is_valid(page: TestClient, week: Week) -> None:
    """Browsers get a page and other clients get text, with the value escaped and on one line."""
    tried = set()
    for path in PAGES:
        address = address_of(week, path)
        for name in set(parameters_of(page, address)) & MALFORMED.keys():
            for value, expected in MALFORMED[name]:
                response = page.get(address, params={name: value}, headers=HTML)
                plain = page.get(address, params={name: value})

                assert (response.status_code, plain.status_code) == (400, 400), (path, name, value)
                assert expected in html.unescape(response.text), (path, name, value, plain.text)
                assert expected in plain.text
                assert len(plain.text.splitlines()) == 2
                tried.add(name)
    assert tried == MALFORMED.keys()


@each("given", HOSTILE)
@BOTH
def test_hostile_names_and_values_are_shown_escaped(page: TestClient, given: str) -> None:
    """The text is shortened, on one line, free of control characters, and never part of a header."""
    for query in ({given: "1"}, {"below": given}, {"scorer": given}, {"route": given}):
        response = page.get(f"/answers?{urlencode(query)}", headers=HTML)

        assert response.status_code == 400
        assert "<script>alert" not in response.text
        assert "\u202e" not in response.text
        assert "x" * 100 not in re.sub('value="[^"]*"', "", response.text)
        assert "b" not in response.cookies


def test_a_repeated_query_parameter_is_rejected(page: TestClient) -> None:
    """Otherwise, one of the values would be ignored."""
    response = page.get("/answers?route=ask&route=docs-search")

    assert response.status_code == 400
    assert "more than once" in response.text


def test_query_parameters_without_a_value_are_ignored(
    page: TestClient, week: Week, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forms also submit empty fields, some of which other pages do not accept."""
    monkeypatch.setattr(answers, "MAX_EXPORTED", 10)
    for path in PAGES:
        address = address_of(week, path)
        blank = dict.fromkeys((*MALFORMED, "anything"), "")

        assert page.get(address, params=blank, headers=HTML).status_code in {200, 303}, path


@pytest.mark.slow
def test_no_page_links_to_an_error_page(page: TestClient, week: Week) -> None:
    """Every link is accepted, on every page and on the pages that it links to."""
    pending, seen = ["/", *(address_of(week, path) for path in PAGES)], set[str]()
    depth = 2
    for _ in range(depth):
        found: list[str] = []
        for address in pending:
            # One answer and one value of each parameter represent all others.
            shape = re.sub(r"/a/[0-9a-f]+", "/a/", re.sub(r"=[^&]*", "=", address))
            if shape in seen or address.startswith(("/static", "/logout")):
                continue
            seen.add(shape)
            response = page.get(address, headers=HTML)
            assert response.status_code in {200, 303, 409}, (address, response.text[-600:])
            if "text/html" in response.headers.get("content-type", ""):
                links = re.findall(r'href="(/[^"#]*)', response.text)
                found += [html.unescape(link) for link in links if urlsplit(link).path]
        pending = found
    assert len(seen) > 30


def test_an_unknown_parameter_suggests_the_attribute_of_that_name(page: TestClient) -> None:
    """Attributes that were recorded are suggested with their prefix, also if the name is misspelled."""
    for given, meant in {"tenant": "tenant", "tenants": "tenant", "beta": "beta"}.items():
        message = page.get("/answers", params={given: "acme"}).text
        assert f"did you mean \u201cattributes.{meant}\u201d?" in message

    assert "did you mean \u201cmodel\u201d?" in page.get("/answers", params={"models": "x"}).text
    assert page.get("/answers", params={"attributes.tenant": "acme"}).status_code == 200
