// The theme, remembered; scrolling parts within reach of the keyboard; nothing folded in print.
(() => {
  const root = document.documentElement;
  const read = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const keep = name => { try { localStorage.setItem("theme", name); } catch { /* private mode */ } };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const show = name => {
    root.dataset.theme = name;
    document.getElementById("theme")?.setAttribute("aria-pressed", String(name === "dark"));
  };
  const chosen = () => read() ?? (system.matches ? "dark" : "light");
  show(chosen()); // before the first paint
  system.addEventListener("change", () => show(chosen()));

  // A part that scrolls sideways must be reachable; one that fits must not cost a Tab.
  const reach = () => {
    for (const part of document.querySelectorAll(".scroll, pre")) {
      if (part.scrollWidth > part.clientWidth + 1) {
        part.tabIndex = 0;
        part.setAttribute("role", "group");
        part.setAttribute("aria-label", "Scrolls sideways");
      } else {
        for (const name of ["tabindex", "role", "aria-label"]) part.removeAttribute(name);
      }
    }
  };

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const part of folded) part.open = true;
  });
  addEventListener("afterprint", () => { for (const part of folded) part.open = false; });

  addEventListener("DOMContentLoaded", () => {
    show(chosen());
    document.getElementById("theme").addEventListener("click", () => {
      const name = root.dataset.theme === "dark" ? "light" : "dark";
      keep(name);
      show(name);
    });
    reach();
    addEventListener("resize", reach);
    document.addEventListener("toggle", reach, true); // a fold that opens shows new parts
  });
})();
