from .factory import build_sinks as build_sinks
from .sink import MISSING_SPAN as MISSING_SPAN
from .sink import Sink as Sink
from .target import SINK_BACKOFF as SINK_BACKOFF
from .target import SinkTarget as SinkTarget
