"""The Lance table and file format in Python."""
