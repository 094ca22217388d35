"""Fills an empty database with rows of every kind, and prints what the Store reads back: ``python fill.py URL``.

It is run with the code of one revision of the tables, and uses what that code has; see the README beside it.
"""

from __future__ import annotations

import inspect
import json
import runpy
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from germane.exchange import Context, Exchange, Turn
from germane.score import Reason, Score
from germane.storage import Claim, Decision, Store

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)
LEASE = timedelta(hours=1)
SCORERS = {"faithfulness": "f2", "relevancy": "f1"}
MEAN = ("service", "route", "scorer", "fingerprint", "newest", "n", "mean")
"""How sure a mean is was computed otherwise once."""
ODD = (
    "How do I pay?",
    'It\'s "quoted", 100 % \\escaped\\; -- DROP TABLE exchange; /* $1 :name %s */',
    "two\nlines\tand \u2028 a separator",
    "\u0627\u0644\u0633\u0639\u0631 \U0001f468\u200d\U0001f469\u200d\U0001f467 \u00fc\u00df",
    "NUL \0 and half a pair \ud800",
    "",
    "<script>alert(1)</script>",
    "long " * 40,
)


def an_exchange(number: int) -> Exchange:
    text = ODD[number % len(ODD)]
    return Exchange(
        id=f"{number + 1:032x}",
        trace_id=f"{number // 2 + 1:032x}",
        span_id=f"{number + 1:016x}",
        service="shop" if number % 3 else "caf\u00e9",
        route=("ask", "search", "ask/{id}")[number % 3],
        question=text,
        answer=None if number == 9 else f"{number}: {text}",
        contexts=(Context(text, f"page {number}", 0.25), Context("", None, None))[: number % 3],
        history=(Turn("user", text),) if number % 2 else (),
        model=None if number % 2 else "gpt-4o-mini",
        prompt_version="7" if number % 4 else None,
        session=f"s{number % 3}" if number % 5 else None,
        user=f"u{number % 4}" if number % 5 else None,
        attributes={"tenant": "acme", "trial": bool(number % 2), "seats": number, "share": number / 8, text[:20]: text},
        status=("ok", "ok", "ok", "error")[number % 4],
        error=f"ValueError: {text}" if number % 4 == 3 else None,
        started_at=NOON - timedelta(hours=number, microseconds=number * 1001),
        duration=number / 16,
        sampling_key=(number + 1) / 32,
        traced=bool(number % 2),
    )


def score_of(task: Any, number: int) -> Score:
    """Return a score, or the failure of one exchange; some are made by another model than was asked for."""
    names = {"scorer": task.scorer, "fingerprint": task.fingerprint + " served" * (number == 1), "scored_at": NOON}
    text = ODD[number % len(ODD)]
    if number == 4:
        return Score(**names, reason=Reason.UNPARSABLE, explanation=f"the judge said: {text}")
    return Score(
        **names,
        value=number / 4 - 0.25,
        label="partly",
        explanation=text,
        details={"questions": [{"text": text, "similarity": 0.5}], "requests": 3},
        judge="gpt-4o-mini",
        embedder="text-embedding-3-small",
        input_tokens=100 + number,
        output_tokens=10,
        cost=0.0001,
        latency=0.5,
    )


def claim(store: Store, owner: str, limit: int) -> Sequence[Claim]:
    by_scorer = "scorers" in inspect.signature(store.claim).parameters
    return store.claim(owner, *((SCORERS,) if by_scorer else ()), limit=limit, lease=LEASE)


def fill(store: Store) -> list[int]:
    """Scored 0 to 3, failed 4, skipped 5, half of 6 too, postponed 7, running 8, pending 9, undecided 10 and 11.

    Returns the ids of the running tasks.
    """
    exchanges = [an_exchange(number) for number in range(12)]
    store.add(exchanges)
    place = {one.id: number for number, one in enumerate(exchanges)}
    for number in (0, 1, 2, 3, 4, 7, 8, 9, 5, 6):
        skip = {5: dict.fromkeys(SCORERS, Reason.NOT_DRAWN), 6: {"faithfulness": Reason.MISSING_INPUT}}.get(number, {})
        kind = "not_drawn" if number == 5 else "drawn"
        store.assign([Decision(exchanges[number].id, 0.5, kind, skip)], SCORERS)
        if number <= 4:
            claims = claim(store, "done", 1)
            store.complete("done", [(task, score_of(task, number)) for one in claims for task in one.tasks])
        if number == 7:
            tasks = [task for one in claim(store, "away", 1) for task in one.tasks]
            store.postpone("away", tasks, until=NOON + LEASE, reason=Reason.JUDGE_TIMEOUT, error=ODD[1])
        if number == 8:
            (running,) = claim(store, "running", 1)
            assert place[running.exchange.id] == 8
    store.count_dropped({("shop", "ask"): 7}, SCORERS, at=NOON)
    store.declare("shop", ["never"])
    assert store.elect("sampler", "someone", ttl=LEASE)
    return [task.id for task in running.tasks]


def fill_later_tables(store: Store) -> None:
    """Fill what came with the second and the third revision."""
    if hasattr(store, "reserve"):
        from germane.storage import Limit

        store.reserve([Limit("requests", 60), Limit("tokens", 600)], [(1, 9)])
    if hasattr(store, "record"):
        from germane.annotation import Feedback, Recorded
        from germane.calibration import Calibration

        said: dict[str, Any] = {"score": 0.25, "comment": ODD[3], "user": "u1", "created_at": NOON}
        store.add_feedback([Feedback(id=name, exchange_id=name * 32, **said) for name in ("1", "9")])
        store.add_feedback([Feedback(id="2", exchange_id=f"{2:032x}", **said)])
        store.record(
            [Recorded(exchange_id=f"{11:032x}", name="mine", value=-0.5, explanation=ODD[1], recorded_at=NOON)]
        )
        floor: dict[str, Any] = {"floor": 0.07, "high": 0.2, "n": 400, "made_at": NOON}
        store.add_calibrations([Calibration(embedder="e", scorer="relevancy", fingerprint="f1", **floor)])


def fill_fleet(store: Store, running: Sequence[int]) -> None:
    """Fill what the fourth brought: 12 in the pool, 13 picked, 14 and 15 not, 16 objected to, 17 scored and erased."""
    from germane.storage import Pick, Step

    fleet = [replace(an_exchange(number), capture_probability=0.75) for number in range(12, 18)]
    store.add(fleet)
    ids = dict(enumerate((one.id for one in fleet), start=12))
    seen: dict[str, Any] = {"proxy": 0.25, "proxy_probability": 0.5}
    unfit: dict[str, Any] = {"skip": {"faithfulness": Reason.FILTERED}}
    store.assign([Decision(ids[number], None, "candidate", **seen) for number in (12, 13, 14)], SCORERS)
    store.assign([Decision(ids[number], None, "candidate", **unfit) for number in (15, 16)], SCORERS)
    step = Step("sampler", "someone", "the first interval")
    assert store.pick(step, [Pick(ids[13], 0.375, "suspicion")])
    assert store.pass_over(step, {ids[14]: 0.125, ids[16]: 0.0625}, Reason.NOT_DRAWN)
    assert store.pass_over(step, {ids[15]: None}, Reason.BUDGET)
    _object_to(store, ids[16])
    _score_and_erase(store, ids[17])
    _spend(store)
    _beat(store, running)
    store.count_dropped({("shop", "ask"): 3}, SCORERS, Reason.CAPTURE_LIMIT, at=NOON)


def _object_to(store: Store, exchange_id: str) -> None:
    from germane.annotation import Feedback

    said: dict[str, Any] = {"score": 0.0, "comment": ODD[1], "user": "u2", "created_at": NOON}
    store.add_feedback([Feedback(id="16", exchange_id=exchange_id, **said)])
    assert store.consider(["16"], [exchange_id], SCORERS, holder=("sampler", "someone")) == 1


def _score_and_erase(store: Store, exchange_id: str) -> None:
    """Score the oldest of all, and erase its text."""
    store.assign([Decision(exchange_id, 0.75, "always", proxy=-0.5, proxy_probability=1.0)], SCORERS)
    (oldest,) = claim(store, "done", 1)
    assert oldest.exchange.id == exchange_id
    store.complete("done", [(task, score_of(task, 6)) for task in oldest.tasks])
    assert store.prune(texts_before=oldest.exchange.started_at + timedelta(seconds=1)).texts == 1


def _spend(store: Store) -> None:
    from germane.settings import Budget
    from germane.storage import Expense

    yesterday = {(NOON - timedelta(days=1)).date(): Expense(7, 700.0, 0.25)}
    store.reserve_budget(Budget(calls_per_day=100), [Expense(2, 300.0, 0.5)] * 2, settled=yesterday)


def _beat(store: Store, running: Sequence[int]) -> None:
    """Tell of the process that has these tasks, and of another."""
    from germane.storage import Presence

    known: dict[str, Any] = {"service": "caf\u00e9", "version": "0.4.0", "scorers": SCORERS, "concurrency": 8}
    assert store.beat(Presence(id="running", host="a", pid=1, in_flight=1, **known), running, lease=LEASE) == 2
    store.beat(Presence(id="idle", host="b", pid=2, problem=ODD[1], **known), [], lease=LEASE)


def watched() -> dict[str, Any]:
    """Return what fills and reads the tables that came with the fifth revision; only its code has what they need."""
    return runpy.run_path(str(Path(__file__).with_name("fill_watched.py")))


def pages() -> dict[str, Any]:
    """Return the same of the sixth."""
    return runpy.run_path(str(Path(__file__).with_name("fill_pages.py")))


def read(store: Store) -> dict[str, Any]:
    """Return everything that any revision of the Store can read."""
    later = (_read_fleet(store) if hasattr(store, "candidates") else {}) | (
        watched()["read"](store) if hasattr(store, "advance") else {}
    )
    later |= pages()["read"](store) if hasattr(store, "jobs") else {}
    return later | {
        "exchanges": [asdict(one) for one in store.exchanges(limit=1000)],
        "scores": [{"exchange_id": one.exchange.id, **asdict(one.score)} for one in store.worst(limit=1000)],
        "coverage": [asdict(one) for one in store.coverage()],
        "counts": asdict(store.counts()),
        "summary": [{name: getattr(one, name) for name in MEAN} for one in store.summary()],
        "feedback": [asdict(one.feedback) for one in store.feedback()] if hasattr(store, "feedback") else [],
        "calibrations": [asdict(one) for one in store.calibrations()] if hasattr(store, "calibrations") else [],
        "uses": sorted(one.name for one in store.limit_uses()) if hasattr(store, "limit_uses") else [],
    }


def _read_fleet(store: Store) -> dict[str, Any]:
    from germane.storage import Selection, dumped

    return {
        "records": [json.loads(dumped(one)) for one in store.records(Selection(), limit=1000)],
        "dropped": sorted((one.scorer, one.reason, one.count) for one in store.dropped(Selection())),
        "candidates": [asdict(one) for one in store.candidates(1000)],
        "cursor": store.cursor("sampler"),
        "unconsidered": [one.feedback.id for one in store.unconsidered_feedback(1000)],
        "workers": [asdict(one) for one in store.workers()],
        "spending": [asdict(one) for one in store.spending(2)],
        "outstanding": asdict(store.outstanding()),
        "troubles": [asdict(one) for one in store.troubles()],
    }


def main() -> None:
    store = Store(sys.argv[1], clock=lambda: NOON)
    store.migrate()
    running = fill(store)
    fill_later_tables(store)
    if hasattr(store, "candidates"):
        fill_fleet(store, running)
    if hasattr(store, "advance"):
        watched()["fill"](store)
    if hasattr(store, "jobs"):
        pages()["fill"](store)
    json.dump(read(store), sys.stdout, default=str, indent=1, sort_keys=True)
    store.close()


if __name__ == "__main__":
    main()
