"""Which characters make words: a letter or a number in the sense of Unicode, as the official tokenizer has it.

::

    classes_of_words()[ord("a")]  ->  1        [ord("-")]  ->  0        [0x0ADE]  ->  1

The table is kept here rather than asked of Python, whose `str.isalnum` knows fewer alphabetic marks and differs by version.
It is the steps between the starts and ends of ranges (LEB128), deflated, base64.
"""

from __future__ import annotations

import base64
import zlib
from functools import cache
from typing import Any

import numpy as np

_POINTS = 0x110000
_STEPS = (
    "eNplVE2MFEUUzvfq1U9Xd0/PT+/OzuzszOwPsz+zv+yyy64G1l1AEaJG4iIeTDgAiZKowRsXD0QOikdNNOGghoOJCZ4MNzSAicrBRDh4IiZ6kX"
    "Ay3Ex8NQMmxO6uqq6qV6++97733qK3dVNfgCVAERSqaOFHxUlBWwA7GCmDiAEj+7KQ4xg+gLsCdAhmerIgayQv3DDzSKz3osSn4dhxkVBcTE8V"
    "upEc10NUqdRsrIdgLdyMT5Q1R1GE4ow8KnBENAi5UrEK/0EjmKApIUNgBcN9iXAbsZaZ6LWCzBZjhUjQ9Xe1Cv+kkDH5iOXkY91hr6dbEAXNHt"
    "aLEUqJegp2KFJKJaxlRT6DQpqmPZcUlZNRDgfNctg7C4br7fmgtb+rRZNoVUk4NU29VUAXqSLKFMpqSHCCrBNnwhlPlG5oa0B+MtyvMSR9RXjQ"
    "wd/kidto5YnDBFe4iIntNTmdmReoE4Spi9viGQo8MU1LG/1vlmFd+u1CrorFHTLqPlMJdX1ExTaPB5K8h5CSFaoUxBDljR/05oTt6kO+hYSjdI"
    "p0PMt1E+9q8H7KY5FIUaVYLa0gg1O+M0MbiAtrkVdLFOsuqWkOoBX0dVTG4o9JeOtIc+g/LdrT41fBKibDqXjLnhMpHZv0lKAQz0Fp05dmxEKy"
    "Fno37uqn688/5OZ994cEgaIIj+zfa1GsRhZPvu0F3FGqFllNmneMwmtg3cXrin17sdj2TYes7Sez63R9efPS19iep0ukGvmCduqdyYjO0Mv5AE"
    "aFnpXkAOD9kOjAvB5PR9Qykiw2LaxFBfKmqg4GqEOKisSxEVtND00XBXNee/Pl8aTKSxe2HhC90bGJ1glSwd1PmLOjf1F5k1anknc1LqLSy8P4"
    "hOqpITWeoC6hQMioMHY+mUvWS/Q3RtRScZgnoqbu6iZNsIOeuSyOMxM8wVNuJYmFnBDoj0a1knxL0aB3QwYziA5KJmE2cERValHHRYtyhR4Vnu"
    "udvZzTbpmFqB3xUbWFdtuhYXRx1Q/SsK5X7UuH15bTZTvvvOkIz9XfpFbMhLQpmt1KTbnBmIfL8428Gh1KmtB+PUJas94sK8/sxiVLNyGxJezm"
    "cRljknu8rxevgtbbdZHk/ydrSERtGz64DR30Rw5GiC1bApa116q51SsZ/gpWydbM2P5QrmLfWSVJcpM3hqmgE7bXsH7mWCJ5LGFJaCJcwKk/5G"
    "ieQuTR8DL50nMa5cNn3KujmTcR5kLYZiPi8EEUDgdksyqACB2JKyTosUtaKEXezLJ/iGpUwrRSmd9BNtD91J5+q3QDP+cns6uuZGqftfQPfG3P"
    "Avyt9BrbFrx5UVqzvFjkRIoSBnTlqppT/haORzWqzR7hdVvaFPsSG91dn26fPPfPNvd89IVk+ogUrwK7D9WF8ps6VZH1jF/a/lacJ/nZ2kW8gm"
    "cFKHr1MhEbLZ6R2uBkbAhmiUdl8StRDTWh88nmaPd7hZYxd0S4RD1S9L5RvD3nLckt31GzLPbeVQ3p0KT4ppwadHQPoTxK7OImKFo8EMog+0/M"
    "U2E8Oofse9keDjzK54PjQr3jfuarR+uPnzDjnsIg4FGSuqFRusHpuIStqf+Z+/fdvdvUvjxGH83RNxvZA/68cpl/j3/q6K+2/gU8Eowg"
)


@cache
def classes_of_words() -> Any:
    """uint8 by code point: 1 for letters and numbers."""
    edges, value, shift, at = [], 0, 0, 0
    for byte in zlib.decompress(base64.b64decode(_STEPS)):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            at += value
            edges.append(at)
            value = shift = 0
    return _between(edges)


@cache
def classes_of_anything() -> Any:
    """uint8 by code point: 1 for all but the white space of ASCII."""
    classes = np.ones(_POINTS, np.uint8)
    classes[[9, 10, 12, 13, 32]] = 0
    classes.flags.writeable = False
    return classes


def _between(edges: list[int]) -> Any:
    classes = np.zeros(_POINTS, np.uint8)
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        classes[start:end] = 1
    classes.flags.writeable = False
    return classes
