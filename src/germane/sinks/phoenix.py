"""Phoenix: scores and labels as annotations of spans."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from germane.delivery import DeliveryError
from germane.settings import PhoenixSettings, resolve_secret
from germane.sinks.assessment import Assessment, assessments
from germane.sinks.client import Reply, error_for_status
from germane.sinks.sink import MissingSpanError, Sink
from germane.storage import SinkItem

MAX_ANNOTATIONS: Final = 100
"""Maximum number of annotations per request."""
NOT_FOUND: Final = 404
_SPAN_ID: Final = re.compile(r"\b[0-9a-f]{16}\b")
_DELETE: Final = "mutation ($ids: [ID!]!) { deleteSpanAnnotations(input: {annotationIds: $ids}) { __typename } }"


class PhoenixSink(Sink):
    """Writes annotations. Phoenix replaces an annotation of the same span, name and identifier.

    Scores of another judge have another identifier, and Phoenix would show the mean of both. Therefore, the superseded
    annotation is emptied in the same request, and then deleted.
    """

    _settings: PhoenixSettings

    def headers(self) -> dict[str, str]:
        """Return the header with the API key, if one is configured."""
        key = self._settings.api_key
        return {} if key is None else {"Authorization": f"Bearer {resolve_secret(key)}"}

    async def write(self, items: Sequence[SinkItem]) -> Mapping[str, DeliveryError]:
        """Write scores and labels, and return an error for each exchange whose span Phoenix does not know."""
        annotations = [annotation for item in items for annotation in _annotations(item)]
        missing: set[str] = set()
        for start in range(0, len(annotations), MAX_ANNOTATIONS):
            missing |= await self._write_known(annotations[start : start + MAX_ANNOTATIONS])
        return {item.exchange_id: MissingSpanError(status=NOT_FOUND) for item in items if item.span_id in missing}

    async def test(self) -> None:
        """Check the address and the key by writing an empty list."""
        reply = await self._post([])
        if reply.status == NOT_FOUND:
            raise error_for_status(NOT_FOUND)

    async def _write_known(self, annotations: Sequence[dict[str, Any]]) -> set[str]:
        """Write the annotations of the spans that Phoenix knows, and return the ids of the other spans.

        If a span is unknown, Phoenix names it and writes nothing.
        """
        missing: set[str] = set()
        while known := [annotation for annotation in annotations if annotation["span_id"] not in missing]:
            reply = await self._post(known)
            if reply.status != NOT_FOUND:
                await self._delete_emptied(known, reply.data)
                break
            named = {annotation["span_id"] for annotation in known}.intersection(_SPAN_ID.findall(reply.text))
            if not named:
                raise error_for_status(NOT_FOUND)
            missing |= named
        return missing

    async def _post(self, annotations: Sequence[dict[str, Any]]) -> Reply:
        # Without sync, Phoenix accepts annotations of unknown spans, but keeps them in memory only.
        return await self.client.request(
            "POST",
            f"{self._settings.url.rstrip('/')}/v1/span_annotations",
            headers=self.headers(),
            params={"sync": "true"},
            body={"data": annotations},
            accept=(NOT_FOUND,),
        )

    async def _delete_emptied(self, annotations: Sequence[dict[str, Any]], data: Any) -> None:
        """Delete the superseded annotations. If Phoenix does not allow it, they remain, without a value."""
        written = data.get("data") if isinstance(data, dict) else None
        pairs = zip(annotations, written if isinstance(written, list) else (), strict=False)
        ids = [each["id"] for sent, each in pairs if sent["result"] is None and isinstance(each, dict) and "id" in each]
        if ids:
            url = f"{self._settings.url.rstrip('/')}/graphql"
            body = {"query": _DELETE, "variables": {"ids": list(dict.fromkeys(ids))}}
            with suppress(DeliveryError):
                await self.client.request("POST", url, headers=self.headers(), body=body)


def _annotations(item: SinkItem) -> Iterator[dict[str, Any]]:
    for assessment in assessments(item):
        yield _annotation(item, assessment, assessment.key, is_emptied=False)
        for key in assessment.superseded:
            yield _annotation(item, assessment, key, is_emptied=True)


def _annotation(item: SinkItem, assessment: Assessment, key: str, *, is_emptied: bool) -> dict[str, Any]:
    result = {"score": assessment.value, "label": assessment.label, "explanation": assessment.explanation}
    return {
        "span_id": item.span_id,
        "name": assessment.name,
        "annotator_kind": assessment.annotator,
        "identifier": f"germane:{key}",
        "result": None if is_emptied else result,
        "metadata": {} if is_emptied else dict(assessment.metadata),
    }
