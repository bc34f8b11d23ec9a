"""Compaction, validation, statistics, facts for monitors."""
