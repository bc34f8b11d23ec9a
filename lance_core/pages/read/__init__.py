"""Readers of pages, one file per structural encoding."""
