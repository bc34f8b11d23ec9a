"""Stores: where bytes live. Everything above asks a `Store`; nothing here knows what the bytes mean."""
