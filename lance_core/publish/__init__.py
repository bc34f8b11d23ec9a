"""Exactly once, above the log of a table: attempts, decisions, intents, the ledger, and the commit of staged work."""
