"""Run by itself: the shortest script with DistributedDataParallel ends in order 20 times of 20."""

from helpers import launch

SCRIPT = """
import torch
import torch.distributed as dist
from helpers.launch import finish, report
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
model(torch.ones(1, 2)).sum().backward()
report(done=True)
finish(model)
"""


def test_twenty_launches_end_in_order(tmp_path):
    script = tmp_path / "shortest.py"
    script.write_text(SCRIPT)
    launches = [launch.torchrun(script) for _ in range(20)]
    assert [done.error for done in launches] == [None] * 20
    assert [done.outcome for done in launches] == ["finished"] * 20
    assert all(done.by_rank("done") == (True, True) for done in launches)
    assert [done.left_behind for done in launches] == [0] * 20
