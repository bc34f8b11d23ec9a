"""Compare a vector index with the rows it covers."""
