"""The translations are compiled when a wheel is built: the repository has only the `.po` files."""

import gettext
import io
import zipfile
from pathlib import Path

from tests.fakes.hermes_wheels import built_wheel

from hermes.text.translation import LANGUAGES


def test_a_wheel_has_every_language_compiled(tmp_path: Path) -> None:
    with zipfile.ZipFile(built_wheel(tmp_path)) as wheel:
        for language in LANGUAGES.keys() - {"en"}:
            content = wheel.read(f"hermes/locales/{language}.mo")
            found = gettext.GNUTranslations(io.BytesIO(content))
            sentence = "A turn of this session is running."
            assert found.pgettext("app.agent", sentence) != sentence
