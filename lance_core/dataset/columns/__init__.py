"""Schema evolution: new, dropped, altered and joined columns."""
