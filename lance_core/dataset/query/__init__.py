"""Queries: scanner, vector search, full-text search, SQL, change feed."""
