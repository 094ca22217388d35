"""Receivers with different options on one database: each trace and each request belongs to the one that received it."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest
from tests.databases import POSTGRESQL_IS_THOROUGH
from tests.receiver.conftest import ask, exchanges, exporter, receive, traced, wait_for

from germane.receiver.receiver import describe_options
from germane.settings import load_settings
from germane.storage import TrackingStore
from germane.testing import OTLPReceiver

SHOUT = """
from functools import partial

class Replace:
    def __init__(self, by):
        self.by = by
    def __call__(self, text):
        return self.by

def shout(text):
    return text.upper()

stars, dots = Replace("***"), Replace("...")
bars = partial(lambda text, by: by, by="|||")
"""


@POSTGRESQL_IS_THOROUGH
@pytest.mark.slow
def test_texts_are_stored_under_the_options_of_the_receiver_that_got_them(
    store: TrackingStore, migrated_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although each receiver looks for the finished traces of all. Requests are sent to the own target, too."""
    (tmp_path / "privacy.py").write_text(SHOUT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("GERMANE_MAX_SPAN_DELAY", "1")
    expected: dict[str | None, str | None] = {}
    with (
        OTLPReceiver() as one,
        OTLPReceiver() as other,
        receive("--redact", "privacy:stars", "--forward", one.endpoint, url=migrated_url) as stars,
        receive("--redact", "privacy:dots", "--forward", other.endpoint, url=migrated_url) as dots,
        receive("--forward", "http://127.0.0.1:9", url=migrated_url) as plain,
        receive(url=migrated_url, GERMANE_CAPTURE="none") as none,
    ):
        for process, text in ((stars, "***"), (dots, "..."), (plain, "By card."), (none, None)):
            with traced(exporter("http", process.http)) as provider:
                for number in range(8):
                    expected[ask(provider, f"How {number}?", "By card.")] = text
        found = wait_for(lambda: len(exchanges(store)) == len(expected) and exchanges(store), timeout=60)
        for target in (one, other):
            target.wait_for(lambda received: len(received.spans) == 24, timeout=60)
        (dead,) = wait_for(lambda: len(left := store.forwarding.list_targets()) == 1 and left)
        assert {process.stop() for process in (stars, dots, plain, none)} == {0}

    assert {each.trace_id: each.answer for each in found} == expected
    assert {span.trace_id for span in one.spans} == {trace for trace, text in expected.items() if text == "***"}
    assert {span.trace_id for span in other.spans} == {trace for trace, text in expected.items() if text == "..."}
    assert dead.target == "http://127.0.0.1:9"
    assert dead.error == "the forwarding target is unreachable (ConnectError)"


def test_options_are_equal_if_they_store_the_same_texts_in_every_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names, the file with the redaction and the settings decide, and addresses in memory do not."""

    def described(redact: str | None = None, *recognizers: str, **settings: object) -> str:
        monkeypatch.delitem(sys.modules, "privacy", raising=False)
        import privacy  # type: ignore[import-not-found]  # written by this test

        function = None if redact is None else getattr(privacy, redact)
        name = "" if redact is None else f"privacy:{redact}"
        chosen = [getattr(privacy, name) for name in recognizers]
        return describe_options(load_settings(**settings), function, name, chosen)

    file = tmp_path / "privacy.py"
    file.write_text(SHOUT)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    first = (
        partial(described),
        partial(described, capture="none"),
        partial(described, max_text_length=100),
        partial(described, None, "shout"),
        partial(described, None, "shout", "stars"),
        *(partial(described, name) for name in ("shout", "stars", "dots", "bars")),
    )
    lines = [each() for each in first]
    assert len(set(lines)) == len(lines)
    assert [each() for each in first] == lines
    assert lines[0].startswith("capture span+store, no redaction, ")
    assert lines[3].startswith("capture span+store, no redaction, 1 recognizer, ")
    assert lines[5].startswith("capture span+store, privacy:shout, ")

    file.write_text(SHOUT.replace("***", "???"))
    assert [each() == line for each, line in zip(first, lines, strict=True)] == [True] * 5 + [False] * 4
