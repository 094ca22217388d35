"""Names of attributes, events and instruments.

germane uses two conventions in parallel: OpenInference (``openinference.*``, ``input.*``, ``output.*``,
``retrieval.*``, ``evaluations.*``) and OpenTelemetry's GenAI semantic conventions (``gen_ai.*``, status Development).
No package contains the newest names of both, so they are defined here. Names that begin with ``germane.`` are specific
to germane.
"""

from __future__ import annotations

SCOPE = "germane"

# OpenInference
SPAN_KIND = "openinference.span.kind"
CHAIN = "CHAIN"
RETRIEVER = "RETRIEVER"
EVALUATOR = "EVALUATOR"
INPUT_VALUE = "input.value"
INPUT_MIME_TYPE = "input.mime_type"
OUTPUT_VALUE = "output.value"
OUTPUT_MIME_TYPE = "output.mime_type"
TEXT_PLAIN = "text/plain"
SESSION_ID = "session.id"
USER_ID = "user.id"
DOCUMENT = "retrieval.documents.{}.document."
EVALUATION = "evaluations.{}.evaluation."

# GenAI semantic conventions
OPERATION_NAME = "gen_ai.operation.name"
INVOKE_WORKFLOW = "invoke_workflow"
RETRIEVAL = "retrieval"
EVALUATION_OPERATION = "evaluation"
WORKFLOW_NAME = "gen_ai.workflow.name"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
CONVERSATION_ID = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
DATA_SOURCE_ID = "gen_ai.data_source.id"
RETRIEVAL_QUERY = "gen_ai.retrieval.query.text"
RETRIEVAL_DOCUMENTS = "gen_ai.retrieval.documents"
EVALUATION_EVENT = "gen_ai.evaluation.result"
EVALUATION_NAME = "gen_ai.evaluation.name"
EVALUATION_SCORE_VALUE = "gen_ai.evaluation.score.value"
EVALUATION_SCORE_LABEL = "gen_ai.evaluation.score.label"
EVALUATION_EXPLANATION = "gen_ai.evaluation.explanation"
# Not in the conventions yet. Logfire groups its rows by the target; the names are those of pydantic-evals.
EVALUATION_TARGET = "gen_ai.evaluation.target"
EVALUATOR_SOURCE = "gen_ai.evaluation.evaluator.source"
EVALUATOR_VERSION = "gen_ai.evaluation.evaluator.version"
ERROR_TYPE = "error.type"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 - refers to a model's tokens

# Specific to germane
EXCHANGE_ID = "germane.exchange.id"
PROMPT_VERSION = "germane.prompt_version"
CAPTURE_ERROR = "germane.capture.error"
ABANDONED = "germane.abandoned"
CANCELLED = "germane.cancelled"
SCORE_ATTRIBUTE = "germane.evaluation."
SAMPLING_PROBABILITY = "germane.sampling_probability"
SCORE_HISTOGRAM = "germane.evaluation.score"
DURATION_HISTOGRAM = "germane.evaluation.duration"
RUNS_COUNTER = "germane.evaluation.runs"
CAPTURE_COUNTER = "germane.capture.exchanges"
RECEIVE_COUNTER = "germane.receive.spans"
FORWARD_COUNTER = "germane.receive.forwarded_requests"
LATE_COUNTER = "germane.watch.late_spans"
WATCH_COUNTER = "germane.watch.traces"
CAPTURE_DEPTH = "germane.capture.queue.depth"
QUEUE_DEPTH = "germane.evaluation.queue.depth"
LAG = "germane.evaluation.lag"
TOKENS_COUNTER = "germane.evaluation.tokens"
COST_COUNTER = "germane.evaluation.cost"
WORKERS = "germane.evaluation.workers"
BUDGET = "germane.evaluation.budget.used"
OUTCOME = "outcome"
REASON = "reason"
STATE = "state"
SCOPE_NAME = "otel.scope.name"
LIMIT = "limit"
SCORE_BUCKETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
DURATION_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
