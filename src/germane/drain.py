"""Waiting for scores before a process stops, with progress for the person who waits."""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING, Final

from germane.errors import StorageError
from germane.sanitize import count_noun

if TYPE_CHECKING:
    from germane.monitor import Monitor
    from germane.scorers import ScorerSet
    from germane.storage import OutstandingWork, TrackingStore

POLL_INTERVAL: Final = 0.1
"""Maximum time, in seconds, between two looks at the backlog."""
LOG_INTERVAL: Final = 10.0
"""Time, in seconds, between two log lines about the progress, if standard error is not a terminal."""
SHOWN_INTERVAL: Final = 1.0
"""Time, in seconds, between two updates of the progress on a terminal. Each counts all waiting answers."""
_logger = logging.getLogger("germane")


class Drain:
    """The wait for the scores of captured exchanges.

    It ends when all exchanges are scored, after the timeout, when the database fails, or as soon as waiting helps none
    of the scorers that still have work, for example because their judge rejects the key. Then it logs the number of
    answers without a score, and the reason.
    """

    def __init__(
        self,
        store: TrackingStore,
        scorer_set: ScorerSet,
        monitor: Monitor,
        *,
        poll_interval: float,
        is_quiet: bool = False,
    ) -> None:
        self._store = store
        self._unavailable_reason = scorer_set.unavailable_reason
        self._pairs = {(scorer.name, scorer.fingerprint) for scorer in scorer_set.scorers}
        self._monitor = monitor
        self._poll_interval = min(POLL_INTERVAL, poll_interval)
        self._is_quiet = is_quiet
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._is_line_open = False
        self._shown_at = 0.0

    def run(self, timeout: float) -> None:
        """Wait for at most ``timeout`` seconds."""
        started = time.monotonic()
        try:
            while True:
                outstanding, waited = self._store.backlog.load_outstanding(), time.monotonic() - started
                if not self._is_outstanding(outstanding):
                    return
                reason = self._find_obstacle(outstanding)
                if reason is None and waited >= timeout:
                    reason = f"scoring takes longer than the drain timeout of {timeout:g} s; raise it"
                if reason is not None:
                    self._report_unscored(reason)
                    return
                self._show_progress(waited, timeout)
                time.sleep(self._poll_interval)
        except StorageError as error:
            self._close_line()
            _logger.warning("not waiting for scores: %s", error)
        finally:
            self._close_line()

    def _is_outstanding(self, outstanding: OutstandingWork) -> bool:
        return bool(outstanding.undecided or self._scorers_with_tasks(outstanding))

    def _scorers_with_tasks(self, outstanding: OutstandingWork) -> set[str]:
        return {tasks.scorer for tasks in outstanding.for_scorers(self._pairs) if tasks.in_progress}

    def _find_obstacle(self, outstanding: OutstandingWork) -> str | None:
        """Return why waiting does not help; None if it may help."""
        if not self._pairs:
            return (self._unavailable_reason or "no scorer is configured").removeprefix("nothing will be scored: ")
        stuck, waiting = self._monitor.status().stuck_scorers, self._scorers_with_tasks(outstanding)
        if outstanding.undecided or not waiting or not waiting <= stuck.keys():
            return None
        return f"{stuck[min(waiting)]}; run 'germane doctor'"

    def _report_unscored(self, reason: str) -> None:
        self._close_line()
        answers = count_noun(self._store.backlog.count_unscored(self._pairs), "answer")
        _logger.warning(
            "%s without a score: %s. Unscored answers stay in %s: the next start, or a worker, scores them",
            answers,
            reason,
            self._store.name,
        )

    def _show_progress(self, waited: float, timeout: float) -> None:
        if self._is_quiet or waited < self._shown_at + (SHOWN_INTERVAL if self._is_terminal else LOG_INTERVAL):
            return
        self._shown_at = waited
        answers = count_noun(self._store.backlog.count_unscored(self._pairs), "answer")
        problem = self._monitor.status().judge_problem
        cause = f" ({problem})" if problem else ""
        line = f"waiting for scores: {answers} left after {waited:.0f} s of at most {timeout:g} s{cause}"
        if self._is_terminal:
            self._overwrite_line(f"{line:.79}")
        else:
            _logger.warning("%s", line)

    def _close_line(self) -> None:
        if self._is_line_open:
            self._overwrite_line("")

    def _overwrite_line(self, line: str) -> None:
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()
        self._is_line_open = bool(line)
