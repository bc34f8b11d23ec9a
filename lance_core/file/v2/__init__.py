"""File versions 2.0 to 2.3: columns read, pages encoded, the container written."""
