"""Who is at work and what has landed: attempts, claims, ledger."""
