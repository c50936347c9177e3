// Chooses what is shown: an outcome, one or two models, relations. Without it, the page shows everything.
(() => {
  const all = (selector) => Array.from(document.querySelectorAll(selector));
  const views = all(".view");
  const buttons = all("button[data-outcome]");
  const outcome = document.getElementById("outcome");
  const panes = [document.getElementById("left"), document.getElementById("right")];
  const boxes = all("input[data-toggle]");
  const update = () => {
    const models = panes.map((pane) => pane ? pane.value : "");
    for (const view of views) {
      const place = models.indexOf(view.dataset.model);
      view.hidden = view.dataset.outcome !== outcome.value || place < 0;
      view.style.order = String(place);
    }
    for (const button of buttons) {
      const on = button.dataset.outcome === outcome.value && models.includes(button.dataset.model);
      button.setAttribute("aria-pressed", String(on));
    }
    const hidden = new Set(boxes.filter((box) => !box.checked).map((box) => box.dataset.toggle));
    for (const edge of all("g.edge")) {
      const off = hidden.has(edge.dataset.rel) && !edge.classList.contains("cycle");
      edge.style.display = off ? "none" : "";
    }
  };
  for (const control of [outcome, ...panes, ...boxes]) if (control) control.addEventListener("change", update);
  for (const button of buttons) {
    button.addEventListener("click", () => {
      outcome.value = button.dataset.outcome;
      if (!panes.some((pane) => pane && pane.value === button.dataset.model)) panes[0].value = button.dataset.model;
      update();
    });
  }
  for (const part of all(".controls")) part.hidden = false;
  update();
})();
