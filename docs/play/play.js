// The page: what is asked goes to the worker, and its answer is shown.
"use strict";
(() => {
  const LIMIT = 20000;
  const by = (id) => document.getElementById(id);
  const field = Object.fromEntries(
    ["text", "form", "test", "model", "beside", "property", "outcome"].map((id) => [id, by(id)]),
  );
  const answers = by("answers");
  const say = (message, kind = "") => {
    by("status").textContent = message;
    by("status").className = kind;
  };
  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "class") made.className = value;
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  };

  // The module and its worker. A question that is stopped ends its worker; the next one starts another.
  let compiled;
  let worker;
  let waiting = new Map();
  let next = 0;
  const module = async () => {
    const packed = Uint8Array.from(atob(by("module").textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return WebAssembly.compile(await new Response(stream).arrayBuffer());
  };
  const start = async () => {
    compiled ??= module();
    const ready = await compiled;
    const script = new Blob([by("worker").textContent], { type: "text/javascript" });
    const url = URL.createObjectURL(script);
    const made = new Worker(url);
    await new Promise((resolve, reject) => {
      made.onerror = (event) => reject(new Error(event.message || "the worker did not start"));
      made.onmessage = resolve;
      made.postMessage({ module: ready });
    });
    URL.revokeObjectURL(url);
    made.onmessage = ({ data }) => {
      const resolve = waiting.get(data.id);
      waiting.delete(data.id);
      if (data.failed) end();
      resolve?.(data);
    };
    return made;
  };
  const end = (result) => {
    worker?.then((made) => made.terminate(), () => {});
    worker = undefined;
    for (const resolve of waiting.values()) resolve(result ?? { stopped: true });
    waiting = new Map();
  };
  const ask = async (request) => {
    worker ??= start();
    const made = await worker;
    const id = next++;
    return new Promise((resolve) => {
      waiting.set(id, resolve);
      made.postMessage({ id, request });
    });
  };

  // What is asked.
  const request = () => ({
    call: "check",
    file: field.form.value,
    text: field.text.value,
    test: field.test.value,
    models: [field.model.value, field.beside.value].filter((name) => name !== ""),
    property: field.property.value,
    outcome: field.outcome.value,
    outcomes: true,
  });
  const options = (select, values, first) => {
    const chosen = select.value;
    const all = values.map((value) => element("option", { value }, value));
    select.replaceChildren(...(first ? [element("option", { value: "" }, first)] : []), ...all);
    select.value = values.includes(chosen) ? chosen : "";
  };

  // What is shown.
  const block = (text, label) =>
    element("pre", { tabindex: "0", role: "group", "aria-label": label }, text.trim());
  const kind = (verdict) => {
    if (verdict === "undecided") return "unsure";
    const bad = ["racy", "undefined", "hangs", "misused", "divergent"];
    return bad.includes(verdict) ? "bad" : "good";
  };
  const verdict = (line) => {
    const met = line.expected === null ? "" : ` (expected: ${line.expected})`;
    const unmet = line.expected && line.verdict !== "undecided" &&
      line.verdict !== (line.expected === "required" ? "forbidden" : line.expected);
    return element("h3", {}, `${line.property}: `,
      element("span", { class: unmet ? "bad" : kind(line.verdict) }, line.verdict), met);
  };
  const apply = (line) => {
    const edits = line.explanation?.missing?.edits;
    if (!edits?.length || edits.some((edit) => edit.place !== "instead")) return [];
    const change = () => {
      const lines = field.text.value.split("\n");
      const fits = edits.every((edit) => lines[edit.line - 1]?.includes(edit.what));
      if (!fits) {
        say("The program has changed since this answer: check it again.", "unsure");
        return;
      }
      for (const edit of edits) {
        lines[edit.line - 1] = lines[edit.line - 1].replace(edit.what, () => edit.instead);
      }
      field.text.value = lines.join("\n");
      check();
    };
    const button = element("button", { type: "button" }, "Make the smallest change that forbids it");
    button.addEventListener("click", change);
    return [element("p", {}, button)];
  };
  const picture = ({ svg, relations }, name) => {
    const figure = element("figure", { tabindex: "0", "aria-label": `Execution under ${name}` });
    figure.innerHTML = svg;
    if (relations.length === 0) return [figure];
    const switches = element("fieldset", {}, element("legend", {}, "Relations"));
    const more = element("details", {}, element("summary", {}, "More relations"));
    const update = () => {
      const hidden = new Set(Array.from(switches.querySelectorAll("input"))
        .filter((box) => !box.checked).map((box) => box.value));
      for (const edge of figure.querySelectorAll("g.edge")) {
        const off = hidden.has(edge.dataset.rel) && !edge.classList.contains("cycle");
        edge.style.display = off ? "none" : "";
      }
    };
    for (const [relation, shown] of relations) {
      const box = element("input", { type: "checkbox", value: relation });
      box.checked = shown;
      box.addEventListener("change", update);
      (shown ? switches : more).append(element("label", {}, box, relation));
    }
    if (more.childElementCount > 1) switches.append(more);
    update();
    return [figure, switches];
  };
  const table = (outcomes) => {
    if (!outcomes) return [];
    const names = Object.keys(outcomes.outcomes[0]?.state ?? {});
    const heads = [...names, "answer"].map((name) => element("th", { scope: "col" }, name));
    const rows = outcomes.outcomes.map((outcome) => element("tr", {},
      ...names.map((name) => element("td", {}, String(outcome.state[name]))),
      element("td", {}, (outcome.allowed ? "allowed" : "forbidden") + (outcome.racy ? ", racy" : ""))));
    const whole = outcomes.complete ? "All outcomes" : "Outcomes; the list may miss some";
    return [element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": whole },
      element("table", {}, element("caption", {}, whole),
        element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows)))];
  };
  const column = (answered) => {
    const via = answered.mapping ? `, through the mapping ${answered.mapping}` : "";
    return element("section", { class: "column", "aria-label": `Answers of ${answered.model}` },
      element("h2", {}, `${answered.model}${via}`),
      ...answered.answers.flatMap(({ line, text, pictures }) => [
        verdict(line), ...apply(line),
        ...pictures.flatMap((each) => picture(each, answered.model)),
        block(text, `Reason of ${answered.model}`),
      ]),
      ...table(answered.outcomes));
  };
  const error = (found) => {
    const text = block(found.text, found.severity);
    if (!found.line) return [text];
    const button = element("button", { type: "button" }, `Go to line ${found.line}`);
    button.addEventListener("click", () => {
      const lines = field.text.value.split("\n").slice(0, found.line);
      const end = lines.join("\n").length;
      field.text.focus();
      field.text.setSelectionRange(end - lines.at(-1).length, end);
    });
    return [text, element("p", {}, button)];
  };
  const show = (reply) => {
    options(field.test, reply.tests, "the first one");
    const parts = reply.errors.flatMap(error);
    if (reply.launch) parts.push(element("p", {}, "Decided for the launch ", element("code", {}, reply.launch),
      " alone."));
    parts.push(...reply.difference.map((why) => element("p", {}, why)));
    if (reply.columns.length) parts.push(element("div", { class: "columns" }, ...reply.columns.map(column)));
    answers.replaceChildren(...parts);
  };
  const verdicts = (reply) => {
    const all = reply.columns.flatMap(({ model, answers }) =>
      answers.map(({ line }) => `${model}: ${line.verdict}`));
    const errors = reply.errors.filter((found) => found.severity === "error").length;
    if (errors) all.unshift(`${errors} error${errors === 1 ? "" : "s"}`);
    return all.join(", ");
  };
  const time = (ms) => `${Math.max(1, Math.round(ms))} ms`;
  const failure = (result) => {
    if (result.late) return [`Undecided after ${LIMIT / 1000} s: make the program smaller, or ask the program on your machine.`, "unsure"];
    if (result.deep) return ["Undecided: the program nests too deeply for a browser.", "unsure"];
    if (result.failed) return [`A defect of Fencepost, please report it: ${result.failed}`, "bad"];
    return ["Stopped.", "unsure"];
  };

  let asked = 0;
  const check = async () => {
    const mine = ++asked;
    if (waiting.size) end();
    say("Deciding …");
    by("stop").disabled = false;
    const limit = setTimeout(() => end({ late: true }), LIMIT);
    try {
      // The verdicts first: the search for repairs takes longer.
      const question = request();
      const decided = await ask({ ...question, brief: true });
      if (mine !== asked) return;
      if (!decided.reply) {
        answers.replaceChildren();
        say(...failure(decided));
        return;
      }
      show(decided.reply);
      const found = `${verdicts(decided.reply)} (${time(decided.ms)}`;
      if (!decided.reply.columns.length) {
        say(`${found})`, "bad");
        return;
      }
      say(`${found}; the reasons follow …)`);
      const explained = await ask(question);
      if (mine !== asked) return;
      if (explained.reply) {
        show(explained.reply);
        say(`${found}; with reasons ${time(explained.ms)})`);
      } else {
        say(`${found}); the reasons: ${failure(explained)[0]}`, "unsure");
      }
    } catch (problem) {
      worker = undefined;
      say(`The checker did not start: ${problem.message}`, "bad");
    } finally {
      clearTimeout(limit);
      if (mine === asked) by("stop").disabled = true;
    }
  };

  // Links. The program stands behind `#`, packed: it is not sent to a server. The packed form ends in a checksum.
  const pack = async (text) => {
    const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
    return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  };
  const unpack = async (packed) => {
    const binary = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  };
  const link = async () => {
    const { call, outcomes, models, ...kept } = request();
    const packed = await pack(JSON.stringify({ ...kept, model: field.model.value, beside: field.beside.value }));
    history.replaceState(null, "", `#${packed}`);
    try {
      await navigator.clipboard.writeText(location.href);
      say("The link is in the clipboard.");
    } catch {
      say("The link is in the address bar.");
    }
  };
  const opened = async () => {
    if (location.hash.length < 2) return false;
    let kept;
    try {
      kept = JSON.parse(await unpack(location.hash.slice(1)));
    } catch {
      say("The link is not whole: some of it was cut off. Ask for it again.", "bad");
      return true;
    }
    for (const id of ["text", "model", "beside", "property", "outcome"]) field[id].value = String(kept[id] ?? "");
    field.form.value = String(kept.file ?? "test.toml");
    const test = String(kept.test ?? "");
    options(field.test, test ? [test] : [], "the first one");
    field.test.value = test;
    await check();
    return true;
  };

  // Themes: media queries of all sheets become true or false.
  const themed = () => {
    const wanted = by("theme").value;
    for (const sheet of document.styleSheets) {
      for (const rule of sheet.cssRules) {
        if (!(rule instanceof CSSMediaRule)) continue;
        rule.original ??= rule.media.mediaText;
        if (!rule.original.includes("prefers-color-scheme")) continue;
        const dark = rule.original.includes("dark");
        rule.media.mediaText = wanted === "" ? rule.original : (wanted === "dark") === dark ? "all" : "not all";
      }
    }
  };

  const begin = async () => {
    if (typeof WebAssembly !== "object" || typeof DecompressionStream !== "function") {
      say("This browser cannot run the checker: it lacks WebAssembly or streams that decompress (2023). Take a newer one, or the program.", "bad");
      by("check").disabled = true;
      return;
    }
    say("Starting …");
    let about;
    try {
      about = (await ask({ call: "about" })).reply;
    } catch (problem) {
      say(`The checker did not start: ${problem.message}`, "bad");
      return;
    }
    by("pictures").textContent = about.style;
    options(field.model, about.models, "that of the test");
    options(field.beside, about.models, "no other model");
    options(field.property, about.properties, "what the test expects");
    const topics = new Map();
    about.examples.forEach((example, index) => {
      if (!topics.has(example.topic)) topics.set(example.topic, element("optgroup", { label: example.topic }));
      topics.get(example.topic).append(element("option", { value: String(index) }, example.title));
    });
    by("example").replaceChildren(...topics.values());
    const choose = () => {
      const example = about.examples[Number(by("example").value)];
      field.text.value = example.text;
      const ending = example.file.split(".").at(-1);
      field.form.value = Array.from(field.form.options, (option) => option.value)
        .find((value) => value.endsWith(`.${ending}`));
      for (const id of ["test", "model", "beside", "property", "outcome"]) field[id].value = "";
      options(field.test, [], "the first one");
      check();
    };
    by("example").addEventListener("change", choose);
    by("question").addEventListener("submit", (event) => {
      event.preventDefault();
      check();
    });
    by("stop").addEventListener("click", () => end());
    by("link").addEventListener("click", link);
    for (const id of ["test", "model", "beside", "property"]) field[id].addEventListener("change", check);
    field.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        check();
      }
    });
    window.addEventListener("hashchange", () => {
      opened();
    });
    by("theme").addEventListener("change", themed);
    if (!(await opened())) choose();
  };
  begin();
})();
