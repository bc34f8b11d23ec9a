"""Row identity in memory: bitmaps, id sequences, version sequences, deletion vectors, the index from ids to addresses."""
