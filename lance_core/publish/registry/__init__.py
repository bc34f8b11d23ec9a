"""Records of running and of landed work: attempts, claims, ledger."""
