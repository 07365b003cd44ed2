"""Show a result as text, as HTML and, in a notebook with ipywidgets, with buttons."""

import html
import re
import sys

VIEW = "application/vnd.jupyter.widget-view+json"

# Text keeps the color of the page; the tone colors a border beside it and is said in words too.
TONES = {
    "good": "var(--jp-success-color1, var(--vscode-charts-green, #2e7d32))",
    "bad": "var(--jp-error-color1, var(--vscode-charts-red, #c62828))",
    "open": "var(--jp-border-color1, var(--vscode-panel-border, #757575))",
    "note": "var(--jp-brand-color1, var(--vscode-charts-blue, #2a71e4))",
}


class Shown:
    """Display an object through its ``text()``, ``html()`` and optional ``widget()``.

    Not a Widget: ipywidgets 7 would ignore the text behind it.
    """

    def text(self):
        """Return the plain text."""
        raise NotImplementedError

    def html(self):
        """Return the HTML."""
        raise NotImplementedError

    def widget(self):
        """Return the ipywidgets box to show instead of the HTML, or None."""
        return

    def __repr__(self):
        return self.text()

    def _repr_mimebundle_(self, include=None, exclude=None):
        bundle = {"text/plain": self.text(), "text/html": self.html()}
        box = self.widget() if in_notebook() else None
        if box is not None:
            view = {"version_major": 2, "version_minor": 0, "model_id": box.model_id}
            bundle[VIEW] = view
        return bundle


def in_notebook():
    """Tell whether a kernel runs this code and ipywidgets can be imported."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if getattr(shell, "kernel", None) is None:
        return False
    try:
        import ipywidgets  # noqa: F401
    except ImportError:
        return False
    return True


def lines(*parts):
    """Join the parts that are not empty, one a line."""
    return "\n".join(part for part in parts if part)


def card(tone, word, *paragraphs, extra=""):
    """Return a bordered HTML card; ``word`` comes first, whatever the tone's color."""
    body = "".join(f"<div>{escape(text)}</div>" for text in paragraphs if text)
    return (
        f'<div role="status" style="border-left:4px solid {TONES[tone]};'
        'padding:2px 0 2px 10px;line-height:1.5;white-space:normal">'
        f"<strong>{escape(word)}</strong>{body}{extra}</div>"
    )


def escape(text):
    """Return HTML in which nothing of the text is markup but `code` between backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text)).replace("\n", "<br>")


def source_block(text):
    """Return HTML that shows source or output as it is."""
    return f'<pre style="margin:4px 0;white-space:pre-wrap">{html.escape(text)}</pre>'


def items(texts):
    """Return an HTML list."""
    return "<ul style='margin:2px 0'>" + "".join(f"<li>{escape(t)}</li>" for t in texts) + "</ul>"


def table(header, rows):
    """Return an HTML table; every cell is escaped, the first column names the row."""
    head = "".join(
        f'<th scope="col" style="text-align:left">{escape(name)}</th>' for name in header
    )
    body = "".join(
        f'<tr><th scope="row" style="text-align:left">{escape(str(row[0]))}</th>'
        + "".join(f'<td style="text-align:left">{escape(str(cell))}</td>' for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def button(label, on_click, *, width="auto"):
    """Return a stock button; plain buttons, because JupyterLab takes arrow keys from radio ones."""
    import ipywidgets as widgets

    result = widgets.Button(description=label, layout=widgets.Layout(width=width))
    result.on_click(on_click)
    return result
