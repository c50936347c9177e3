// Tries the page in Chromium: `node docs/play/browser.mjs FOLDER` writes pictures of it to FOLDER.
//
// It takes the package `playwright-core`, in NODE_MODULES or ./node_modules, and a browser: CHROMIUM, else /usr/bin/chromium.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(resolve(process.env.NODE_MODULES ?? "node_modules", "x.js"));
const { chromium } = require("playwright-core");
const folder = process.argv[2] ?? "target/play/pictures";
mkdirSync(folder, { recursive: true });
const address = process.argv[3] ?? pathToFileURL(resolve("target/play/index.html")).href;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const opened = async (options) => {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const troubles = [];
  page.on("pageerror", (error) => troubles.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") troubles.push(message.text());
  });
  page.on("request", (request) => {
    if (!/^(file|blob|data):/.test(request.url()) && !request.url().startsWith(address)) {
      troubles.push(`it fetches ${request.url()}`);
    }
  });
  return { context, page, troubles };
};
const status = (page) => page.locator("#status");
const decided = (page) => page.waitForFunction(() => /\(\d+ ms; with reasons \d+ ms\)$/.test(document.getElementById("status").textContent));

// Three widths, both themes.
for (const [name, width, height] of [["phone", 390, 844], ["tablet", 820, 1180], ["desktop", 1440, 900]]) {
  for (const colorScheme of ["light", "dark"]) {
    const { context, page, troubles } = await opened({ viewport: { width, height }, colorScheme });
    await page.goto(address);
    await decided(page);
    assert.match(await status(page).textContent(), /^ptx: allowed/);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(wide <= 0, `${name}: the page is ${wide} pixels too wide`);
    await page.screenshot({ path: `${folder}/${name}-${colorScheme}.png`, fullPage: true });
    assert.deepEqual(troubles, [], name);
    await context.close();
  }
}

const { page, troubles, context } = await opened({ viewport: { width: 1440, height: 900 } });
await page.goto(address);
await decided(page);

// Every control has a name.
const controls = await page.locator("button, select, input, textarea, figure, [role=group]").all();
for (const control of controls) {
  const name = await control.evaluate((element) => {
    const labels = Array.from(element.labels ?? [], (label) => label.textContent.trim());
    return element.getAttribute("aria-label") ?? (labels.join(" ") || element.textContent.trim());
  });
  assert.ok(name, await control.evaluate((element) => element.outerHTML.slice(0, 200)));
}
const tree = await page.locator("body").ariaSnapshot();
for (const name of ["Example", "Program", "Form", "Model", "Beside it", "Property", "Outcome"]) {
  assert.match(tree, new RegExp(`(combobox|textbox) "${name}`), name);
}

// Two models, with the keyboard alone.
await page.locator("#beside").selectOption("sc");
await decided(page);
assert.match(await status(page).textContent(), /ptx: allowed, sc: forbidden|sc: forbidden/);
await page.locator("#model").selectOption("ptx");
await decided(page);
assert.equal(await page.locator(".column").count(), 2);
await page.screenshot({ path: `${folder}/two-models.png`, fullPage: true });

// The smallest change forbids the outcome.
await page.locator("#beside").selectOption("");
await page.locator("#model").selectOption("");
await decided(page);
await page.getByRole("button", { name: /smallest change/ }).first().click();
await page.waitForFunction(() => /ptx: forbidden/.test(document.getElementById("status").textContent));

// Relations are switched.
const edge = page.locator('g.edge[data-rel="co"]:not(.cycle)').first();
if (await edge.count()) {
  const shown = await edge.isVisible();
  await page.locator('fieldset input[value="co"]').first().click();
  assert.notEqual(await edge.isVisible(), shown);
}

// Ctrl+Enter checks; an error has its place.
await page.locator("#text").fill("name = 1\n");
await page.locator("#text").press("Control+Enter");
await page.waitForFunction(() => /error/.test(document.getElementById("status").textContent));
await page.getByRole("button", { name: /Go to line/ }).first().click();
assert.equal(await page.evaluate(() => document.activeElement.id), "text");

// A link holds the program; one that was cut is refused.
await page.locator("#example").selectOption("1");
await decided(page);
await page.locator("#link").click();
await page.waitForFunction(() => /link/.test(document.getElementById("status").textContent));
const link = page.url();
assert.ok(link.includes("#"));
for (const [url, said] of [[link, /ptx: forbidden/], [link.slice(0, -20), /not whole/]]) {
  const other = await opened({});
  await other.page.goto(url);
  await other.page.waitForFunction((source) => new RegExp(source).test(document.getElementById("status").textContent), said.source);
  await other.context.close();
}

// Times of the examples, the module being warm.
for (const option of await page.locator("#example option").all()) {
  const value = await option.getAttribute("value");
  await page.evaluate(() => { document.getElementById("status").textContent = ""; });
  await page.locator("#example").selectOption(value);
  await decided(page);
  console.log(`${(await option.textContent()).padEnd(44)} ${await status(page).textContent()}`);
}

// Themes by hand.
await page.locator("#theme").selectOption("dark");
const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
await page.locator("#theme").selectOption("light");
assert.notEqual(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), dark);
assert.deepEqual(troubles, []);
await context.close();

// A browser without WebAssembly says so.
const bare = await opened({});
await bare.page.addInitScript(() => { delete window.WebAssembly; });
await bare.page.goto(address);
await bare.page.waitForFunction(() => /lacks WebAssembly/.test(document.getElementById("status").textContent));
await browser.close();
console.log("all as expected");
