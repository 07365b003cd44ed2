"""The palette can be read and told apart, also with color-vision deficiency, in both themes.

Distances are recomputed from the definitions: CIEDE2000 (Sharma, Wu and Dalal 2005) and the
simulation of dichromacy by Machado, Oliveira and Fernandes (2009) at full severity.
"""

import itertools
import math

import pytest
from color_math import linear

from helpers.plotting import PALETTES

VISION = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
MEANINGS = ("new", "baseline", "memory", "gradient", "reference")
LEAST_DISTANCE = 15  # two colors are taken for one below about 2; thin lines need far more


def seen(color, vision):
    rgb = linear(color)
    mixed = (sum(w * c for w, c in zip(row, rgb, strict=True)) for row in VISION[vision])
    return [min(1.0, max(0.0, c)) for c in mixed]


def lab(rgb):
    to_xyz = (
        (0.4124564, 0.3575761, 0.1804375),
        (0.2126729, 0.7151522, 0.0721750),
        (0.0193339, 0.1191920, 0.9503041),
    )
    white = (0.95047, 1.0, 1.08883)
    xyz = [sum(w * c for w, c in zip(row, rgb, strict=True)) for row in to_xyz]
    ratios = [v / w for v, w in zip(xyz, white, strict=True)]
    x, y, z = (r ** (1 / 3) if r > 216 / 24389 else (24389 / 27 * r + 16) / 116 for r in ratios)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def ciede2000(one, other):
    """Return the distance of two colors given as (L, a, b)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean_c = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    g = 0.5 * (1 - math.sqrt(mean_c**7 / (mean_c**7 + 25**7)))
    a1, a2 = (1 + g) * a1, (1 + g) * a2
    c1, c2 = math.hypot(a1, b1), math.hypot(a2, b2)
    h1, h2 = (math.degrees(math.atan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    dh, mean_h = h2 - h1, (h1 + h2) / 2
    if c1 * c2 == 0:
        dh, mean_h = 0, h1 + h2
    elif abs(dh) > 180:
        dh -= math.copysign(360, dh)
        mean_h += 180 if h1 + h2 < 360 else -180
    big_h = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(dh / 2))
    mean_l, mean_c = (l1 + l2) / 2, (c1 + c2) / 2
    cos = [
        math.cos(math.radians(k * mean_h - shift))
        for k, shift in ((1, 30), (2, 0), (3, -6), (4, 63))
    ]
    t = 1 - 0.17 * cos[0] + 0.24 * cos[1] + 0.32 * cos[2] - 0.20 * cos[3]
    s_l = 1 + 0.015 * (mean_l - 50) ** 2 / math.sqrt(20 + (mean_l - 50) ** 2)
    s_c, s_h = 1 + 0.045 * mean_c, 1 + 0.015 * mean_c * t
    turn = math.radians(60 * math.exp(-(((mean_h - 275) / 25) ** 2)))
    r_t = -2 * math.sqrt(mean_c**7 / (mean_c**7 + 25**7)) * math.sin(turn)
    dl, dc, dh = (l2 - l1) / s_l, (c2 - c1) / s_c, big_h / s_h
    return math.sqrt(dl**2 + dc**2 + dh**2 + r_t * dc * dh)


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [  # from the test data that Sharma, Wu and Dalal publish with their paper
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, -1.3802, -84.2814), (50, 0, -82.7485), 1.0000),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((50, 2.5, 0), (58, 24, 15), 19.4535),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_distance_agrees_with_published_values(one, other, distance):
    assert ciede2000(one, other) == pytest.approx(distance, abs=1e-4)
    assert ciede2000(other, one) == pytest.approx(distance, abs=1e-4)


@pytest.mark.parametrize("theme", PALETTES)
@pytest.mark.parametrize("vision", VISION)
def test_any_two_meanings_can_be_told_apart(theme, vision):
    colors = {name: lab(seen(PALETTES[theme][name], vision)) for name in MEANINGS}
    for one, other in itertools.combinations(MEANINGS, 2):
        assert ciede2000(colors[one], colors[other]) >= LEAST_DISTANCE, (one, other)


def test_two_equal_colors_would_be_noticed():
    assert ciede2000(lab(seen("#2A71E4", "deutan")), lab(seen("#2A71E4", "deutan"))) == 0
