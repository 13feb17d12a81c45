"""The language of a text, where it is plain; nothing where it is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.text.language import language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (
            "Please build me a boat that floats, and it is not to be too expensive for the children.",
            "english",
        ),
        (
            "Bitte bau mir ein Boot, das schwimmt, und es ist nicht zu teuer für die Kinder, mit dem Kiel auf Holz.",
            "german",
        ),
        (
            "Le bateau est dans le port et la quille est pour les enfants, avec une voile que nous avons.",
            "french",
        ),
        (
            "El barco es para los niños y no es muy caro, con una vela que se pone en las noches.",
            "spanish",
        ),
        ("请帮我造一艘能漂浮的船，不要太贵，龙骨在侧面。谢谢你的帮助。", "han"),
        (
            "船を作ってください。高すぎないようにしてください。キールは横です。",
            "japanese",
        ),
        ("배를 만들어 주세요. 너무 비싸지 않게 해 주세요.", "korean"),
        ("Построй мне лодку, которая не тонет, и недорого.", "cyrillic"),
        ("fix src/main.py TypeError int str", ""),
        ("ok", ""),
        ("", ""),
    ],
)
def test_it_is_told_by_script_and_small_words(text: str, language: str) -> None:
    assert language_of(text) == language


@given(st.text(max_size=200))
def test_any_text_is_taken(text: str) -> None:
    assert isinstance(language_of(text), str)
