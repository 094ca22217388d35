"""Read models behind the dashboard, reports and the command line: verdict, windows, worst answers, charts."""

from __future__ import annotations
