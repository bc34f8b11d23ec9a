"""Full-text indices: words, the documents that contain them, and their scores."""
