// page.mjs WEB FOLDER: opens the recordings of FOLDER in chromium, in turns with whylag's page and with
// speedscope, and prints how long each took until it was seen, as a part of docs/page.md.
import { createRequire } from "node:module";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const [web, folder] = process.argv.slice(2).map((path) => resolve(path));
const { chromium } = createRequire(join(web, "package.json"))("@playwright/test");
const rounds = Number(process.env.ROUNDS);
const PATIENCE_MS = 60_000;
const MILLION = 1_000_000;

/** The waits of crates/page/tests/made_up.rs by number, length and thread, in Chrome's trace format. */
function traceOfAMillion() {
  const file = join(folder, "million.json");
  const events = [];
  for (let n = 0; n < MILLION; n++) {
    events.push(`{"ph":"X","pid":1,"tid":${1 + (n % 40)},"name":"waits","ts":${n * 600},"dur":${20 + (n % 180)}}`);
  }
  writeFileSync(file, `[${events.join(",")}]`);
  return file;
}

/** As speedscope's own command does: a script that has the file. */
function forSpeedscope(file) {
  const script = `${file}.js`;
  const name = file.split("/").pop();
  const data = readFileSync(file).toString("base64");
  writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(name)}, ${JSON.stringify(data)})`);
  const page = join(folder, "node_modules/speedscope/dist/release/index.html");
  return { url: `file://${page}#localProfilePath=${script}`, size: statSync(file).size, name };
}

const ofPage = (file) => ({ url: `file://${file}`, size: statSync(file).size });

/** ms from the start of the navigation until it is seen; NaN if it never was. */
async function seen(browser, url, isSeen, name) {
  const tab = await browser.newPage({ viewport: { width: 1200, height: 900 } });
  try {
    await tab.goto(url);
    const handle = await tab.waitForFunction(isSeen, name, { timeout: PATIENCE_MS });
    return [await handle.jsonValue(), await panned(tab)];
  } catch {
    return [NaN, NaN];
  } finally {
    await tab.close();
  }
}

// Polled in each frame, and answered in the one after that in which all was drawn.
const pageSeen = () =>
  document.documentElement.dataset.ready &&
  [...document.querySelectorAll("canvas.drawing")].every((canvas) => canvas.dataset.drawn) &&
  performance.now();
const speedscopeSeen = (name) =>
  document.title.includes(name) && document.querySelector("canvas") && performance.now();

/** Frames a second while a key pans the timeline in each frame; NaN where there is none. */
async function panned(tab) {
  return tab.evaluate(async () => {
    const canvas = document.getElementById("timeline0");
    if (!canvas) return NaN;
    const press = (key) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    // Keys come between frames, not within one.
    const frame = () => new Promise((next) => requestAnimationFrame(() => setTimeout(next)));
    press("+");
    for (let n = 0; n < 10; n++) await frame();
    const [begun, before] = [performance.now(), Number(canvas.dataset.drawn)];
    for (let n = 0; n < 60; n++) {
      press(n % 2 === 0 ? "ArrowRight" : "ArrowLeft");
      await frame();
    }
    return ((Number(canvas.dataset.drawn) - before) * 1000) / (performance.now() - begun);
  });
}

const sorted = (values) => [...values].sort((a, b) => a - b);
const median = (values) => sorted(values)[Math.floor(values.length / 2)];
const range = (values) => {
  const known = values.filter((ms) => !Number.isNaN(ms));
  if (known.length === 0) return "never";
  const [least, most] = [Math.min(...known), Math.max(...known)].map(Math.round);
  const never = known.length < values.length ? `; ${values.length - known.length} times never` : "";
  return `${Math.round(median(known))} ms (${least} to ${most}${never})`;
};
const bytes = (size) => (size < 1e6 ? `${Math.round(size / 1e3)} KB` : `${(size / 1e6).toFixed(1)} MB`);

const runs = readdirSync(folder).filter((name) => name.endsWith(".folded")).map((name) => name.slice(0, -7));
const cases = runs.map((run) => ({
  name: `\`${run}\``,
  page: ofPage(join(folder, `${run}.html`)),
  peer: forSpeedscope(join(folder, `${run}.folded`)),
}));
cases.push({
  name: "a million waits, made up",
  page: ofPage(join(folder, "million.html")),
  peer: forSpeedscope(traceOfAMillion()),
});

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
const times = cases.map(() => ({ page: [], peer: [], rate: [] }));
for (let round = 0; round < rounds; round++) {
  for (const [place, { page, peer }] of cases.entries()) {
    const own = async () => {
      const [ms, rate] = await seen(browser, page.url, pageSeen);
      times[place].page.push(ms);
      times[place].rate.push(rate);
    };
    const other = async () => times[place].peer.push((await seen(browser, peer.url, speedscopeSeen, peer.name))[0]);
    for (const measure of round % 2 === 0 ? [own, other] : [other, own]) await measure();
  }
}
const version = browser.version();
await browser.close();

console.log(`
Chromium ${version} without a GPU, ${rounds} rounds in turns: median (least to most) from the start of the
navigation until all is drawn, from a file. speedscope is ${process.env.SPEEDSCOPE_VERSION}.

| recording | whylag's page | its file | frames a second, panned | speedscope | its file |
|---|---|---|---|---|---|`);
for (const [place, { name, page, peer }] of cases.entries()) {
  const { page: own, peer: other, rate } = times[place];
  console.log(
    `| ${name} | ${range(own)} | ${bytes(page.size)} | ${Math.round(median(rate))} | ${range(other)} | ${bytes(peer.size)} |`,
  );
}
console.log();
