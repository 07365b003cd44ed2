"""The words of CUDA's allocator are read in both forms; a card is asked only where there is one."""

from types import SimpleNamespace

import pytest
import torch

from helpers import oom

MIB, GIB = 2**20, 2**30
OLD = (
    "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 14.75 GiB total capacity; "
    "13.50 GiB already allocated; 9.06 MiB free; 13.80 GiB reserved in total by PyTorch) If "
    "reserved memory is >> allocated memory try setting max_split_size_mb"
)


def test_the_recorded_message_is_read_to_its_last_number():
    found = oom.read(oom.RECORDED)
    assert found.tried == round(1.53 * GIB)
    assert found.capacity == round(14.56 * GIB)
    assert found.free == round(1.02 * GIB)
    assert found.process == round(13.54 * GIB)
    assert found.allocated == round(13.33 * GIB)
    assert found.cached == round(41.12 * MIB)
    assert found.others == 0


def test_the_form_of_torch_1_is_read():
    found = oom.read(OLD)
    assert (found.tried, found.free) == (20 * MIB, round(9.06 * MIB))
    assert (found.capacity, found.allocated) == (round(14.75 * GIB), round(13.5 * GIB))
    assert found.cached == pytest.approx(0.3 * GIB, abs=0.02 * GIB)
    assert found.process == round(13.8 * GIB)


def test_what_others_hold_is_the_rest_of_the_card():
    text = oom.RECORDED.replace("this process has 13.54 GiB", "this process has 5.54 GiB")
    assert oom.read(text).others == pytest.approx(8 * GIB, abs=0.02 * GIB)


@pytest.mark.parametrize("message", ["", "out of memory", "Tried to allocate 1.00 GiB."])
def test_another_text_is_refused_with_what_to_pass(message):
    with pytest.raises(ValueError, match=r"found no \w+; pass str\(error\) of a torch\.OutOfMem"):
        oom.read(message)


class Card:
    """Refuse what a card of 16 GiB cannot hold, as CUDA does."""

    def __init__(self, monkeypatch, refuses=True):
        self.asked = []
        cuda = SimpleNamespace(mem_get_info=lambda device: (15 * GIB, 16 * GIB))
        monkeypatch.setattr(torch, "cuda", cuda)

        def empty(size, **_):
            self.asked.append(size)
            if refuses:
                raise torch.OutOfMemoryError("the card's own words")

        monkeypatch.setattr(torch, "empty", empty)


def test_a_card_is_asked_for_twice_what_it_has(monkeypatch):
    card = Card(monkeypatch)
    assert oom.provoke(SimpleNamespace(type="cuda")) == "the card's own words"
    assert card.asked == [32 * GIB]


def test_a_card_that_gives_out_more_than_it_has_is_named(monkeypatch):
    Card(monkeypatch, refuses=False)
    with pytest.raises(RuntimeError, match="oversubscribed"):
        oom.provoke(SimpleNamespace(type="cuda"))
