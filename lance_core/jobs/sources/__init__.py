"""Rows of a source without Spark."""
