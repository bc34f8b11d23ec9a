"""Indices: one file per kind. An index sees values, row ids and its own folder; never a table, a manifest or a commit."""
