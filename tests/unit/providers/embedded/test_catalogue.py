"""The catalogue of local models and where the cache is."""

from pathlib import Path

import pytest

from hermes.errors import ModelError
from hermes.providers.embedded import (
    CATALOGUE,
    DEFAULT,
    KnownModel,
    build_model,
    models_folder,
    offer,
)
from hermes.providers.local_model import display_name


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=CATALOGUE.keys())
def test_an_entry_is_complete(entry: KnownModel) -> None:
    assert len(entry.sha256) == 64
    assert int(entry.sha256, 16)
    assert entry.size > 50_000_000
    assert entry.licence == "Apache-2.0"
    offered = offer(entry, Path("/nowhere"))
    assert offered.details[0].startswith("https://")
    assert entry.sha256 in "\n".join(offered.details)
    if entry.wheels is not None:
        assert entry.wheels.packages
        assert entry.wheels.version in offered.details[1]


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=CATALOGUE.keys())
def test_a_question_names_no_address_package_or_hash(entry: KnownModel) -> None:
    question = offer(entry, Path("/nowhere")).question
    assert entry.description in question
    assert "Hugging Face" in question
    assert "://" not in question
    assert entry.sha256[:8] not in question
    if entry.wheels is not None:
        assert entry.wheels.packages[0] not in question


def test_the_default_can_act_and_nano_can_not() -> None:
    assert CATALOGUE[DEFAULT].acts
    assert not CATALOGUE["nano"].acts


def test_the_cache_is_shared_by_all_homes_and_can_be_moved() -> None:
    home = Path("/home/ann")
    assert models_folder({}, home) == home / ".cache/hermes/models"
    assert models_folder({"XDG_CACHE_HOME": "/c"}, home) == Path("/c/hermes/models")
    assert models_folder({"HERMES_CACHE": "/d", "XDG_CACHE_HOME": "/c"}, home) == Path(
        "/d/models"
    )


def test_a_model_that_is_not_there_says_how_to_get_it() -> None:
    with pytest.raises(ModelError) as error:
        build_model("base", Path("/nowhere"))
    assert "not on this machine yet" in error.value.message
    assert "hermes model add base" in error.value.hint
    with pytest.raises(ModelError, match="no local model 'huge'"):
        build_model("huge", Path("/nowhere"))


@pytest.mark.parametrize(
    "name", ["base", "qwen2.5-coder-1.5b (local)"], ids=["id", "name of its replies"]
)
def test_a_known_model_has_one_name_for_people(name: str) -> None:
    assert display_name(name) == "Qwen2.5 Coder 1.5B Instruct"


def test_a_file_is_named_without_its_folder() -> None:
    assert display_name("/models/own.gguf") == "own.gguf"
