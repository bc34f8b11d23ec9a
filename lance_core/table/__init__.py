"""What an edit of a table means: operations, the manifest they lead to, and how concurrent edits are judged. No IO."""
