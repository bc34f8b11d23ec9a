"""Stores on a local disk."""
