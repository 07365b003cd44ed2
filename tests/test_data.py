"""The digits are what the data card says, split the same way everywhere."""

import dataclasses

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits as load_from_wheel
from torch.utils.data import DataLoader

from helpers import data


@pytest.fixture(scope="module")
def split():
    return data.load_digits()


def test_counts_shapes_and_dtypes(split):
    assert split.train.images.shape == (1437, 1, 8, 8)
    assert split.test.images.shape == (360, 1, 8, 8)
    assert split.train.labels.shape == (1437,)
    assert split.test.labels.shape == (360,)
    for half in (split.train, split.test):
        assert half.images.dtype == torch.float32
        assert half.labels.dtype == torch.int64


def test_pixels_are_the_17_gray_levels_between_0_and_1(split):
    images = torch.cat([split.train.images, split.test.images])
    assert images.unique().tolist() == [level / 16 for level in range(17)]


def test_the_parts_together_are_the_original_and_share_no_image(split):
    pixels, target = load_from_wheel(return_X_y=True)
    expected = sorted(map(tuple, np.column_stack([pixels, target]).tolist()))
    assert len(set(expected)) == 1797  # all images differ, so equality below means disjoint parts
    found = [
        (*(16 * image.flatten()).tolist(), float(label))
        for half in (split.train, split.test)
        for image, label in half
    ]
    assert sorted(found) == expected


def test_each_class_has_its_share_of_the_test_part(split):
    train, test = (torch.bincount(half.labels) for half in (split.train, split.test))
    assert (train + test).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    expected = (train + test) * 360 / 1797
    assert (test - expected).abs().max() < 1


@pytest.mark.parametrize("test_size", [10, 11, 899, 1787])
def test_any_test_size_is_met_exactly_with_every_class_on_both_sides(test_size):
    split = data.load_digits(test_size=test_size)
    assert len(split.test) == test_size
    assert len(split.train) == 1797 - test_size
    assert len(split.test.labels.unique()) == len(split.train.labels.unique()) == 10


def test_the_split_depends_on_the_seed_alone(split):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    again = data.load_digits()
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(again.test.images, split.test.images)
    assert torch.equal(again.train.labels, split.train.labels)
    assert not torch.equal(data.load_digits(seed=1).test.labels, split.test.labels)


def test_the_split_is_the_one_of_every_other_machine(split):
    positions = torch.arange(360)
    assert int((positions * split.test.labels).sum()) == 292_750
    assert int((positions * (16 * split.test.images).sum(dim=(1, 2, 3)).long()).sum()) == 20_027_569


def test_every_tensor_owns_its_bytes(split):
    tensors = [t for half in (split.train, split.test) for t in (half.images, half.labels)]
    assert len({t.untyped_storage().data_ptr() for t in tensors}) == 4
    for t in tensors:
        assert t.untyped_storage().nbytes() == t.nbytes


def test_writing_into_the_digits_does_not_reach_the_next_load(split):
    data.load_digits().test.images.fill_(9.0)
    assert torch.equal(data.load_digits().test.images, split.test.images)


def test_the_split_is_frozen(split):
    with pytest.raises(dataclasses.FrozenInstanceError):
        split.train = None


def test_digits_say_what_they_hold(split):
    assert repr(split.train) == "Digits: 1,437 images, 1×8×8 float32, 370 KiB"


def test_a_loader_stacks_images_and_labels(split):
    images, labels = next(iter(DataLoader(split.test, batch_size=32)))
    assert images.shape == (32, 1, 8, 8)
    assert labels.dtype == torch.int64
    assert torch.equal(labels, split.test.labels[:32])


def test_a_spawned_worker_reads_every_image(split):
    loader = DataLoader(split.test, batch_size=120, num_workers=1, multiprocessing_context="spawn")
    images, labels = (torch.cat(parts) for parts in zip(*loader, strict=True))
    assert torch.equal(images, split.test.images)
    assert torch.equal(labels, split.test.labels)


IMAGES, LABELS = torch.zeros(3, 1, 8, 8), torch.zeros(3, dtype=torch.int64)


@pytest.mark.parametrize(
    ("images", "labels", "text"),
    [
        (IMAGES.numpy(), LABELS, "images must be a tensor, got ndarray; convert it"),
        (IMAGES.double(), LABELS, "images must be torch.float32, got torch.float64; convert it"),
        (IMAGES, [0, 1, 2], "labels must be a tensor, got list; convert it"),
        (IMAGES, LABELS.int(), "labels must be torch.int64, got torch.int32; convert it"),
    ],
)
def test_digits_refuse_other_types_with_the_repair(images, labels, text):
    with pytest.raises(TypeError, match=text):
        data.Digits(images, labels)


def test_digits_refuse_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"shape \(n, 1, height, width\), got \(3, 8, 8\)"):
        data.Digits(IMAGES[:, 0], LABELS)
    with pytest.raises(ValueError, match=r"labels must have shape \(3,\), got \(2,\); pass one"):
        data.Digits(IMAGES, LABELS[:2])


@pytest.mark.parametrize("test_size", [-1, 0, 9, 1788, 5000])
def test_a_test_size_out_of_range_is_refused(test_size):
    text = f"test_size must be from 10 to 1,787, got {test_size}; use 360 for a fifth"
    with pytest.raises(ValueError, match=text):
        data.load_digits(test_size=test_size)


def test_test_size_and_seed_must_be_whole_numbers():
    with pytest.raises(TypeError, match="test_size must be an int, got float; pass a whole number"):
        data.load_digits(test_size=0.2)
    with pytest.raises(TypeError, match="seed must be an int, got NoneType; pass a whole number"):
        data.load_digits(seed=None)
