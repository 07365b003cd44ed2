"""Hold the colors of the site in both themes and write them as CSS variables."""

from helpers.plotting import PALETTES

# On a dark page: a drawing on white is turned over and keeps its hues; a map of colors, whose
# bright means much, is only dimmed.
TURNED, DIMMED = "invert(0.93) hue-rotate(180deg)", "brightness(0.85)"

# Text on paper and on raised reaches 4.5:1, a line that means something 3:1; a test computes it.
COLORS = {
    "light": {
        "paper": "#FFFFFF", "raised": "#F4F6F8", "ink": "#111418", "soft": "#505A66",
        "link": "#1F5FCC", "rule": "#D5DAE0", "edge": "#737D89",
        "keyword": "#7B2A7F", "text": "#025B3D", "number": "#8A4B00", "name": "#1F5FCC",
        "good": "#1B6E35", "bad": "#B3261E",
    },
    "dark": {
        "paper": "#111418", "raised": "#1A1F26", "ink": "#E6EDF3", "soft": "#A3ADB8",
        "link": "#83B4FF", "rule": "#333B45", "edge": "#8B949E",
        "keyword": "#E39DE6", "text": "#6BC095", "number": "#E0A96D", "name": "#83B4FF",
        "good": "#6BC095", "bad": "#FF8A80",
    },
}  # fmt: skip

# Pygments' classes, by what they mean here; every other token keeps the ink.
TOKENS = {
    "keyword": ("k", "kc", "kd", "kn", "kp", "kr", "kt", "ow"),
    "text": ("s", "sa", "sb", "sc", "dl", "sd", "s2", "se", "sh", "si", "sx", "sr", "s1", "ss"),
    "number": ("m", "mb", "mf", "mh", "mi", "il", "mo"),
    "name": ("nf", "nc", "nd", "fm", "nt"),
    "soft": ("c", "ch", "cm", "cp", "cpf", "c1", "cs"),
}

# What the course's own outputs ask for, by the names that JupyterLab gives.
_ASKED = {
    "jp-success-color1": "good",
    "jp-error-color1": "bad",
    "jp-border-color1": "edge",
    "jp-brand-color1": "link",
}


def variables(theme: str) -> str:
    """Return the declarations of one theme.

    Examples
    --------
    >>> "--paper:#FFFFFF" in variables("light")
    True
    """
    colors = COLORS[theme]
    named = dict(colors) | {name: colors[role] for name, role in _ASKED.items()}
    named |= {f"mp-{role}": color for role, color in PALETTES[theme].items()}
    named |= (
        {"turn": TURNED, "dim": DIMMED}
        if theme == "dark"
        else dict.fromkeys(("turn", "dim"), "none")
    )
    return ";".join([f"color-scheme:{theme}", *(f"--{name}:{it}" for name, it in named.items())])


def css() -> str:
    """Return the variables for the system's theme, the chosen one and print, and code's colors."""
    light, dark = variables("light"), variables("dark")
    code = [
        f"{','.join(f'.highlight .{token}' for token in tokens)}{{color:var(--{role})}}"
        for role, tokens in TOKENS.items()
    ]
    return "\n".join(
        [
            f":root{{{light}}}",
            f"@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}",
            f":root[data-theme=dark]{{{dark}}}",
            f"@media print{{:root:root:root{{{light}}}}}",
            *code,
            "",
        ]
    )
