"""One version opened: manifest, fragments, deletion vectors, row ids."""
