"""Joining a page with the one that lies right before it in the file, without touching a byte of either.

::

    page 0 | word value | word value |    page 1 | word value |    ->    page 0 | word value | word value | word value |

Only full-zip pages whose rows all have one width can be joined so: nothing in them points at anything, so two pages of
one description are one page. A reader then finds any row of a column by arithmetic instead of page by page.
"""

from __future__ import annotations

from dataclasses import replace

from lance_core.format.layout import FullZipLayout, Page
from lance_core.pages.leaf import EncodedPage, max_rep

_MOST_ITEMS = (1 << 32) - 1
"""The description counts items in 32 bits."""


def extended_layout(last: Page, page: EncodedPage) -> FullZipLayout | None:
    """The description of both pages as one, when the bytes of `page` follow those of `last`; None if they stay two."""
    first, second = last.layout, page.layout
    if not (isinstance(first, FullZipLayout) and isinstance(second, FullZipLayout)):
        return None
    if first.bits_per_value is None or first.bits_per_value % 8 or max_rep(first.layers):
        return None
    num_items = first.num_items + second.num_items
    num_visible = first.num_visible_items + second.num_visible_items
    joined = replace(first, num_items=num_items, num_visible_items=num_visible)
    same = replace(second, num_items=num_items, num_visible_items=num_visible) == joined
    return joined if same and num_items <= _MOST_ITEMS else None
