"""Samples on a metrics page, parsed as by a scraper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True)
class MetricSamples:
    """The samples of one metrics page."""

    samples: Mapping[str, Mapping[frozenset[tuple[str, str]], float]]
    """Sample values by name and labels."""
    kinds: Mapping[str, str]

    def all(self, name: str, **labels: str) -> dict[frozenset[tuple[str, str]], float]:
        """Return the samples of a metric that have these labels, among others."""
        return {key: value for key, value in self.samples.get(name, {}).items() if labels.items() <= dict(key).items()}

    def one(self, name: str, **labels: str) -> float:
        """Return the only sample that has these labels."""
        (value,) = self.all(name, **labels).values()
        return value

    def labels(self, name: str, label: str) -> set[str]:
        """Return the values of a label in the samples of a metric."""
        return {dict(key)[label] for key in self.samples.get(name, {})}


def parse_metrics(text: str) -> MetricSamples:
    """Parse a metrics page, and fail if two samples have the same name and labels."""
    samples: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
    kinds = {}
    for family in text_string_to_metric_families(text):
        kinds[family.name] = family.type
        for sample in family.samples:
            key = frozenset(sample.labels.items())
            assert key not in samples.setdefault(sample.name, {}), f"duplicate sample: {sample.name} {sample.labels}"
            samples[sample.name][key] = sample.value
    return MetricSamples(samples, kinds)
