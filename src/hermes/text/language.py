"""Which language a text is in, as far as that is plain: by its script, and for Latin letters by its small words."""

import re
import unicodedata

_LEAST_LETTERS = 20
_LEAST_WORDS = 6  # small words of one language, before it is believed
_SCRIPTS = {
    "CJK": "han",
    "HIRAGANA": "japanese",
    "KATAKANA": "japanese",
    "HANGUL": "korean",
}
_SMALL_WORDS = {
    "english": "the and is are was of to that this with for not you it in be have will can what from on",
    "german": "der die das und ist sind war nicht ein eine mit für auf von zu dass ich wir sie bitte wird auch den dem",
    "french": "le la les et est sont une des pas pour dans que qui avec sur nous vous je il elle ce cette du au",
    "spanish": "el los las y es son una por para con que no del se lo como más este esta pero su al muy",
    "italian": "il gli le è sono una per con che non della di del si come più questo questa ma nel anche ho",
    "portuguese": "o os as é são uma por para com que não do da se como mais este esta mas em no na você",
    "dutch": "de het een en is zijn niet van voor met dat die op te ik wij u ook maar naar wordt bij",
}


def language_of(text: str) -> str:
    """A name for the language, the same for the same one; empty when the text does not tell."""
    script = _script(text)
    return script if script != "latin" else _by_small_words(text)


def _script(text: str) -> str:
    """The script that most letters belong to. Japanese is what has kana, whatever else it has."""
    counts: dict[str, int] = {}
    for letter in filter(str.isalpha, text[:20_000]):
        kind = "latin" if letter.isascii() else unicodedata.name(letter, "?").split()[0]
        kind = _SCRIPTS.get(kind, kind.lower())
        counts[kind] = counts.get(kind, 0) + (
            1 if kind in ("latin", "cyrillic", "greek") else 3
        )
    if counts.get("japanese", 0) * 5 > counts.get("han", 0):
        counts["japanese"] = counts.get("japanese", 0) + counts.pop("han", 0)
    best = max(counts, key=lambda kind: counts[kind], default="")
    return (
        best
        if best
        and sum(counts.values()) >= _LEAST_LETTERS
        and counts[best] * 2 > sum(counts.values())
        else ""
    )


def _by_small_words(text: str) -> str:
    words = re.findall(r"[^\W\d_]+", text[:20_000].lower())
    counts = {
        name: sum(word in small for word in words)
        for name, small in _small_words().items()
    }
    best, second = sorted(counts, key=lambda name: -counts[name])[:2]
    plain = counts[best] >= _LEAST_WORDS and counts[best] >= 1.5 * counts[second]
    return best if plain else ""


def _small_words() -> dict[str, frozenset[str]]:
    return {name: frozenset(words.split()) for name, words in _SMALL_WORDS.items()}
