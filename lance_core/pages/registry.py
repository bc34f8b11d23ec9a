"""One literal table from layout to page reader, and the door through which every page is read and written.

Reading (sans-IO; drive with `fetch.run_fetch` or `io.drive`)::

    index = yield from load(page)                       chunk table, repetition index, dictionary; immutable, cacheable
    leaf  = yield from read(page, index, rows)          rows: RowSelection within the page
    leaf  = yield from scan(page)                       load + read of every row in one round, one range per buffer

`read` asks once (mini-block, constant) or at most twice (full-zip of variable width: row index entries, then rows). A
reader that wants nothing yields nothing. Errors are CorruptFileError / UnsupportedEncodingError without the file's name;
the caller adds file, column and page.

Writing::

    levels = repdef.build_levels(nesting, num_rows)     levels, layers and which value slots are visible
    leaf   = Leaf(values_of_visible_slots, levels.rep, levels.def_, levels.layers, num_rows)
    pages  = encode_pages(leaf, options)                list of EncodedPage(layout, buffers, num_rows)

Usually one page comes back; leaves with lists are split so that the levels of a page stay within budget (FORMAT B.3), and
the caller numbers them (priority) in order. Buffers need no padding: the file aligns them.
"""

from __future__ import annotations
