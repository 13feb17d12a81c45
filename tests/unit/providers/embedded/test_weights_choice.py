"""Which weights a machine gets, and how fast a download says it is."""

import pytest

from hermes.providers.embedded import CATALOGUE, KnownModel, Progress, known_models
from hermes.providers.embedded.catalogue import HUB, PREFERRED, ModelHub, model_hub
from hermes.providers.embedded.download_progress import SpeedMeter
from hermes.providers.embedded.web_download import HubAnswer
from hermes.providers.embedded.weights_choice import Machine, choose_weights
from hermes.settings.models import LocalModelSettings

GB = 1_000_000_000
ROOMY = Machine(memory_bytes=12 * GB, disk_bytes=100 * GB)


class Hub:
    """Answers for each model, and remembers who was asked about."""

    def __init__(self, default: HubAnswer = "present", **answers: HubAnswer) -> None:
        self._default = default
        self._answers = {name.replace("_", "-"): one for name, one in answers.items()}
        self.asked: list[str] = []

    def __call__(self, entry: KnownModel) -> HubAnswer:
        self.asked.append(entry.id)
        return self._answers.get(entry.id, self._default)


def test_much_memory_and_a_hub_get_the_large_model() -> None:
    hub = Hub()
    choice = choose_weights(ROOMY, hub)
    assert choice.entry is CATALOGUE["qwen3-4b"]
    assert hub.asked == ["qwen3-4b"]
    assert choice.sentence == (
        "Qwen3 4B Instruct (2.5 GB): the best local model for the 12.0 GB of memory that are free."
    )


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        (
            Machine(memory_bytes=8 * GB - 1, disk_bytes=100 * GB),
            "needs 8 GB of free memory",
        ),
        (Machine(memory_bytes=12 * GB, disk_bytes=2 * GB), "the disk has no room for"),
    ],
)
def test_less_memory_or_disk_gets_the_medium_model(machine: Machine, why: str) -> None:
    hub = Hub()
    choice = choose_weights(machine, hub)
    assert choice.entry is CATALOGUE["qwen2.5-1.5b"]
    assert why in choice.reason
    assert hub.asked == ["qwen2.5-1.5b"]


def test_without_a_hub_the_packaged_model_comes_and_the_hub_is_asked_once() -> None:
    hub = Hub("unreachable")
    choice = choose_weights(ROOMY, hub)
    assert choice.entry is CATALOGUE["base"]
    assert not choice.hub_reachable
    assert hub.asked == ["qwen3-4b"]
    assert "the model hub can't be reached" in choice.sentence


def test_a_file_that_the_hub_lost_is_not_chosen() -> None:
    choice = choose_weights(ROOMY, Hub(qwen3_4b="absent"))
    assert choice.entry is CATALOGUE["qwen2.5-1.5b"]
    assert "no longer has Qwen3 4B Instruct" in choice.reason
    assert choose_weights(ROOMY, Hub("absent")).entry is CATALOGUE["base"]


def test_a_download_that_was_begun_is_finished_even_with_less_memory() -> None:
    machine = Machine(
        memory_bytes=6 * GB, disk_bytes=2 * GB, kept={"qwen3-4b": 900_000_000}
    )
    choice = choose_weights(machine, Hub())
    assert choice.entry is CATALOGUE["qwen3-4b"]
    assert choice.reason == "900 MB of it are here already"


def test_every_preferred_model_can_act_and_the_last_need_no_hub() -> None:
    assert all(CATALOGUE[name].acts for name in PREFERRED)
    assert [name for name in PREFERRED if CATALOGUE[name].wheels] == ["base", "small"]


def test_the_hub_can_be_a_mirror() -> None:
    assert model_hub({}) == ModelHub(HUB)
    mirror = model_hub({"HF_ENDPOINT": "https://mirror.example/"})
    assert mirror.url("a/b.gguf") == "https://mirror.example/a/b.gguf"
    assert mirror.url("https://own.example/c.gguf") == "https://own.example/c.gguf"
    assert (ModelHub().name, mirror.name) == ("Hugging Face", "the model hub")


def test_own_models_are_known_by_their_names() -> None:
    own = LocalModelSettings(
        sources=("a/b.gguf",), size=5, sha256="AB" * 32, context_tokens=8192
    )
    models = known_models({"mine": own})
    assert set(models) == {*CATALOGUE, "mine"}
    assert models["mine"].sha256 == "ab" * 32
    assert models["mine"].context_tokens == 8192


def test_speed_and_time_left_follow_the_last_seconds() -> None:
    now = 0.0
    meter = SpeedMeter(lambda: now)

    def step(at: float, done: int) -> Progress:
        nonlocal now
        now = at
        return meter.measure(Progress(source="hub", done=done, total=1000))

    first = step(0, 100)
    assert (first.bytes_per_second, first.seconds_left) == (0.0, None)
    second = step(1, 200)
    assert (second.bytes_per_second, second.seconds_left) == (100.0, 8.0)
    assert step(20, 220).bytes_per_second == pytest.approx(20 / 19)
    assert step(21, 0).seconds_left is None
    assert step(22, 500).seconds_left == 1.0
