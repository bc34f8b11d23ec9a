"""Stores of bytes. All other packages use a `Store`; this package does not interpret the bytes."""
