"""Exercises of 21: other right answers pass, and odd ones get a sentence."""

import pytest

from exercises import nb21
from helpers.exercises._selftest import judge_source

RIGHT = {
    "21.1 integers": """def runs_on(arch_list, capability):
    card = 10 * capability[0] + capability[1]
    codes = [(a.split("_")[0], int(a.split("_")[1])) for a in arch_list]
    return any(c <= card and (k == "compute" or c // 10 == card // 10) for k, c in codes)
""",
    "21.2 by the variable": nb21.EXERCISES["21.2"].solution.replace(
        "device_count == 0", 'visible_devices in ("", "-1")'
    ),
    "21.3 positions by a buffer": nb21._classifier(
        mix=nb21._BUFFER + '\n        self.register_buffer("at", torch.arange(8))',
        places="self.at[: tokens.shape[1]]",
    ),
    "21.3 moved with the input": nb21._classifier(
        places="torch.arange(tokens.shape[1]).to(tokens.device)"
    ),
    "21.3 not in the state dict": nb21._classifier(
        mix='self.register_buffer("mix", torch.eye(16) / 2, persistent=False)'
    ),
    "21.4 clone": """def snapshot(model):
    return {n: v.detach().cpu().clone() for n, v in model.state_dict().items()}
""",
    "21.4 deepcopy, then the CPU": """import copy
def snapshot(model):
    return copy.deepcopy(model).to("cpu").state_dict()
""",
    "21.4 through NumPy": """def snapshot(model):
    state = model.state_dict()
    return {n: torch.from_numpy(v.cpu().numpy().copy()) for n, v in state.items()}
""",
    "21.4 filled": """def snapshot(model):
    state = model.state_dict()
    return {n: torch.empty_like(v, device="cpu").copy_(v) for n, v in state.items()}
""",
    "21.4 through a file": """import io
def snapshot(model):
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    return torch.load(file, map_location="cpu")
""",
    "21.5 frexp": """def round_to_tf32(x):
    m, e = np.frexp(x.numpy().astype(np.float64))
    return torch.from_numpy(np.ldexp(np.rint(m * 2048), e - 11).astype(np.float32))
""",
    "21.5 ties to even": """def round_to_tf32(x):
    bits = x.view(torch.int32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) >> 13 << 13).view(torch.float32)
""",
}


@pytest.mark.parametrize("name", RIGHT)
def test_another_right_answer_passes(name):
    verdict = judge_source(name[:4], RIGHT[name])
    assert verdict.status == "passed", verdict.sentence


@pytest.mark.parametrize("value", ["None", "[1]", "'cuda'", "3.5"])
@pytest.mark.parametrize("id", ["21.1", "21.2", "21.4", "21.5"])
def test_another_type_gets_a_sentence(id, value):
    name = nb21.EXERCISES[id].answer
    verdict = judge_source(id, f"def {name}(*args):\n    return {value}\n")
    assert verdict.status == "wrong"
    assert verdict.sentence.startswith(("Expected", "version_cuda="))


def test_every_combination_of_facts_has_each_cause():
    assert {cause for _, cause in nb21._machines()} == set(nb21.CAUSES)


def test_five_exercises_prove_five_abilities():
    assert list(nb21.EXERCISES) == [f"21.{n}" for n in range(1, 6)]
