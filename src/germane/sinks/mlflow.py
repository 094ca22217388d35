"""MLflow: scores and labels as assessments of traces."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from germane.delivery import DeliveryError
from germane.settings import MLflowSettings, resolve_secret
from germane.sinks.assessment import Assessment, assessments
from germane.sinks.client import Reply, error_for_status
from germane.sinks.sink import MissingSpanError, Sink
from germane.storage import SinkItem

FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
_TRACES: Final = "/api/3.0/mlflow/traces"
_SOURCE_TYPES: Final = {"LLM": "LLM_JUDGE", "CODE": "CODE", "HUMAN": "HUMAN"}
Stored = Mapping[str, Any]
"""An assessment in MLflow."""


class MLflowSink(Sink):
    """Writes assessments.

    MLflow stores another assessment whenever one is written. Therefore, those of all exchanges are read first, and one
    of the same span, name and source is updated.
    """

    batch_size = 50

    _settings: MLflowSettings

    def headers(self) -> dict[str, str]:
        """Return the header with the token or the password, if one is configured."""
        token, user, password = self._settings.token, self._settings.user, self._settings.password
        if token is not None:
            return {"Authorization": f"Bearer {resolve_secret(token)}"}
        if user is None or password is None:
            return {}
        basic = b64encode(f"{user}:{resolve_secret(password)}".encode()).decode()
        return {"Authorization": f"Basic {basic}"}

    async def write(self, items: Sequence[SinkItem]) -> Mapping[str, DeliveryError]:
        """Write scores and labels, and return an error for each exchange whose trace MLflow does not know."""
        traces = await self._read(list(dict.fromkeys(f"tr-{item.trace_id}" for item in items)))
        errors: dict[str, DeliveryError] = {}
        for item in items:
            stored = traces[f"tr-{item.trace_id}"]
            if isinstance(stored, DeliveryError):
                errors[item.exchange_id] = stored
                continue
            try:
                for assessment in assessments(item):
                    await self._put(item, assessment, stored)
            except MissingSpanError as error:
                errors[item.exchange_id] = error
        return errors

    async def test(self) -> None:
        """Check the address and the credentials by reading an experiment."""
        await self._request("POST", "/api/2.0/mlflow/experiments/search", {"max_results": 1})

    async def _read(self, trace_ids: Sequence[str]) -> dict[str, list[Stored] | DeliveryError]:
        """Return the assessments of each trace, or the reason why there are none."""
        found: dict[str, list[Stored] | DeliveryError] = {id_: MissingSpanError(status=NOT_FOUND) for id_ in trace_ids}
        alone = (FORBIDDEN, NOT_FOUND)
        reply = await self._request("POST", f"{_TRACES}/batchGetInfos", {"trace_ids": trace_ids}, accept=alone)
        if reply.status not in alone:
            traces = _objects(_get(reply.data, "trace_infos"))
            return found | {str(trace.get("trace_id")): _objects(trace.get("assessments")) for trace in traces}
        # With basic-auth, MLflow forbids to read a trace that it does not know, and all traces of the same request.
        for trace_id in trace_ids:
            with suppress(MissingSpanError):
                reply = await self._request("GET", f"{_TRACES}/{trace_id}", accept=(FORBIDDEN,))
                found[trace_id] = _objects(_get(reply.data, "trace", "trace_info", "assessments"))
                if reply.status == FORBIDDEN:
                    problem = "status 403: MLflow does not know the trace, or does not allow to read it"
                    found[trace_id] = DeliveryError(problem, status=FORBIDDEN)
        return found

    async def _put(self, item: SinkItem, assessment: Assessment, stored: list[Stored]) -> None:
        """Write an assessment, and delete superseded and repeated ones."""
        path = f"{_TRACES}/tr-{item.trace_id}/assessments"
        ids = {"trace_id": f"tr-{item.trace_id}", "span_id": item.span_id, "assessment_name": assessment.name}
        ours = [one for one in stored if all(one.get(name) == value for name, value in ids.items())]
        same = [one for one in ours if _get(one, "source", "source_id") == f"germane/{assessment.key}"]
        old = {f"germane/{key}" for key in assessment.superseded}
        superseded = [one for one in ours if _get(one, "source", "source_id") in old]
        content: dict[str, Any] = {
            "feedback": {"value": assessment.value},
            "rationale": assessment.explanation or "",
            # If any of these is not a string, MLflow ignores it and all fields after it, such as the span's id.
            # An update keeps what it does not mention, such as the label of an earlier score.
            "metadata": {**assessment.metadata, "label": assessment.label or ""},
        }
        if not same:
            source = {"source_type": _SOURCE_TYPES[assessment.annotator], "source_id": f"germane/{assessment.key}"}
            reply = await self._request("POST", path, {"assessment": {**ids, "source": source, **content}})
            stored += _objects([_get(reply.data, "assessment")])
        elif any(same[0].get(name) != value for name, value in content.items()):
            body = {"assessment": content, "update_mask": ",".join(content)}
            await self._request("PATCH", f"{path}/{same[0].get('assessment_id')}", body)
        for one in (*same[1:], *superseded):
            await self._request("DELETE", f"{path}/{one.get('assessment_id')}")

    async def _request(self, method: str, path: str, body: Any = None, *, accept: Sequence[int] = ()) -> Reply:
        """Send a request.

        Raises:
            MissingSpanError: MLflow does not know the trace, or the assessment has been deleted in the meantime.
        """
        url, accepted = f"{self._settings.url.rstrip('/')}{path}", (*accept, NOT_FOUND)
        reply = await self.client.request(method, url, headers=self.headers(), body=body, accept=accepted)
        if reply.status == NOT_FOUND and NOT_FOUND not in accept:
            if _get(reply.data, "error_code") == "RESOURCE_DOES_NOT_EXIST":
                raise MissingSpanError(status=NOT_FOUND)
            raise error_for_status(NOT_FOUND)
        return reply


def _get(data: Any, *names: str) -> Any:
    """Return a nested field of a response; None if it is missing."""
    for name in names:
        data = data.get(name) if isinstance(data, Mapping) else None
    return data


def _objects(data: Any) -> list[Stored]:
    """Return the objects in a list of a response."""
    return [each for each in data if isinstance(each, Mapping)] if isinstance(data, list) else []
