"""Repetition and definition levels: Arrow's nesting <-> levels (FORMAT A.5 "Levels and layers").

A column's nesting is a list of steps from the outermost inwards, ending with the leaf item::

    list<struct<x: int32>>   ->  [ListStep(offsets, validity), ItemStep(validity), ItemStep(validity)]

    build_levels(steps, num_rows)  -> BuiltLevels      for writing: rep, def_, layers, which leaf slots are visible
    unravel(levels, dimensions)    -> [Nesting, ...]   for reading: per step validity and offsets, outermost first
    join_levels(leaves)            -> JoinedLevels     levels of several pages, whose layers may differ, as one

How levels count (the opposite direction from Parquet)::

    rep   0 continues the innermost list, k begins a new list at the k-th list from the inside, the maximum begins a row
    def_  0 is a valid item; the layers take numbers from the innermost outwards: a nullable one takes one, an emptyable
          list one, a list that is both takes two (null, then empty)
"""
