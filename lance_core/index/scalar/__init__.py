"""Indices over values that are compared, looked up or summarised."""
