"""Full text indices: words, the documents that have them, and how well each fits."""
