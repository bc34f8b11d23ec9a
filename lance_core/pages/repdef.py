"""The one place for repetition and definition levels: Arrow's nesting <-> levels (FORMAT A.5 "Levels and layers").

A column's nesting is a list of steps from the outermost inwards, ending with the leaf item::

    list<struct<x: int32>>   ->  [ListStep(offsets, validity), StructStep(validity), ItemStep(validity)]

    build_levels(steps, num_rows)          -> LevelsAndLayers     for writing
    unravel(leaf levels, steps' shape)     -> per step validity and offsets, for reading
    join(leaves)                           -> one leaf's levels from several pages whose layers differ
"""

from __future__ import annotations
