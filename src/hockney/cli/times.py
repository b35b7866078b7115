"""Points in time, for people."""

from __future__ import annotations

import time


def local_time(unix_s: float) -> str:
    """`2026-03-01 14:05`, in the local time zone."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(unix_s))
