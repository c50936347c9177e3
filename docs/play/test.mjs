// Runs the module of the page in node: `cargo play && node docs/play/test.mjs [play.wasm]`.
//
// Every example gets an answer, those of the first hour the ones of the book; wrong requests are answers; the module needs
// nothing from its page.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const path = process.argv[2] ?? "target/wasm32-unknown-unknown/play/play.wasm";
const module = new WebAssembly.Module(readFileSync(path));
assert.deepEqual(WebAssembly.Module.imports(module), [], "the module takes nothing from its page");

const fresh = () => new WebAssembly.Instance(module, {}).exports;
let exports = fresh();
const send = (bytes) => {
  const at = exports.fencepost_input(bytes.length);
  new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
  const length = exports.fencepost_ask();
  const output = new Uint8Array(exports.memory.buffer, exports.fencepost_output(), length);
  return JSON.parse(new TextDecoder().decode(output));
};
const ask = (request) => send(new TextEncoder().encode(JSON.stringify(request)));
const timed = (request) => {
  const begun = performance.now();
  const reply = ask(request);
  return [reply, Math.round(performance.now() - begun).toString().padStart(6)];
};
const verdicts = (reply) => reply.columns.flatMap(({ answers }) => answers.map(({ line }) => line.verdict));

const about = ask({ call: "about" });
assert.ok(about.models.includes("ptx") && about.properties.includes("race"));

const expected = {
  "flag.toml": ["allowed"],
  "flag-released.toml": ["forbidden"],
  "reduce.cu": ["racy", "undefined", "terminates"],
};
for (const { topic, title, file, text } of about.examples) {
  const request = { call: "check", file, text, outcomes: true };
  const [brief, first] = timed({ ...request, brief: true });
  const [reply, whole] = timed(request);
  const all = verdicts(reply);
  console.log(`${first} ms, with reasons ${whole} ms  ${topic}: ${title}: ${all.join(", ")}`);
  // The verdicts that come first are those of the whole answer, and carry nothing that takes time.
  assert.deepEqual(verdicts(brief), all, file);
  for (const { answers, outcomes } of brief.columns) {
    assert.equal(outcomes, undefined, file);
    assert.ok(answers.every(({ pictures }) => pictures.length === 0), file);
  }
  const errors = reply.errors.filter(({ severity }) => severity === "error");
  assert.deepEqual(errors, [], file);
  assert.ok(all.length > 0 && !all.includes("undecided"), file);
  if (expected[file]) assert.deepEqual(all, expected[file], file);
  for (const { answers } of reply.columns) {
    for (const { line, pictures } of answers) {
      if (line.expected) {
        assert.equal(line.verdict, line.expected === "required" ? "forbidden" : line.expected, file);
      }
      for (const { svg } of pictures) assert.match(svg, /^<svg[^>]*role="img"/);
    }
  }
}

const flag = about.examples.find(({ file }) => file === "flag.toml");
const check = (changes) => ask({ call: "check", file: flag.file, text: flag.text, outcomes: true, ...changes });

// Two models side by side, and why they differ.
const both = check({ models: ["ptx", "sc"] });
assert.deepEqual(verdicts(both), ["allowed", "forbidden"]);
assert.equal(both.difference.length, 1);
assert.equal(both.columns[0].outcomes.outcomes.filter(({ allowed }) => allowed).length, 4);
assert.equal(both.columns[1].outcomes.outcomes.filter(({ allowed }) => allowed).length, 3);

// Properties and outcomes of one's own.
assert.deepEqual(verdicts(check({ property: "race" })), ["racy"]);
assert.deepEqual(verdicts(check({ property: "liveness:fair" })), ["terminates"]);
assert.deepEqual(verdicts(check({ outcome: "P1:r0 == 2" })), ["forbidden"]);

// Wrong input says where and what.
const wrong = check({ text: flag.text.replace("st.weak", "st.wek") });
assert.equal(wrong.columns.length, 0);
assert.ok(wrong.errors[0].line > 0, JSON.stringify(wrong.errors));
assert.match(check({ models: ["ptxx"] }).errors[0].text, /did you mean `ptx`/);
assert.match(check({ property: "rac" }).errors[0].message, /no property/);
assert.match(check({ outcome: "P1:r0 ==" }).errors[0].severity, /error/);
assert.match(check({ test: "none" }).errors[0].message, /no test `none`/);
assert.match(send(new Uint8Array([0xff, 0xfe])).errors[0].message, /cannot be read/);
assert.match(ask({ call: "chekc" }).errors[0].message, /cannot be read/);

// A new instance answers as the old one.
const before = JSON.stringify(check({}));
exports = fresh();
assert.equal(JSON.stringify(check({})), before);
console.log("all as expected");
