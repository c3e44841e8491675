// Reports that tests look at, made by whylag itself from recorded runs.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";
import { expect, type Page as Tab } from "@playwright/test";

function needed(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set: start the tests by 'make test-page'`);
  return value;
}

export const whylag = needed("WHYLAG");
export const fixtures = needed("WHYLAG_FIXTURES");
export const folder = needed("WHYLAG_PAGES");
mkdirSync(folder, { recursive: true });

/** The five stories' mysteries: recorded with the fault, and with the fix. */
export const stories = [
  "lazy-binding",
  "mmap-lock",
  "timer-proportional",
  "proc-scan-vs-fork",
  "slow-clocksource",
];

export const fixture = (name: string) => join(fixtures, `${name}.whylag`);

/** The report of runs, as a file. */
export function report(name: string, runs: string[]): string {
  const file = join(folder, `${name}.html`);
  // Named as one would where they lie: the name is in the commands of the page.
  const names = runs.map((run) => relative(fixtures, run));
  if (!existsSync(file)) execFileSync(whylag, ["report", ...names, "-o", file], { cwd: fixtures });
  return file;
}

/** The page of a made-up run, which crates/page/tests/made_up.rs wrote. */
export const made = (kind: string) => join(folder, `${kind}.html`);

export interface Explained {
  findings: {
    cause: string;
    title: string;
    confidence: number;
    evidence: { text: string }[];
    ruled_out: { cause: string; because: string }[];
  }[];
}

/** What whylag prints. */
export const whylagOutput = (...options: string[]) => execFileSync(whylag, options, { maxBuffer: 1 << 28 }).toString();

export function explained(run: string, ...options: string[]): Explained {
  return JSON.parse(whylagOutput("explain", run, "--json", ...options)) as Explained;
}

export interface Compared {
  latencies: { name: string; shift: { ratio: number }[] }[];
}

/** What `whylag compare` says of two runs. */
export function compared(runs: string[]): Compared {
  return JSON.parse(whylagOutput("compare", ...runs, "--json")) as Compared;
}

/** A run file with these texts in place of others. */
export function changed(name: string, from: string, texts: Record<string, string>): string {
  const file = join(folder, `${name}.whylag`);
  let text = gunzipSync(readFileSync(fixture(from))).toString();
  for (const [old, next] of Object.entries(texts)) {
    const quoted = JSON.stringify(old);
    if (!text.includes(quoted)) throw new Error(`${from} has no text ${quoted}`);
    text = text.replaceAll(quoted, JSON.stringify(next));
  }
  writeFileSync(file, gzipSync(text));
  return file;
}

export interface Opened {
  /** What the tab asked for beyond the page itself. */
  requests: string[];
  /** Errors that it printed or threw. */
  errors: string[];
}

/** Opens an address, and waits for the first view. */
export async function open(tab: Tab, address: string): Promise<Opened> {
  const opened: Opened = { requests: [], errors: [] };
  tab.on("request", (request) => opened.requests.push(request.url()));
  tab.on("console", (message) => {
    if (message.type() === "error") opened.errors.push(message.text());
  });
  tab.on("pageerror", (error) => opened.errors.push(error.message));
  await tab.goto(address);
  await tab.waitForSelector("html[data-ready]", { timeout: 150_000 });
  return opened;
}

export const address = (file: string, state = "") => `${pathToFileURL(file).href}${state && `#${state}`}`;

/** How many pixels of a part of a canvas are nearly of this colour (#rrggbb). */
export async function pixels(
  tab: Tab,
  canvas: string,
  color: string,
  part: { top: number; bottom: number },
): Promise<number> {
  return tab.evaluate(
    ({ canvas, color, part }) => {
      const element = document.getElementById(canvas);
      if (!(element instanceof HTMLCanvasElement)) return -1;
      const context = element.getContext("2d");
      if (!context) return -1;
      const ratio = element.height / element.clientHeight;
      const [top, height] = [part.top * ratio, (part.bottom - part.top) * ratio];
      const { data } = context.getImageData(0, top, element.width, height);
      const wanted = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
      let n = 0;
      for (let at = 0; at < data.length; at += 4) {
        if (wanted.every((value, i) => Math.abs((data[at + i] ?? 0) - value) < 8)) n++;
      }
      return n;
    },
    { canvas, color, part },
  );
}

/** Waits until a canvas was drawn once more than before. */
export async function drawn(tab: Tab, canvas: string, act: () => Promise<void>): Promise<void> {
  const times = () => tab.evaluate((id) => Number(document.getElementById(id)?.dataset["drawn"]), canvas);
  const before = await times();
  await act();
  await expect.poll(times).toBeGreaterThan(before);
}
