"""Stop words by language, as in the official tokenizer.

::

    stop_words_of("German")  ->  {"aber", "alle", "allem", ...}        words/german.txt, one a line, # begins a comment

The lists are none of those in circulation, so they were found by asking: half a million candidates (public lists, frequent
words of all languages) were indexed by the official library, and those it left out are these.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from lance_core.errors import UnsupportedFeatureError


@cache
def stop_words_of(language: str) -> frozenset[str]:
    """The built-in list. Raises UnsupportedFeatureError for a language that has none."""
    place = files("lance_core.index.text").joinpath("words").joinpath(f"{language.lower()}.txt")
    if not language.isalpha() or not place.is_file():
        raise UnsupportedFeatureError(
            f"no stop words are known for {language}", cure="Pass remove_stop_words=False, or custom_stop_words=[...]."
        )
    lines = place.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))
