"""The list of versions: history, cleanup, clone, restore."""
