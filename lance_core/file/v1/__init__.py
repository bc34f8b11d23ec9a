"""Legacy (0.1) files: pages of plain Arrow-like bytes, one per field and batch, found through one table of positions."""
