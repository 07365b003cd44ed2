"""Let axe-core judge what a page shows."""

import json

BAD = ("serious", "critical")


def violations(page, include=("body",), exclude=(), rules=()):
    """Return what axe-core calls serious or critical, one line for each rule.

    Parameters
    ----------
    page : playwright.sync_api.Page
        Shown, with everything opened that is to be judged.
    include, exclude : sequence of str
        Selectors of the parts to judge and to leave out.
    rules : sequence of str
        Rules to look for; all of them when empty.
    """
    from axe_playwright_python.base import AXE_SCRIPT

    context = {"include": list(include), "exclude": list(exclude)}
    # preload would fetch the page's style sheets once more
    options = {"resultTypes": ["violations"], "preload": False}
    if rules:
        options["runOnly"] = list(rules)
    page.evaluate(AXE_SCRIPT)
    found = page.evaluate(f"axe.run({json.dumps(context)}, {json.dumps(options)})")["violations"]
    return [
        f"{rule['impact']} {rule['id']}: {rule['nodes'][0]['html'][:120]} ({len(rule['nodes'])})"
        for rule in found
        if rule["impact"] in BAD
    ]
