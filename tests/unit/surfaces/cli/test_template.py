"""The first config.yaml that `hermes config edit` offers."""

import re

from hermes.settings.parse import parse_config
from hermes.settings.setting_keys import all_keys
from hermes.surfaces.cli.editing import template


def test_it_is_valid_as_it_is_and_with_every_mark_removed() -> None:
    assert parse_config(template()) == ({}, [])
    data, problems = parse_config(re.sub(r"(?m)^# ?", "", template()))
    assert problems == []
    assert set(data) == {key.path[0] for key in all_keys()}
