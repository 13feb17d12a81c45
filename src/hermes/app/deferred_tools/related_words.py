"""Related words, for requests that name a thing differently than a tool does, and words that say nothing about a
tool.

Each line is a group of related words. A word of a request counts a little for every other word of its groups.
"""

import re
from functools import cache

from hermes.primitives.lazy_pattern import lazy_pattern

_IGNORED = """
a about all also an and any are as at based be been being between but by can could did do does during each find for
from get getting give given got had has have he help her him his how i if in into is it its just let like many me more
most much my need no not of on or our out over place please provide provided she should so some take tell than that
the their them then there these they this those to up us use used using want was we were what when where which who
whom whose why will with within would yes you your
"""
STOP_WORDS = frozenset(_IGNORED.split())

_GROUPS = """
currency money dollar usd euro eur yen pound sterling cad rupee yuan peso exchange
convert conversion ounce pound gram kilogram kg liter cup tablespoon teaspoon mile kilometer unit measurement
monarch king queen emperor ruler leader reign
history historical war battle treaty revolution event century ancient
religion religious christianity buddhism islam hinduism church god faith
weather forecast temperature rain snow humidity wind sunny climate
restaurant cuisine food dining eat dinner lunch meal
nutrition calorie protein carb fat vitamin
recipe cook bake dish ingredient
movie film cinema show theater
movie film actor actress starring star cast director directed genre comedy drama watch funny
music song track album playlist artist
music song track tune listen hear play playback
volume loud quiet mute audio
alarm reminder remind notification alert timer
clean cleaning cleaner housekeeper maid housekeeping
event concert play activity attraction
advice guidance recommend suggestion tip
web internet online search news
contact address phone
flight plane airline airport fly
hotel room accommodation stay lodging
route direction navigation distance drive map travel
ride taxi uber cab car
ticket issue bug task story
translate translation language english french spanish german chinese
sort arrange order ascend descend smallest largest
sum add plus total
multiply product times
subtract minus difference
todo remember remind reminder task
command shell terminal powershell docker kill drive dir
repository repo codebase project
pull merge pr mr review diff
branch commit git
message chat dm slack text channel
email mail inbox gmail
calendar meeting appointment schedule event
file document doc attachment
folder directory path
delete remove drop erase discard
create add new make insert
update edit modify change set rename
search find lookup query locate
list show browse enumerate
send post publish deliver share
buy purchase order shop cart
price cost fee worth value
stock share equity ticker company
user person member account customer
picture image photo screenshot
page website url web link browser
database table sql row record
run execute start launch invoke
log error exception trace
probability odds chance likelihood
player athlete team game match score sport
court case lawsuit legal law judge
crime criminal felony police
book novel author library
"""

_SUFFIXES = (
    ("ational", "ate"),
    ("ization", "ize"),
    ("fulness", "ful"),
    ("iveness", "ive"),
    ("ations", "at"),
    ("ation", "at"),
    ("ators", "at"),
    ("ator", "at"),
    ("ities", "ity"),
    ("ies", "y"),
    ("sses", "ss"),
    ("ments", "ment"),
    ("ings", "ing"),
)
_ENDINGS = ("ing", "ed", "er", "or", "ment", "ion", "al", "ly", "ive", "ity")
_MIN_STEM_LETTERS = 3


def stem(word: str) -> str:
    """Returns the stem of an English word: `repositories` and `repository` have the same. Other words stay as they are."""
    if len(word) <= _MIN_STEM_LETTERS or not (word.isascii() and word.isalpha()):
        return word
    word = _without_ending(_singular(word))
    if len(word) > _MIN_STEM_LETTERS and word.endswith("e"):
        word = word[:-1]
    if len(word) > _MIN_STEM_LETTERS and word.endswith("y"):
        word = word[:-1] + "i"
    return word


def _singular(word: str) -> str:
    for suffix, short in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _MIN_STEM_LETTERS:
            return word[: -len(suffix)] + short
    is_plural = word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if is_plural else word


def _without_ending(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM_LETTERS:
            word = word[: -len(ending)]
            is_doubled = len(word) > _MIN_STEM_LETTERS and word[-1] == word[-2]
            if is_doubled and word[-1] not in "lsz":
                return word[:-1]
            return word
    return word


@cache
def related_stems() -> dict[str, frozenset[str]]:
    """Returns the stems that are related to each stem."""
    found: dict[str, set[str]] = {}
    for line in _GROUPS.strip().splitlines():
        group = {stem(word) for word in line.split()}
        for one in group:
            found.setdefault(one, set()).update(group - {one})
    return {one: frozenset(others) for one, others in found.items()}


_CUES = (
    (lazy_pattern(r"https?://|\bwww\.", re.IGNORECASE), ("url", "http")),
    (lazy_pattern(r"[^\s@]@[^\s@]{1,253}\.\w"), ("email",)),
    (
        lazy_pattern(r"\w-*+\.(?:txt|csv|json|pdf|png|jpe?g|exe|py|md)\b"),
        ("file",),
    ),
    (lazy_pattern(r"[$€£¥]\s?\d"), ("price", "amount")),
    (lazy_pattern(r"\d\s*[*×]\s*\d"), ("multiply", "product")),
    (lazy_pattern(r"\d\s*\+\s*\d"), ("sum", "add")),
    (
        lazy_pattern(
            r"\b(?:19|20)\d\d\b|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b"
            r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:today|tomorrow|yesterday)\b",
            re.IGNORECASE,
        ),
        ("date",),
    ),
)
"""Values in a request, and what a tool calls the argument that takes them."""


def cue_stems(request: str) -> list[str]:
    """The stems of arguments for which a request has a value, such as `date` for a weekday."""
    return [
        stem(word)
        for pattern, words in _CUES
        if pattern.search(request)
        for word in words
    ]
