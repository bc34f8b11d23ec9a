"""Build, verify, maintain and search the index segments of a table."""
