"""Widgets compute on real tensors, draw every state, and stand without a kernel."""

import base64
import itertools
import re
import struct
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

import nbformat
import numpy as np
import pytest
import torch
from color_math import contrast

from helpers._paths import ROOT
from helpers.plotting import PALETTES
from helpers.table import Table
from helpers.widgets import _panel, sharing, strides
from tools.kernel import execute

STRIDES = [strides.StrideState(o, e) for o in strides.OPERATIONS for e in (0, 5, 11)]
SHARING = [sharing.SharingState(c, w) for c in sharing.CONVERSIONS for w in sharing.SIDES]
EVERY = [(strides, s) for s in STRIDES] + [(sharing, s) for s in SHARING]


def view(case):
    module, state = case
    return module.render(state)


@pytest.mark.parametrize("case", EVERY, ids=lambda c: str(c[1]))
def test_every_state_is_drawn_as_well_formed_svg(case):
    shown = view(case)
    tree = ET.fromstring(shown.svg("p-"))
    assert tree.find("{*}title").text == shown.heading
    assert len(tree.findall("{*}rect")) >= 7
    assert shown.png().startswith(b"\x89PNG")
    for part in shown.parts:
        if isinstance(part, _panel.Box):
            assert 0 <= part.x <= shown.size[0] - _panel.BOX[0], "a cell is cut off"
            assert 0 <= part.y <= shown.size[1] - _panel.BOX[1], "a cell is cut off"


@pytest.mark.parametrize("case", EVERY, ids=lambda c: str(c[1]))
def test_boxes_do_not_overlap(case):
    boxes = [part for part in view(case).parts if isinstance(part, _panel.Box)]
    for a, b in itertools.combinations(boxes, 2):
        apart = abs(a.x - b.x) >= _panel.BOX[0] or abs(a.y - b.y) >= _panel.BOX[1]
        assert apart, (a.text, b.text)


def test_ids_of_two_pictures_in_one_page_differ():
    pages = view(EVERY[3]).html() + view(EVERY[3]).html()
    ids = re.findall(r'id="([^"]+)"', pages)
    assert len(ids) == len(set(ids))
    for target in re.findall(r'url\(#([^)]+)\)|aria-labelledby="([^"]+)"', pages):
        assert "".join(target) in ids


def test_text_is_escaped():
    shown = _panel.View("<b>&", "<i>", Table(["<u>"], []), [_panel.Text(0, 9, "<s>")], (9, 9))
    for page in (shown.html(), shown.static_html()):
        assert not re.search("<(b|i|u|s)>", page)
    assert ET.fromstring(shown.svg("")).find("{*}title").text == "<b>&"


@pytest.mark.parametrize("theme", PALETTES)
@pytest.mark.parametrize("case", EVERY, ids=lambda c: str(c[1]))
def test_values_can_be_read_and_marks_can_be_seen(case, theme):
    colors = PALETTES[theme]
    shown = view(case)
    for part in shown.parts:
        if isinstance(part, _panel.Box):
            assert contrast(colors[part.ink], colors[part.fill]) >= 4.5
            if part.marked:  # paper lies on both sides of the frame
                assert contrast(colors[part.edge], colors["paper"]) >= 3
        elif isinstance(part, _panel.Text):
            assert contrast(colors[part.ink], colors["paper"]) >= 4.5
        else:
            assert contrast(colors[part.color], colors["paper"]) >= 3


def test_the_live_picture_has_the_colors_of_both_themes_and_the_image_those_of_one():
    shown = view(EVERY[3])
    page = shown.html()
    for theme in ("light", "dark"):
        for role, color in PALETTES[theme].items():
            assert f"--mp-{role}:{color}" in page
    assert 'class="mp-view"' in page
    assert set(re.findall(r"var\(--mp-(\w+),", page)) <= set(PALETTES["light"])
    assert "<style>" not in shown.static_html()


def test_a_marked_cell_has_paper_between_its_frame_and_its_fill():
    box = _panel.Box(0, 0, "7", "memory", "paper", "gradient", marked=True)
    frame, inside = ET.fromstring(f"<g>{box.svg('')}</g>").findall("rect")
    assert "--mp-paper" in frame.get("style").split(";")[0]
    assert float(inside.get("x")) > float(frame.get("stroke-width")) / 2


# The stride explorer ------------------------------------------------------------------


def brute_force(operation):
    """Find for each element of the result the cell of its storage, by writing into cells."""
    x = torch.arange(12).view(3, 4)
    result = eval(operation, {"x": x})
    flat = torch.empty(0, dtype=result.dtype).set_(result.untyped_storage())
    cells = []
    for index in itertools.product(*map(range, result.shape)):
        for place in range(len(flat)):
            kept = flat[place].item()
            flat[place] = -1
            hit = result[index].item() == -1
            flat[place] = kept
            if hit:
                cells.append(place)
                break
    return tuple(cells)


@pytest.mark.parametrize("operation", strides.OPERATIONS[:-1])
def test_the_walk_is_the_one_that_writes_find(operation):
    found = strides.walk(operation)
    assert found.cells == brute_force(operation)
    for element, cell in enumerate(found.cells):
        index = strides.indices(found.shape, element)
        steps = (i * s for i, s in zip(index, found.stride, strict=True))
        assert found.offset + sum(steps) == cell


def test_only_the_reshape_of_a_transpose_copies():
    shares = {o: strides.walk(o).shares for o in strides.OPERATIONS[:-1]}
    assert [o for o, yes in shares.items() if not yes] == ["x.t().reshape(12)"]


def test_a_refused_view_shows_torchs_own_words():
    shown = strides.render(strides.StrideState("x.t().view(12)"))
    assert "raises" in shown.heading
    assert "view size is not compatible" in repr(shown.table)


def test_an_element_past_the_end_is_the_last_one():
    assert "element (2, 1)" in repr(strides.render(strides.StrideState("x[:, ::2]", 11)).table)


def test_a_copy_is_drawn_over_the_storage_that_it_left():
    parts = strides.render(strides.StrideState("x.t().reshape(12)")).parts
    texts = [part.text for part in parts if not isinstance(part, _panel.Arrow)]
    assert "the storage of x: no element of the tensor lies in it" in texts
    assert len([t for t in texts if t == "11"]) == 3  # tensor, its storage, the storage of x


def test_an_element_that_the_result_lacks_is_refused():
    for element in (-1, 8):
        with pytest.raises(ValueError, match=rf"from 0 to 7 for x\[1:\], got {element}$"):
            strides.explore("x[1:]", element)


def test_no_other_line_is_ever_run():
    for module, words in ((strides, "x.t"), (sharing, "torch.from_numpy")):
        with pytest.raises(ValueError, match=f"must be one of .*{re.escape(words)}"):
            module.explore("__import__('os').getcwd()")
    with pytest.raises(ValueError, match="must be one of"):
        sharing.write(sharing.CONVERSIONS[0], "a[0] = 1")


# The sharing explorer -----------------------------------------------------------------


@pytest.mark.parametrize("conversion", sharing.CONVERSIONS)
def test_a_write_shows_on_the_other_side_exactly_if_numpy_says_so(conversion):
    a = np.arange(6, dtype=np.float32)
    t = eval(conversion, {"a": a, "torch": torch, "np": np})
    shares = np.shares_memory(a, t.numpy())
    for line in sharing.SIDES:
        found = sharing.write(conversion, line)
        assert (found.distance is not None) == shares
        assert found.changed_array or found.changed_tensor
        heading = sharing.render(sharing.SharingState(conversion, line)).heading
        seen = bool(found.changed_array and found.changed_tensor)
        assert ("both sides" in heading) == seen
        # The one shared write that only one side sees: t steps over a[3].
        assert seen == (shares and (conversion[-5:], line) != ("[::2]", "a[3] = 77"))


def test_the_bytes_of_a_write_are_those_of_the_floats():
    two, written = struct.pack("<f", 2).hex(" "), struct.pack("<f", 77).hex(" ")
    found = sharing.write("torch.as_tensor(a)", "a[2] = 77")
    assert found.changed_array == found.changed_tensor == {2: (two, written)}
    assert f"t[2]: {two} → {written}" in sharing.render(sharing.SharingState()).text()


def test_a_write_between_the_steps_of_the_tensor_is_named_as_such():
    shown = sharing.render(sharing.SharingState("torch.from_numpy(a)[::2]", "a[3] = 77"))
    assert shown.heading == "The write a[3] = 77 hit bytes that only one side looks at."


# Panels -------------------------------------------------------------------------------


@pytest.fixture
def in_notebook(monkeypatch):
    monkeypatch.setattr("helpers._display.in_notebook", lambda: True)


def buttons(box):
    import ipywidgets as widgets

    if isinstance(box, widgets.Button):
        return [box]
    return [button for child in getattr(box, "children", ()) for button in buttons(child)]


def test_controls_change_the_picture_and_mark_the_choice():
    panel = strides.explore("x", 0)
    box = panel.widget()
    press = {b.description.removeprefix("● "): b for b in buttons(box)}
    press["x.t().reshape(12)"].click()
    assert "is a copy" in panel.html_widget.value
    assert [b.description for b in buttons(box) if b.description.startswith("●")] == [
        "● x.t().reshape(12)"
    ]
    field = box.children[1]
    field.value = 4
    assert panel.state == strides.StrideState("x.t().reshape(12)", 4)
    assert "element (4,)" in panel.html_widget.value


def test_the_element_stays_within_the_result():
    panel = strides.explore("x", 11)
    box = panel.widget()
    press = {b.description.removeprefix("● "): b for b in buttons(box)}
    press["x[:, ::2]"].click()
    field = box.children[1]
    assert (field.max, field.value, panel.state.element) == (5, 5, 5)
    press["x.t().view(12)"].click()
    assert "raises" in panel.html_widget.value
    press["x"].click()
    assert field.max == 11


def test_a_panel_shown_twice_has_one_set_of_controls():
    panel = sharing.explore()
    assert panel.widget() is panel.widget()


def test_both_choices_of_the_sharing_explorer_work():
    panel = sharing.explore()
    press = {b.description.removeprefix("● "): b for b in buttons(panel.widget())}
    press["torch.tensor(a)"].click()
    press["t[1] = 77"].click()
    assert "The write t[1] = 77 stays on its side" in panel.html_widget.value


def test_at_most_three_controls_are_in_view_and_all_have_labels():
    for module in (strides, sharing):
        controls = module.explore().widget().children[:-1]
        assert len(controls) <= 3
        for control in controls:
            words = getattr(control, "description", "") or control.children[0].value
            assert words


@pytest.mark.usefixtures("in_notebook")
@pytest.mark.parametrize("module", [strides, sharing])
def test_behind_the_widget_stand_a_picture_a_table_and_text(module):
    bundle = module.explore()._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert 'src="data:image/svg+xml;base64,' in bundle["text/html"]
    assert "<table>" in bundle["text/html"]
    assert "<svg" not in bundle["text/html"]
    assert bundle["text/plain"] == module.explore().text()


def test_without_ipywidgets_the_rest_is_still_there():
    program = (
        "import sys; sys.modules['ipywidgets'] = None\n"
        "from helpers.widgets import strides\n"
        "bundle = strides.explore()._repr_mimebundle_()\n"
        "assert sorted(bundle) == ['image/png', 'text/html', 'text/plain'], sorted(bundle)\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_the_output_is_the_same_in_every_run(tmp_path):
    source = "from helpers.widgets import strides, sharing\ndisplay(strides.explore(), sharing.explore())"

    def outputs():
        nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
        execute(nb, tmp_path)
        return [(o.data["text/plain"], o.data["text/html"]) for o in nb.cells[0].outputs]

    first = outputs()
    assert len(first) == 2
    assert first == outputs()


def test_the_largest_state_is_drawn_between_two_key_presses():
    state = strides.StrideState("x.view(2, 2, 3).permute(2, 0, 1)", 5)
    seconds = []
    for _ in range(15):
        start = time.perf_counter()
        strides.render(state).html()
        seconds.append(time.perf_counter() - start)
    assert sorted(seconds)[7] <= 3 * 0.016
