"""The interval of an accuracy holds the truth as often as it says."""

import pytest
import torch

from helpers.accuracy import Accuracy


def test_it_shows_share_counts_and_interval():
    assert repr(Accuracy(350, 360)) == "97.2 % (350 of 360; 95 % interval 95.0 to 98.5 %)"
    assert str(Accuracy(0, 1)) == "0.0 % (0 of 1; 95 % interval 0.0 to 79.3 %)"


@pytest.mark.parametrize("truth", [0.5, 0.9, 0.97])
def test_the_interval_holds_the_truth_about_as_often_as_it_says(truth):
    """Add up the probability of every count whose interval holds the truth."""
    counts = torch.arange(361.0)
    chance = torch.distributions.Binomial(360, torch.tensor(truth)).log_prob(counts).exp()
    ends = [Accuracy(int(k), 360).interval for k in counts]
    pairs = zip(chance.tolist(), ends, strict=True)
    held = sum(p for p, (low, high) in pairs if low <= truth <= high)
    assert 0.93 <= held <= 0.97


@pytest.mark.parametrize("correct", [0, 1, 359, 360])
def test_the_interval_stays_between_0_and_1_and_holds_the_share(correct):
    low, high = Accuracy(correct, 360).interval
    assert 0 <= low <= correct / 360 <= high <= 1
    assert low < high


@pytest.mark.parametrize(
    ("correct", "total", "error", "words"),
    [
        (3, 2, ValueError, "got 3 of 2; count each example once"),
        (-1, 2, ValueError, "got -1 of 2"),
        (0, 0, ValueError, "got 0 of 0"),
        (0.97, 1, TypeError, "correct must be an int, got float"),
        (1, torch.tensor(2), TypeError, r"total must be an int, got Tensor; \.item\(\)"),
        (True, 1, TypeError, "got bool"),
    ],
)
def test_what_is_no_count_is_refused(correct, total, error, words):
    with pytest.raises(error, match=words):
        Accuracy(correct, total)
