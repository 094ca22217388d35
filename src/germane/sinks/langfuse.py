"""Scores in Langfuse."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID, uuid5

from germane.delivery import DeliveryError
from germane.settings import LangfuseSettings, resolve_secret
from germane.sinks.assessment import assessments
from germane.sinks.client import error_for_status
from germane.sinks.sink import Sink
from germane.storage import SinkItem

NAMESPACE: Final = UUID("6d3bdf4c-3f0e-5b0a-9d6b-7c1d6a2f1b53")
"""Namespace of the ids of scores. Never change it: writing a score again would then store a second one."""
_MULTI_STATUS: Final = 207


class LangfuseSink(Sink):
    """Writes scores of observations. A score that has the id of an earlier one replaces it."""

    batch_size = 50

    _settings: LangfuseSettings

    def headers(self) -> dict[str, str]:
        """Return the header with both keys."""
        keys = f"{resolve_secret(self._settings.public_key)}:{resolve_secret(self._settings.secret_key)}"
        return {"Authorization": f"Basic {b64encode(keys.encode()).decode()}"}

    async def write(self, items: Sequence[SinkItem]) -> Mapping[str, DeliveryError]:
        """Write all scores, and delete superseded ones. Only the exchanges of rejected scores are sent again."""
        errors = await self._post(items)
        for item in items:
            for each in item.scores if item.exchange_id not in errors else ():
                for key in each.superseded:
                    url = self._url(f"scores/{_score_id(item, each.scorer, key)}")
                    kept = (403, 404, 405)  # unknown, or this server does not allow it
                    await self.client.request("DELETE", url, headers=self.headers(), accept=kept, needs_json=False)
        return errors

    async def _post(self, items: Sequence[SinkItem]) -> Mapping[str, DeliveryError]:
        """Write all scores in one request."""
        scores = {score["id"]: (item.exchange_id, score) for item in items for score in build_scores(item)}
        body = [score for _, score in scores.values()]
        reply = await self.client.request("POST", self._url("scores"), headers=self.headers(), body=body)
        if reply.status != _MULTI_STATUS:
            return {}
        errors: dict[str, DeliveryError] = {}
        for rejected in _rejections(reply.data):
            exchange_id, _ = scores.get(str(rejected.get("id")), ("", None))
            if exchange_id not in errors or not errors[exchange_id].retryable:  # all that can be written is written
                errors[exchange_id] = error_for_status(_status(rejected))
        # An id that is not ours leaves open which score was rejected, and writing them all again changes nothing.
        unknown = errors.pop("", None)
        return {item.exchange_id: errors.get(item.exchange_id, unknown) for item in items} if unknown else errors

    async def test(self) -> None:
        """Read the project of the keys."""
        await self.client.request("GET", self._url("projects"), headers=self.headers())

    def _url(self, path: str) -> str:
        return f"{self._settings.url.rstrip('/')}/api/public/{path}"


def build_scores(item: SinkItem) -> list[dict[str, Any]]:
    """Return the scores and labels of an exchange as Langfuse expects them."""
    return [
        {
            "id": _score_id(item, each.name, each.key),
            "traceId": item.trace_id,
            "observationId": item.span_id,
            "name": each.name,
            "value": each.value,
            "dataType": "NUMERIC",
            "comment": each.explanation,
            "metadata": {**each.metadata, "label": each.label},
        }
        for each in assessments(item)
    ]


def _score_id(item: SinkItem, name: str, key: str) -> str:
    return str(uuid5(NAMESPACE, f"{item.exchange_id}\0{name}\0{key}"))


def _rejections(data: Any) -> list[Mapping[str, Any]]:
    """Return the rejected scores in a response with the status 207."""
    found = data.get("errors") if isinstance(data, Mapping) else None
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else [{}]


def _status(rejected: Mapping[str, Any]) -> int:
    status = rejected.get("status")
    return status if isinstance(status, int) else 500
