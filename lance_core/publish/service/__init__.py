"""Many staged transactions, published exactly once."""
