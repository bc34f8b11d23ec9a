"""Plan and run a scan that needs no index."""
