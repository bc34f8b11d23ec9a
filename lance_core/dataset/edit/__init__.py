"""Row edits: insert, delete, update, merge, replace; configuration."""
