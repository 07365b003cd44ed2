"""The right values behind what notebook 23 and its exercises say about loaders."""

import random

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info
from torch.utils.data._utils import worker as torch_worker

from exercises import nb23
from helpers.exercises._selftest import judge_source


@pytest.mark.parametrize("workers", [0, 1, 2, 3, 7])
def test_the_simulated_loader_keeps_the_pace_of_its_slower_side(workers):
    draw = random.Random(workers)
    for _ in range(20):
        load, step = draw.uniform(0.001, 0.1), draw.uniform(0.001, 0.1)
        expected = max(step, load / workers) if workers else load + step
        assert nb23.simulate(load, step, workers) == pytest.approx(expected, rel=0.01)


def test_a_simulated_step_without_a_load_or_without_a_model():
    assert nb23.simulate(0.0, 0.02, 2) == pytest.approx(0.02)
    assert nb23.simulate(0.06, 0.0, 3) == pytest.approx(0.02)


def test_the_played_worker_is_what_a_dataset_asks_for_and_is_gone_afterwards():
    with nb23._as_worker(1, 3):
        info = get_worker_info()
        assert (info.id, info.num_workers) == (1, 3)
        assert torch.initial_seed() == info.seed
    with nb23._as_worker(0, 0):
        assert get_worker_info() is None
    with pytest.raises(ZeroDivisionError), nb23._as_worker(0, 2):
        _ = 1 / 0
    assert torch_worker._worker_info is None


def test_another_process_hashes_texts_otherwise_and_numbers_alike():
    space = {}
    exec("def answer():\n    return hash('a'), hash((1, 2))", space)  # noqa: S102 - a namespace of its own
    found = []
    for salt in (1, 2):
        with nb23._another_process(space["answer"], salt):
            found.append(space["answer"]())
    assert found[0][0] != found[1][0]
    assert found[0][1] == found[1][1]
    assert "hash" not in space


class Epochs(Dataset):
    """Return the epoch that the dataset believes in."""

    epoch = 0

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return self.epoch


@pytest.mark.parametrize(("persistent", "seen"), [(True, [0, 0, 0]), (False, [0, 1, 2])])
def test_an_attribute_does_not_reach_a_persistent_worker(persistent, seen):
    dataset = Epochs()
    loader = DataLoader(dataset, num_workers=1, persistent_workers=persistent)
    found = []
    for epoch in range(3):
        dataset.epoch = epoch
        found += [batch.item() for batch in loader]
    assert found == seen


NOISE = """def augment(image, *, seed, epoch, index):
    words = np.random.SeedSequence([seed, epoch, index]).generate_state(1, np.uint64)
    rng = torch.Generator().manual_seed(int(words[0] >> np.uint64(1)))
    {}
"""


@pytest.mark.parametrize(
    "line",
    [
        "return image + 0.1 * torch.randn(image.shape, generator=rng)",
        "return torch.normal(image, 0.1, generator=rng)",
        "return image.clone().add_(torch.empty_like(image).normal_(0, 0.1, generator=rng))",
    ],
)
def test_noise_of_torch_is_as_right_as_that_of_numpy(line):
    verdict = judge_source("23.3", NOISE.format(line))
    assert verdict.status == "passed", verdict.sentence
