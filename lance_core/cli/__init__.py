"""The `lance` command: what a person, or a script with `--json`, asks of a table."""
