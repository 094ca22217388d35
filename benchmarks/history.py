"""A synthetic year of scores, bulk-loaded into a database with the content that the store would have written.

Two services have twelve routes. The k-th route has a share of the traffic proportional to 1 / k^1.2. Traffic is three
times as high in the early afternoon as at night. Two scorers score each exchange; the judge changes after three fifths
of the time. Each route has its own share of refusals (exactly 0). Half of the exchanges have a sampling probability of
1, the others of 0.1 to 0.9. Three in ten have a proxy score, and scoring failed for one in a hundred. Each new model
and prompt version starts with a tenth of the traffic and then replaces the previous one. Counts are per minute for the
last thirty days, and per ten minutes before that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from sqlalchemy import Index
from sqlalchemy.schema import CreateIndex, DropIndex

from germane.storage import TrackingStore
from germane.storage.db.models import metadata
from germane.testing import engine_of

ROUTES = tuple(f"route-{rank}" for rank in range(1, 13))
SHARES = np.array([1 / rank**1.2 for rank in range(1, 13)])
MEANS = np.linspace(0.88, 0.70, 12)[[0, 7, 3, 10, 5, 1, 8, 2, 11, 6, 4, 9]]
ZEROS = np.linspace(0.02, 0.13, 12)[[2, 9, 5, 0, 7, 3, 10, 1, 6, 11, 4, 8]]
SERVICES = ("shop", "support")
SCORERS = ("answer_relevancy", "faithfulness")
PROMPTS = ("1", "2", "3", "4", "5", "6")
MODELS = ("small-1", "small-1", "small-2", "small-2", "large-1", "large-1")
PROBABILITIES = np.array([0.1, 0.25, 0.5, 0.9])
JUDGE_CHANGE = 0.6
"""Share of the time after which the judge changes."""
FAILED = 100
"""One in this many exchanges has no score."""
CHUNK = 250_000
DRAFT = (
    "number", "ms", "minute", "service", "route", "model", "prompt_version", "reason", "probability", "proxy",
    "fingerprint", "failed", "value_0", "label_0", "value_1", "label_1",
)  # fmt: skip
"""Columns of the temporary table from which the other tables are filled: one row per exchange."""
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class History:
    """Size and time range of the synthetic data."""

    scores: int
    days: int
    until: datetime
    seed: int = 1

    @property
    def since(self) -> datetime:
        """Start of the history."""
        return self.until - timedelta(days=self.days)

    @property
    def exchanges(self) -> int:
        """Number of exchanges, including those without a score."""
        return self.scores // len(SCORERS) * FAILED // (FAILED - 1)

    def drafts(self) -> Iterator[Rows]:
        """Yield the draft rows in chunks, oldest first."""
        random = np.random.default_rng(self.seed)
        moments = self._moments(random)
        for start in range(0, len(moments), CHUNK):
            yield self._draft(random, start, moments[start : start + CHUNK])

    def _moments(self, random: np.random.Generator) -> np.ndarray[Any, Any]:
        """Return sorted times in ms since 1970, with daily and weekly patterns and growth by a third."""
        hours = np.arange(self.days * 24)
        dense = 1 + 0.5 * np.cos(2 * np.pi * (hours % 24 + 0.5 - 14) / 24)
        dense = dense * np.where(hours // 24 % 7 < 5, 1.1, 0.75) * np.linspace(0.85, 1.15, len(hours))
        counts = random.multinomial(self.exchanges, dense / dense.sum())
        begin = int(self.since.timestamp() * 1000)
        starts = np.repeat(begin + hours * 3_600_000, counts)
        return np.sort(starts + random.integers(0, 3_600_000, len(starts)))

    def _draft(self, random: np.random.Generator, start: int, ms: np.ndarray[Any, Any]) -> Rows:
        many = len(ms)
        route = random.choice(12, many, p=SHARES / SHARES.sum())
        passed = (ms - self.since.timestamp() * 1000) / (self.days * 86_400_000)
        prompt = np.clip((passed * 6 + np.where(random.random(many) < 0.1, 0.3, 0.0)).astype(int), 0, 5)
        weighted = random.random(many) < 0.5
        drawn = PROBABILITIES[random.integers(0, 4, many)]
        values = [_values(random, route, passed) for _ in SCORERS]
        near = np.clip(0.5 * values[0] + 0.5 * random.random(many), 0, 1)
        has_proxy = random.random(many) < 0.3
        numbers = np.arange(start, start + many)
        newest = ms >= int(self.until.timestamp() * 1000) - 30 * 86_400_000
        width = np.where(newest, 60, 600)
        columns: list[list[Any]] = [
            numbers.tolist(),
            ms.tolist(),
            (ms // 1000 // width * width).tolist(),
            [SERVICES[one % 3 // 2] for one in route.tolist()],
            [ROUTES[one] for one in route.tolist()],
            [MODELS[one] for one in prompt.tolist()],
            [PROMPTS[one] for one in prompt.tolist()],
            ["suspicion" if one else "sampled" for one in weighted.tolist()],
            np.where(weighted, drawn, 1.0).tolist(),
            [one if has else None for one, has in zip(near.tolist(), has_proxy.tolist(), strict=True)],
            ["new" if one else "old" for one in (passed >= JUDGE_CHANGE).tolist()],
            (numbers % FAILED == 0).astype(int).tolist(),
        ]
        for each in values:
            columns += [each.tolist(), _labels(each)]
        return list(zip(*columns, strict=True))


def _values(
    random: np.random.Generator, route: np.ndarray[Any, Any], passed: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    mean = MEANS[route] - np.where(passed >= JUDGE_CHANGE, 0.03, 0.0)
    values = random.beta(15 * mean, 15 * (1 - mean))
    return np.where(random.random(len(route)) < ZEROS[route], 0.0, values)


def _labels(values: np.ndarray[Any, Any]) -> list[str]:
    names = np.array(["noncommittal", "irrelevant", "partly_relevant", "mostly_relevant", "relevant"])
    found: list[str] = names[(values > 0).astype(int) + np.digitize(values, (0.5, 0.7, 0.9))].tolist()
    return found


class Filling:
    """Fills a database over one driver connection, without durability, because the data can be generated again."""

    def __init__(self, store: TrackingStore, history: History) -> None:
        store.close()  # SQLite deletes its WAL once no connection is open
        self._raw = engine_of(store).raw_connection()
        self._cursor: Any = self._raw.cursor()
        self._dialect = engine_of(store).dialect
        self._history = history
        self._sqlite = self._dialect.name == "sqlite"
        for statement in HURRY[self._dialect.name]:
            self.run(statement)

    def fill(self) -> None:
        """Write the history into a migrated and empty database."""
        self.run(f"CREATE TEMPORARY TABLE draft ({', '.join(map(_column, DRAFT))})")
        for index in _indexes():
            self.run(str(DropIndex(index).compile(dialect=self._dialect)))
        for rows in self._history.drafts():
            self._put(rows)
        words = ON_SQLITE if self._sqlite else ON_POSTGRESQL
        names = {f"scorer_{at}": name for at, name in enumerate(SCORERS)}
        for statement in (EXCHANGES, SCORES, TASKS, TALLY, DUE):
            self.run(statement.format(**words, **names))
        for index in _indexes():
            self.run(str(CreateIndex(index).compile(dialect=self._dialect)))

    def _put(self, rows: Rows) -> None:
        if self._sqlite:
            self.run("BEGIN")
            self._cursor.executemany(f"INSERT INTO draft VALUES ({', '.join('?' * len(DRAFT))})", rows)
            self.run("COMMIT")
            return
        with self._cursor.copy(f"COPY draft ({', '.join(DRAFT)}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        self._raw.commit()

    def run(self, statement: str) -> None:
        """Run a statement in a separate transaction."""
        self._cursor.execute(statement)
        if not self._sqlite:
            self._raw.commit()

    def close(self) -> None:
        """Vacuum the database, and discard the connection."""
        if not self._sqlite:
            self._raw.driver_connection.autocommit = True  # type: ignore[union-attr]
            self._cursor.execute("VACUUM (ANALYZE)")
        self._raw.invalidate()


HURRY = {
    "sqlite": (
        "PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", "PRAGMA cache_size = -500000", "PRAGMA threads = 2",
    ),
    "postgresql": ("SET synchronous_commit = off", "SET maintenance_work_mem = '500MB'", "SET work_mem = '200MB'"),
}  # fmt: skip


def _column(name: str) -> str:
    kind = "BIGINT" if name in {"number", "ms", "minute", "failed"} else "TEXT"
    return f"{name} {'FLOAT' if name.startswith(('value', 'proba', 'proxy')) else kind}"


def _scattered(*factors: int) -> str:
    """Return a SQL argument for ``%08x`` for each factor. If the factor is odd, the values of all numbers differ."""
    return ", ".join(f"(number + 1) * {factor} % 4294967296" for factor in factors)


ON_SQLITE = {
    "id": f"printf('%012x%08x%08x%04x', ms, {_scattered(2654435761, 2246822519)}, number * 40503 % 65536)",
    "trace": f"printf('%08x%08x%08x%08x', {_scattered(3266489917, 668265263, 374761393, 2654435769)})",
    "span": f"printf('%08x%08x', {_scattered(1664525, 22695477)})",
    "at": "strftime('%Y-%m-%d %H:%M:%f', ms / 1000.0, 'unixepoch') || '000'",
    "minute_at": "strftime('%Y-%m-%d %H:%M:%f', minute, 'unixepoch') || '000'",
    "hour_at": "strftime('%Y-%m-%d %H:%M:%f', hour, 'unixepoch') || '000'",
}
ON_POSTGRESQL = {
    "id": "lpad(to_hex(ms), 12, '0') || substr(md5(number::text), 1, 20)",
    "trace": "md5('trace ' || number)",
    "span": "substr(md5('span ' || number), 1, 16)",
    "at": "to_timestamp(ms / 1000.0)",
    "minute_at": "to_timestamp(minute)",
    "hour_at": "to_timestamp(hour)",
}
EXCHANGES = """
INSERT INTO exchange (id, trace_id, span_id, service, route, question, answer, contexts, history, model, prompt_version,
    session, "user", attributes, status, started_at, duration, sampling_key, traced, capture_probability, proxy,
    proxy_probability, sampling_probability, sampling_reason)
SELECT {id}, {trace}, {span}, service, route, 'How do I return what I bought in order ' || number || '?',
    'Order ' || number || ' can be returned within thirty days. Print the label, and hand the parcel in at a shop.',
    '[{{"text": "Goods may be returned within thirty days of delivery.", "id": "doc-1", "score": 0.9}}]', '[]',
    model, prompt_version, 's' || (number / 5), 'u' || (number / 50), '{{"tenant": "north"}}', 'ok', {at},
    0.3 + number * 7919 % 1000003 / 1000003.0, (number * 2654435761 % 4294967296 + 0.5) / 4294967296.0, true, 1,
    proxy, CASE WHEN proxy IS NULL THEN NULL ELSE 0.3 END, probability, reason
FROM draft
"""
SCORES = """
INSERT INTO score (exchange_id, scorer, fingerprint, service, route, started_at, sampling_probability, proxy, value,
    label, explanation, details, judge, input_tokens, output_tokens, cost, latency, scored_at)
SELECT {id}, scorer, scorer || '-' || fingerprint, service, route, {at}, probability, proxy,
    CASE scorer WHEN '{scorer_0}' THEN value_0 ELSE value_1 END,
    CASE scorer WHEN '{scorer_0}' THEN label_0 ELSE label_1 END,
    'It answers what was asked.', '{{"similarity": 0.8}}', 'judge-' || fingerprint, 812, 96, 0.0004,
    0.7 + number * 6007 % 1000003 / 1000003.0, {at}
FROM draft CROSS JOIN (SELECT '{scorer_0}' AS scorer UNION ALL SELECT '{scorer_1}') AS scorers WHERE failed = 0
"""
TASKS = """
INSERT INTO scoring_task (exchange_id, scorer, fingerprint, state, reason, claims, first_pending_at)
SELECT {id}, scorer, scorer || '-' || fingerprint, CASE WHEN failed = 0 THEN 'done' ELSE 'failed' END,
    CASE WHEN failed = 0 THEN NULL ELSE 'judge_timeout' END, 1, {at}
FROM draft CROSS JOIN (SELECT '{scorer_0}' AS scorer UNION ALL SELECT '{scorer_1}') AS scorers
"""
TALLY = """
INSERT INTO tally (minute, service, route, scorer, process, outcome, reason, count)
SELECT {minute_at}, service, route, scorer, 'a1b2c3d4e5f60718', outcome,
    CASE outcome WHEN 'failed' THEN 'judge_timeout' WHEN 'skipped' THEN 'not_sampled' ELSE '' END, total
FROM (
    SELECT minute, service, route, outcome, sum(CASE outcome WHEN 'seen' THEN 1 + skipped WHEN 'scored' THEN 1 - failed
        WHEN 'failed' THEN failed ELSE skipped END) AS total
    FROM (SELECT minute, service, route, failed, CASE WHEN probability < 0.2 THEN 9 ELSE 0 END AS skipped FROM draft)
        AS drafts
    CROSS JOIN (SELECT 'seen' AS outcome UNION ALL SELECT 'scored' UNION ALL SELECT 'failed' UNION ALL
        SELECT 'skipped' UNION ALL SELECT 'pending') AS outcomes
    WHERE outcome <> 'pending' GROUP BY minute, service, route, outcome
) AS sums CROSS JOIN (SELECT '{scorer_0}' AS scorer UNION ALL SELECT '{scorer_1}') AS scorers
WHERE total > 0 ORDER BY minute, service, route, scorer, outcome
"""
DUE = """
INSERT INTO rollup_dirty_hour (hour) SELECT {hour_at}
FROM (SELECT DISTINCT ms / 3600000 * 3600 AS hour FROM draft) AS hours ORDER BY hour
"""


def _indexes() -> list[Index]:
    """Return the indexes that are faster to build after all rows are loaded."""
    large = [metadata.tables[name] for name in ("exchange", "score", "scoring_task")]
    return [index for table in large for index in sorted(table.indexes, key=lambda one: one.name or "")]


def fill(store: TrackingStore, history: History) -> None:
    """Write the history into a migrated and empty database."""
    with closing(Filling(store, history)) as filling:
        filling.fill()
    store.migrate()  # restores SQLite's WAL mode


def last_hour() -> datetime:
    """Return the end of the last full hour, which is the end of the history."""
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
