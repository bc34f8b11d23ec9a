"""Names for versions: tags, branches, and the clones that read our files."""
