"""The commit job: gates, staleness, re-execution."""
