// Filters the table, and puts pictures where they are asked for.
(() => {
  const byId = (id) => document.getElementById(id);
  const filters = ["model", "property", "verdict", "result"].map(byId);
  const rows = Array.from(document.querySelectorAll("tbody"), (body) => ({
    body,
    text: Array.from(body.querySelectorAll("th,small"), (part) => part.textContent).join(" ").toLowerCase(),
  }));
  const search = byId("search");
  const update = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { body, text } of rows) {
      const fits = filters.every((filter) => !filter.value || body.dataset[filter.id] === filter.value);
      body.hidden = !fits || !words.every((word) => text.includes(word));
      if (!body.hidden) shown += 1;
    }
    byId("count").textContent = shown + " of " + rows.length;
  };
  for (const control of [search, ...filters]) control.addEventListener("input", update);
  document.addEventListener("toggle", (event) => {
    const template = event.target.open && event.target.querySelector("template");
    if (template) template.replaceWith(template.content);
  }, true);
  for (const part of document.querySelectorAll(".controls")) part.hidden = false;
  update();
})();
