"""How vectors are coded in a partition: flat, scalar, product, RaBitQ."""
