"""Generate a record that looks like a reader's, for those who have recorded nothing yet."""

import random

from helpers import _claim_record
from helpers._expression import evaluate
from helpers._report_claims import SAMPLE_CELL
from helpers._report_evidence import Evidence, known
from helpers.claims import load_ledger
from helpers.exercises import _catalog
from helpers.exercises._model import Choice
from helpers.exercises._record import blank

READER = "00000000"
_TORCH = "2.13.0"
_BEGIN = 1_772_000_000  # Unix seconds, in March 2026; every event of a notebook is a day later
_BIAS = {"bytes": -1.3, "KiB": -1.3, "MiB": -1.3, "GiB": -1.3, "s": 1.4}  # powers of two
_DECADES = {"bytes": (3, 9), "s": (-6, 0)}
_CLAIMS = {
    "A1-02": {"small_ratio": 0.31, "matmul_ratio": 0.92},
    "A1-03": {"ratio_small": None, "ratio_large": None},
    "A1-09": {"equal": 1, "itemsize": 4},
    "A1-10": {"itemsize": 8, "shared": 1},
    "A1-11": {"shared": 8, "copied": 4},
    "A1-12": {"values_equal": 1, "itemsize": 4},
    "A1-27": {"raises": 1, "float_mean": 3.0},
    "A1-28": {"total": 15},
    "A1-40": {"guard_raised": 1, "device_count": 0, "world_size": 2, "rank_difference": 0},
    "A1-45": {"fp32_bytes": 1248, "amp_bytes": 3248},
    "A1-50": {"recompute_calls": 4, "forward_calls": 2, "gradients_equal": 1},
    "A1-55": {"flop_ratio": 1.41},
    "A1-56": {"ratio_summed": 4.0},
}
_OLD = "A1-56"  # measured with an older torch


def sample(seed="lab report", *, until="45"):
    """Return generated evidence, the same on every machine and in every run.

    Parameters
    ----------
    seed : str
        Equal seeds give equal evidence.
    until : str
        The last notebook of which something is recorded.

    Returns
    -------
    Evidence
        With ``sample`` true. Nothing of it was measured.
    """
    records = {}
    for id in (*known("EXERCISES"), *known("PREDICTIONS")):
        rng = random.Random(f"{seed} {id}")  # by id: a new exercise changes no other
        if id[:2] <= until and rng.random() < 0.85:
            records[id] = (_prediction if ".p" in id else _exercise)(id, rng)
    return Evidence(
        records=records,
        claims={id: _claim(id, values) for id, values in _CLAIMS.items()},
        machine=f"Machine: CPU · 4 cores · 4 threads · torch {_TORCH} (generated)",
        torch=_TORCH,
        device="cpu",
        cores=4,
        sample=True,
    )


def _times(id):
    at = _BEGIN + 86_400 * int(id[:2])
    return {"first": at, "last": at + 600}


def _exercise(id, rng):
    best = rng.choices(("passed", "wrong", "raised", "unfinished"), (14, 2, 1, 1))[0]
    names = [wrong.name for wrong in _catalog.find_exercise(id).wrong]
    misses = rng.sample(names, min(len(names), rng.choice((0, 0, 1, 2))))
    message = {"passed": "passed", "raised": "TypeError", "unfinished": "unfinished"}.get(best)
    if best == "wrong":
        message = (misses or names or ["other sentence"])[0]
    return {
        **blank(id, "exercise"),
        **_times(id),
        "torch": _TORCH,
        "best": best,
        "latest": best,
        "message": message,
        "misses": sorted(misses),
        "checks": {READER: rng.randint(1, 5)},
        "hints": {READER: rng.randint(1, 3)} if rng.random() < 0.3 else {},
        "solution": rng.random() < 0.15,
        "passed_at": _times(id)["last"] if best == "passed" else None,
    }


def _prediction(id, rng):
    asked = _catalog.find_prediction(id)
    guess, truth = _pair(asked, rng)
    unit = getattr(asked, "unit", None)
    late = rng.random() < 0.08
    guess = {"value": guess, "unit": unit, "at": _times(id)["first"], "late": late}
    truth = {"value": truth, "unit": unit, "at": _times(id)["last"]}
    return {
        **blank(id, "prediction"),
        **_times(id),
        "torch": _TORCH,
        "guess": guess,
        "truth": truth,
    }


def _pair(asked, rng):
    """Return a made-up guess and a made-up truth that fit the question."""
    if isinstance(asked, Choice):
        truth = rng.choice(list(asked.options))
        return (truth if rng.random() < 0.55 else rng.choice(list(asked.options))), truth
    if asked.among is not None:
        truth = rng.randint(0, asked.among)
        return float(min(asked.among, max(0, truth + rng.randint(-2, 2)))), float(truth)
    truth = 10 ** rng.uniform(*_DECADES.get(asked.unit, (0, 3)))
    guess = truth * 2 ** rng.gauss(_BIAS.get(asked.unit, 0), 1.3)
    guess, truth = float(f"{guess:.2g}"), float(f"{truth:.3g}")
    whole = asked.unit not in ("s", "ratio")
    return (max(1.0, round(guess)), max(1.0, round(truth))) if whole else (guess, truth)


def _claim(id, values):
    claim = next(claim for claim in load_ledger() if claim.id == id)
    known = None not in values.values()
    return {
        **_claim_record.blank(id),
        "values": values,
        "met": evaluate(claim.expectation, values) if known else None,
        "verdict": claim.verdict,
        "fingerprint": SAMPLE_CELL,
        "torch": "2.11.0" if id == _OLD else _TORCH,
        "device": "cpu",
        "cores": 4,
        "at": _BEGIN + 86_400 * claim.notebook + 300,
    }
