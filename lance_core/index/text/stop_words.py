"""Words that are left out of an index, by language, as the official tokenizer leaves them out.

::

    stop_words_of("English")  ->  {"a", "about", "above", ...}
"""

from __future__ import annotations

from functools import cache

from lance_core.errors import UnsupportedFeatureError

_WORDS = {
    "English": (
        "a about above after again against all am an and any are as at be because been before being below between both but "
        "by can did do does doing down during each few for from further had has have having he he'd he'll he's her here "
        "hers herself him himself his how i i'd i'll i'm i've if in into is it it'd it'll it's its itself just me more most "
        "my myself now of off on once only or other our ours ourselves out over own re same she she'd she'll she's should "
        "should've so some such than that that'll the their theirs them themselves then there these they they'd they'll "
        "they're they've this those through to too under until up very was we we'd we'll we're we've were what when where "
        "which while who whom why will with you you'd you'll you're you've your yours yourself yourselves"
    ),
}  # fmt: skip


@cache
def stop_words_of(language: str) -> frozenset[str]:
    """The built-in list. Raises UnsupportedFeatureError for a language whose list is not here."""
    if language not in _WORDS:
        raise UnsupportedFeatureError(
            f"the stop words of {language} are not built in; there are those of {', '.join(_WORDS)}",
            cure="Pass remove_stop_words=False, or custom_stop_words=[...].",
        )
    return frozenset(_WORDS[language].split())
