"""What a user asks: scanner, vector search, full-text search, SQL, change feed."""
