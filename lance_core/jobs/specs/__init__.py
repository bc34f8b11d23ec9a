"""Job specs: frozen dataclasses, JSON in and out, standard library only."""
