"""Under CI the property tests draw the same examples every time; by hand they explore. No example has a deadline: machines
that do other things beside would fail it."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("by hand", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "by hand")
