from .app import create_app as create_app
from .app import create_metrics_app as create_metrics_app
from .auth.hosts import ANY_HOST as ANY_HOST
from .auth.hosts import is_loopback as is_loopback
from .auth.hosts import parse_host as parse_host
from .metrics.exposition import metrics_exposition as metrics_exposition
from .pages.metrics import is_prometheus_installed as is_prometheus_installed
from .pages.metrics import missing_extra as missing_extra
