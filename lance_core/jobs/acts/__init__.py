"""Jobs that take effect at once."""
