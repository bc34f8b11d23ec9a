"""The format's nouns as frozen dataclasses, standard library only: no bytes, no IO, no numpy."""
