"""Repetition and definition levels: built, joined, unravelled."""
