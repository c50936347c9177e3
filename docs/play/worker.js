// Runs the module: a request in JSON comes as a message, the answer goes back with its time.
"use strict";
let exports;
const text = (bytes) => {
  const at = exports.fencepost_output();
  return new TextDecoder().decode(new Uint8Array(exports.memory.buffer, at, bytes));
};
const ask = (request) => {
  const bytes = new TextEncoder().encode(JSON.stringify(request));
  const at = exports.fencepost_input(bytes.length);
  new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
  return JSON.parse(text(exports.fencepost_ask()));
};
const failure = (error) => {
  // After a trap the memory is still there, with the message of the panic.
  let message = "";
  try {
    message = text(exports.fencepost_failure());
  } catch {
    message = "";
  }
  return message || String(error);
};
self.onmessage = async ({ data }) => {
  if (data.module) {
    const instance = await WebAssembly.instantiate(data.module, {});
    exports = instance.exports;
    self.postMessage({ ready: true });
    return;
  }
  const begun = performance.now();
  try {
    const reply = ask(data.request);
    self.postMessage({ id: data.id, reply, ms: performance.now() - begun });
  } catch (error) {
    const deep = error instanceof RangeError;
    self.postMessage({ id: data.id, failed: failure(error), deep });
  }
};
