"""The `lance` command: work with tables from a shell, or from a script with `--json`."""
