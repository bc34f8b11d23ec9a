"""Lets threads that outlive the main thread use tables.

Python refuses to load `concurrent.futures.thread` once the main thread has ended; Arrow and our own threads need it then.
A program that has not loaded `threading` when it imports this package only looks at it, and need not wait for that.
"""

from __future__ import annotations

import sys

if "threading" in sys.modules:
    import concurrent.futures.thread as _thread  # noqa: F401
