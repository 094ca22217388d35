"""Merging neighboring buckets until each has enough scores for a mean."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from germane.storage.trends.query import Group, Key


class Runs:
    """Runs of neighboring buckets with at least ``min_samples`` scores, for each fingerprint and label.

    Scores that are left over at the end are added to the last run. With ``is_open``, those in the newest bucket form
    a run of their own, which later scores will fill.
    """

    def __init__(self, groups: Mapping[Key, Group], min_samples: int, *, is_open: bool) -> None:
        self._starts: dict[Key, list[int]] = {}
        self.last: dict[Key, int] = {}
        """The number of each run's last bucket with scores, by key of the run."""
        sizes: Counter[Key] = Counter()
        newest = max((key[0] for key in groups), default=0)
        for (number, *rest), group in sorted(groups.items()):
            series = tuple(rest)
            starts = self._starts.setdefault(series, [])
            if not starts or sizes[series] >= min_samples:
                starts.append(number)
                sizes[series] = 0
            sizes[series] += int(group.sums["n"])
            self.last[starts[-1], *series] = number
        for series, starts in self._starts.items():
            last = self.last[starts[-1], *series]
            if sizes[series] < min_samples and len(starts) > 1 and not (is_open and last == newest):
                starts.pop()
                self.last[starts[-1], *series] = last
        self._all_starts = sorted({start for starts in self._starts.values() for start in starts})

    def key(self, key: Key) -> Key:
        """Return the key of the run that a group belongs to: the number of its first bucket, and the series."""
        return (_at_or_before(self._starts[key[1:]], key[0]), *key[1:])

    def merge(self, values: Mapping[Key, Mapping[Any, Any]]) -> dict[Key, Counter[Any]]:
        """Add up values by bucket, such as outcome counts, over the runs."""
        merged: dict[Key, Counter[Any]] = {}
        for (number,), each in values.items() if self._all_starts else ():
            merged.setdefault((_at_or_before(self._all_starts, number),), Counter()).update(each)
        return merged


def _at_or_before(starts: Sequence[int], number: int) -> int:
    return starts[max(0, bisect_right(starts, number) - 1)]
