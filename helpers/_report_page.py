"""Write a lab report as one HTML page that needs no other file, in a light and a dark theme."""

from html import escape

from helpers._report_part import data_uri, drawn_for, image

GENERATOR = '<meta name="generator" content="measured-pytorch lab report">'
# The fragments use JupyterLab's variables; the page defines them, so both look alike.
_STYLE = """
:root{color-scheme:light dark;--ink:#111418;--paper:#ffffff;--line:#6b7280;--link:#1a56c4;
--jp-success-color1:#2e7d32;--jp-error-color1:#c62828;--jp-border-color1:#757575;
--jp-brand-color1:#2a71e4}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--paper:#111418;--line:#8b949e;
--link:#8ab4ff;--jp-success-color1:#81c784;--jp-error-color1:#ef9a9a;--jp-border-color1:#9e9e9e;
--jp-brand-color1:#6ea8ff}}
body{background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif;
max-width:60rem;margin:2rem auto;padding:0 1rem}
a{color:var(--link)}table{border-collapse:collapse;margin:1rem 0;font-size:.9rem}
th,td{padding:.25rem .9rem .25rem 0;border-bottom:1px solid var(--line)}
caption{font-weight:600;padding:.3rem 0}figure{margin:1rem 0}th[scope=row]{font-weight:400}
section{overflow-x:auto}summary{cursor:pointer}
""".strip()
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def page(title, remarks, parts):
    """Return a complete HTML document.

    Parameters
    ----------
    title : str
        The heading of the page.
    remarks : sequence of str
        Sentences below it.
    parts : sequence of Part
        One section each.

    Returns
    -------
    str
        HTML without any script or reference to another file but links to notebooks.
    """
    said = "".join(f"<p>{escape(text)}</p>" for text in remarks)
    sections = "".join(
        f"<section><h2>{escape(part.heading)}</h2>{part.body(both_themes)}</section>"
        for part in parts
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">{GENERATOR}'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><main><h1>{escape(title)}</h1>{said}{sections}</main></body></html>\n"
    )


def both_themes(part):
    """Return a part's figure in both themes, or an empty text."""
    with drawn_for("light"):
        chart = part.chart()
        shown = image(chart) if chart else ""
    if not shown:
        return ""
    with drawn_for("dark"):
        dark = data_uri(part.chart())
    source = f'<source media="(prefers-color-scheme: dark)" srcset="{dark}">'
    return f"<figure><picture>{source}{shown}</picture></figure>"
