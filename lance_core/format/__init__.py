"""The entities of the format as frozen dataclasses, standard library only: no bytes, no IO, no numpy."""
