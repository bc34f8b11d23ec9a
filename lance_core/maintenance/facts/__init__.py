"""Plain data about tables for pages and reports, gathered from manifests, listings and records."""
