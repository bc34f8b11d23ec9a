"""What a job in another process says first. Standard library only.

::

    lance-child {"protocol": 1, "version": "0.3.0"}
"""

from __future__ import annotations

GREETING = "lance-child "
PROTOCOL = 1
"""Changes when a spec, or how its result is found, means something else than before."""
