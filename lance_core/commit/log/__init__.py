"""Versions and manifests, and the loop that publishes one."""
