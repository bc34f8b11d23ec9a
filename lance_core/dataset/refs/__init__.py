"""Tags, branches, and the clones that read the table's files."""
