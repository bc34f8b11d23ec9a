"""The semantics of edits: operations, the manifests that they produce, and the conflicts of concurrent edits. No IO."""
