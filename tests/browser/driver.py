"""Do in JupyterLab what a reader does: open, run, type, click, press keys, read."""

import nbformat

READY = """() => {
  const panel = window.jupyterapp?.shell?.currentWidget;
  const kernel = panel?.sessionContext?.session?.kernel;
  return !!(panel?.content?.widgets?.length && panel.sessionContext.isReady && kernel
    && kernel.connectionStatus === 'connected' && kernel.status === 'idle');
}"""
# The indicator in the toolbar says "idle" before there is a kernel, so the cells are asked.
# After an error the cells below it never run; without that clause the wait would hide the error.
CODE = """window.jupyterapp.shell.currentWidget.content.widgets.filter(
  w => w.model.type === 'code' && w.model.sharedModel.getSource().trim())"""
NOT_RUN = f"() => {CODE}.filter(w => w.model.executionCount == null).length"
DONE = """() => {
  const panel = window.jupyterapp.shell.currentWidget;
  const code = CODE;
  return code.every(w => w.model.executionState !== 'running')
    && (code.every(w => w.model.executionCount != null)
      || code.some(w => w.model.outputs.toJSON().some(o => o.output_type === 'error')))
    && panel.sessionContext.session.kernel.status === 'idle';
}""".replace("CODE", CODE)
CELL_DONE = """index => {
  const panel = window.jupyterapp.shell.currentWidget;
  const model = panel.content.widgets[index].model;
  return model.executionCount != null && model.executionState !== 'running'
    && panel.sessionContext.session.kernel.status === 'idle';
}"""
PROBLEMS = (
    '.jp-RenderedText[data-mime-type="application/vnd.jupyter.error"], '
    '.jp-RenderedText[data-mime-type="application/vnd.jupyter.stderr"], '
    ".jp-OutputArea-output .jupyter-widgets-error-widget"
)
OUTPUT = ".jp-OutputArea-child"


def write_notebook(folder, name, sources):
    """Write a notebook of code cells that JupyterLab opens without asking for a kernel."""
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in sources])
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nb.metadata["kernelspec"] = kernel
    nbformat.write(nb, folder / f"{name}.ipynb")


class Notebook:
    """Drive one open notebook."""

    def __init__(self, page, server, name):
        self.page, self.server, self.name = page, server, name
        self.exceptions = []  # of scripts in the page, and what they wrote as errors
        page.on("pageerror", lambda error: self.exceptions.append(str(error)))
        page.on("console", self._listen)
        page.on("dialog", lambda dialog: dialog.accept())

    def _listen(self, message):
        """Keep errors written to the console, but not of pictures on other hosts: no network."""
        where = message.location.get("url", "")
        if message.type == "error" and where.startswith((self.server.url, "blob:")):
            self.exceptions.append(f"{message.text} ({where})")

    def open(self):
        """Open the reader's copy in a fresh workspace and wait for its kernel."""
        workspace = self.name.replace("/", "-")
        self.page.goto(
            f"{self.server.url}/doc/workspaces/{workspace}/tree/{self.name}.ipynb"
            f"?reset&token={self.server.token}"
        )
        self.page.wait_for_function(READY, timeout=60_000)
        return self

    def start_all(self):
        """Choose Run, Run All Cells in the menu."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()

    def run_all(self):
        """Choose Run, Run All Cells in the menu, and wait for the last cell.

        Raises
        ------
        AssertionError
            If an error kept cells below it from running: with what the page shows of it.
        """
        # A saved copy holds execution counts, which would end the wait at once.
        self.page.evaluate("jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
        self.start_all()
        self.page.wait_for_function(DONE, timeout=120_000)
        left = self.page.evaluate(NOT_RUN)
        assert not left, f"{left} cells did not run after: {self.problems()}"
        return self

    def problems(self):
        """Return the texts of errors and of stderr in all outputs."""
        return self.page.locator(PROBLEMS).all_inner_texts()

    def index(self, text):
        """Return the number of the first code cell whose source holds a text."""
        cells = nbformat.read(self.server.folder / f"{self.name}.ipynb", as_version=4).cells
        return next(i for i, c in enumerate(cells) if c.cell_type == "code" and text in c.source)

    def select(self, index):
        """Make a cell the active one and bring it into view."""
        self.page.evaluate(
            "i => { const n = jupyterapp.shell.currentWidget.content; n.deselectAll();"
            " n.activeCellIndex = i; n.scrollToItem(i, 'center'); }",
            index,
        )

    def cell(self, index):
        """Return the cell's place in the page."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(index)

    def outputs(self, index):
        """Return the cell's outputs in the page."""
        return self.cell(index).locator(OUTPUT)

    def run_above(self, index):
        """Run every cell above one, and that one."""
        self.select(index)
        self._start("notebook:run-all-above")
        self.run(index)

    def _start(self, command):
        """Start a command without its promise: a wait for that would have no limit."""
        self.page.evaluate("name => { jupyterapp.commands.execute(name); }", command)

    def run(self, index):
        """Run one cell and wait until it is done."""
        self.page.evaluate(
            "i => { const m = jupyterapp.shell.currentWidget.content.widgets[i].model;"
            " m.sharedModel.execution_count = null; }",
            index,
        )
        self.select(index)
        self._start("notebook:run-cell")
        self.page.wait_for_function(CELL_DONE, arg=index, timeout=60_000)

    def write(self, index, source):
        """Put a source into a cell, as typing would."""
        self.page.evaluate(
            "([i, source]) => jupyterapp.shell.currentWidget.content.widgets[i]"
            ".model.sharedModel.setSource(source)",
            [index, source],
        )

    def kernel_id(self):
        """Return the id of the kernel behind the page."""
        return self.page.evaluate("jupyterapp.shell.currentWidget.sessionContext.session.kernel.id")

    def theme(self, name):
        """Change the theme and wait until it is applied."""
        self.page.evaluate(
            "name => jupyterapp.commands.execute('apputils:change-theme', {theme: name})", name
        )
        self.page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=name)
        self.page.wait_for_timeout(600)  # styles arrive after the name


# Returns texts inside outputs whose contrast with what lies behind them is under the limit.
# Texts of an SVG lie on its shapes, not on a background: tests/test_widgets.py judges those.
LOW_CONTRAST = """limit => {
  const parse = text => {
    const parts = text.match(/[\\d.]+/g).map(Number);
    return {rgb: parts.slice(0, 3), a: parts.length > 3 ? parts[3] : 1};
  };
  const over = (top, below) => top.rgb.map((c, i) => c * top.a + below[i] * (1 - top.a));
  const light = rgb => {
    const [r, g, b] = rgb.map(c => c / 255).map(
      c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const color = parse(getComputedStyle(e).backgroundColor);
      if (color.a > 0) layers.push(color);
      if (color.a === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const opacity = element => {
    let all = 1;
    for (let e = element; e; e = e.parentElement) all *= Number(getComputedStyle(e).opacity);
    return all;
  };
  const found = [];
  const judge = (element, text) => {
    const box = element.getBoundingClientRect();
    if (!text.trim() || !box.width || !box.height) return;
    const color = parse(getComputedStyle(element).color);
    const back = behind(element);
    const ink = over({rgb: color.rgb, a: color.a * opacity(element)}, back);
    const [high, low] = [light(ink), light(back)].sort((x, y) => y - x);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < limit) found.push(`${ratio.toFixed(2)}: ${text.trim().slice(0, 40)}`);
  };
  for (const output of document.querySelectorAll('.jp-OutputArea-output')) {
    const walker = document.createTreeWalker(output, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode, element = node.parentElement;
      if (!element.closest('[disabled], style, script, svg')) judge(element, node.textContent);
    }
    for (const field of output.querySelectorAll('input, textarea, select')) {
      if (!field.disabled) judge(field, field.value);
    }
  }
  return found;
}"""

# Returns outputs wider than their place. JupyterLab lets each of them scroll, which would hide
# the fault; on a page of a usual width nothing of the course should need that.
CUT_OFF = """() => [...document.querySelectorAll('.jp-OutputArea-output')]
  .filter(output => output.scrollWidth > output.clientWidth + 2)
  .map(output => output.innerText.slice(0, 60))"""

# Returns pictures that were not drawn, and how many were.
PICTURES = """() => {
  const all = [...document.querySelectorAll('.jp-OutputArea-output img')];
  return {all: all.length, empty: all.filter(i => !i.complete || i.naturalWidth < 50).length};
}"""
