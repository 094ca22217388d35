"""A page of metrics, read as a scraper reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True)
class Scraped:
    """The samples of one page."""

    samples: Mapping[str, Mapping[frozenset[tuple[str, str]], float]]
    """By name and labels."""
    kinds: Mapping[str, str]

    def all(self, name: str, **labels: str) -> dict[frozenset[tuple[str, str]], float]:
        """Return the samples of a name that have these labels among theirs."""
        return {key: value for key, value in self.samples.get(name, {}).items() if labels.items() <= dict(key).items()}

    def one(self, name: str, **labels: str) -> float:
        """Return the one sample that has these labels."""
        (value,) = self.all(name, **labels).values()
        return value

    def labels(self, name: str, label: str) -> set[str]:
        """Return what a label says in the samples of a name."""
        return {dict(key)[label] for key in self.samples.get(name, {})}


def scraped(text: str) -> Scraped:
    """Read a page; no two samples may have the same name and labels."""
    samples: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
    kinds = {}
    for family in text_string_to_metric_families(text):
        kinds[family.name] = family.type
        for sample in family.samples:
            key = frozenset(sample.labels.items())
            assert key not in samples.setdefault(sample.name, {}), f"twice: {sample.name} {sample.labels}"
            samples[sample.name][key] = sample.value
    return Scraped(samples, kinds)
