// The served page over a store with two runs, and what it shows of many.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "@playwright/test";
import { changed, explained, fixture, open, pixels, whylag } from "./pages";

const folder = mkdtempSync(join(tmpdir(), "whylag-serve."));
const servers: ReturnType<typeof spawn>[] = [];
let url = "";
let ofMany = "";
const many = join(folder, "many.db");

/** Where the page over a store with these runs is. */
async function serve(store: string, runs: string[]): Promise<string> {
  for (const run of runs) execFileSync(whylag, ["--store", store, "import", run]);
  const started = spawn(whylag, ["--store", store, "serve"], { stdio: ["ignore", "pipe", "inherit"] });
  servers.push(started);
  return new Promise((resolve) => started.stdout.once("data", (line: Buffer) => resolve(line.toString().trim())));
}

const answer = (...options: string[]) =>
  JSON.parse(execFileSync(whylag, ["--store", many, ...options, "--json"], { maxBuffer: 1 << 28 }).toString());

test.beforeAll(async () => {
  url = await serve(join(folder, "two.db"), ["mmap-lock-faulty", "mmap-lock-fixed"].map(fixture));
  // Five runs with a fault, and then five without it: one program.
  const [slow, fine] = ["faulty", "fixed"].map((side) =>
    changed(`served-${side}`, `first-touch-${side}`, { [`mysteries/bin/first-touch-${side}`]: "./server" }),
  );
  ofMany = await serve(many, [...Array(5).fill(slow), ...Array(5).fill(fine)] as string[]);
});

/** Six runs with a fault, as many without it, what prove says of them, and a run of no proof. */
async function proven(): Promise<{ url: string; proof: { summary: string; trials: unknown[] } }> {
  const store = join(folder, "proven.db");
  const sides = ["faulty", "fixed"].map((side) => Array<string>(6).fill(fixture(`first-touch-${side}`)));
  const at = await serve(store, [...sides.flat(), fixture("healthy")]);
  const words = ["--store", store, "prove", "--json", "1..6", "--", "7..12"];
  return { url: at, proof: JSON.parse(execFileSync(whylag, words, { maxBuffer: 1 << 28 }).toString()) };
}

test.afterAll(() => {
  for (const server of servers) server.kill();
  rmSync(folder, { recursive: true });
});

test("runs are listed, opened, explained in part and compared, with its policy kept", async ({ page }) => {
  const opened = await open(page, url);
  await expect(page.locator("tbody tr")).toHaveCount(2);
  await expect(page.locator("tbody tr").last()).toContainText("mmap-lock");
  await page.getByRole("button", { name: "1", exact: true }).click();
  const titles = explained(fixture("mmap-lock-faulty")).findings.map((f, n) => `${n + 1}. ${f.cause}: ${f.title}`);
  await expect(page.locator("article.finding h3")).toHaveText(titles);

  await page.evaluate(() => { location.hash += "&window0=200000000-400000000"; });
  const window = explained(fixture("mmap-lock-faulty"), "--window", "0.2..0.4s");
  await expect(page.locator("aside.selected .headline")).toContainText(window.findings[0]?.cause ?? "?");

  await page.getByRole("link", { name: "all runs" }).click();
  for (const run of [1, 2]) await page.getByLabel(`choose run ${run}`).check();
  await page.getByRole("button", { name: "compare two" }).click();
  await expect(page.locator("#compare")).toContainText("blocked:lock:mmap_lock:write");

  const origin = new URL(url).origin;
  expect(opened.requests.filter((request) => !request.startsWith(origin))).toEqual([]);
  expect(opened.errors).toEqual([]);
});

test("curl is refused without the token, for another host, and from another page", () => {
  const status = (...options: string[]) =>
    execFileSync("curl", ["-s", "-o", "/dev/null", "-w", "%{http_code}", ...options]).toString();
  const { origin } = new URL(url);
  expect(status(`${url}runs.json`)).toBe("200");
  expect(status(`${origin}/runs.json`)).toBe("403");
  expect(status(`${origin}/${"0".repeat(48)}/runs.json`)).toBe("403");
  expect(status("-H", "Host: whylag.example", `${url}runs.json`)).toBe("403");
  expect(status("-H", "Origin: http://whylag.example", `${url}runs.json`)).toBe("403");
  expect(status("-X", "POST", `${url}runs.json`)).toBe("405");
});

test("the grid has a column a run and says what splits the bad ones; a click opens a run", async ({ page }) => {
  const opened = await open(page, `${ofMany}#list=grid`);
  await expect(page.locator("main[data-view=grid]")).toBeVisible();
  const [grid] = answer("runs", "--grid") as { outcomes: string[]; splits: { what: string }[]; rows: unknown[] }[];
  expect(grid?.outcomes).toEqual([...Array(5).fill("recovered"), ...Array(5).fill("clean")]);
  await expect(page.locator("main")).toContainText("10 runs: 5 clean, 5 recovered, 0 lost.");
  for (const { what } of grid?.splits.slice(0, 8) ?? []) await expect(page.locator("main ul")).toContainText(what);
  await expect(page.locator("details.table th")).toHaveCount(2 + (grid?.rows.length ?? 0));

  // Five cells of the first row have the colour of what is recovered: 25 by 15 pixels at least.
  const recovered = await pixels(page, "grid0", "#8a5a00", { top: 0, bottom: 17 });
  expect(recovered).toBeGreaterThan(5 * 20 * 12);
  await page.locator("#grid0").hover({ position: { x: 230 + 5.5 * 26, y: 8 } });
  await expect(page.locator(".told")).toContainText("run 6, clean");
  await page.locator("#grid0").press("ArrowLeft");
  await expect(page.locator(".told")).toContainText("run 5, recovered");
  await page.locator("#grid0").press("Enter");
  await expect(page.locator("article.finding h3").first()).toContainText("first-touch");
  expect(opened.errors).toEqual([]);
});

test("over time a change has its run and its sentence, and every figure its value", async ({ page }) => {
  const opened = await open(page, `${ofMany}#list=trends`);
  await expect(page.locator("main[data-view=trends]")).toBeVisible();
  const [series] = answer("series") as { tried: number; changes: { run: number; metrics: { name: string }[] }[] }[];
  const [change] = series?.changes ?? [];
  expect(change?.run).toBe(6);
  await expect(page.locator("ul.changes li")).toHaveCount(series?.changes.length ?? 0);
  await expect(page.locator("ul.changes li").first()).toContainText(`(run 6)`);
  await expect(page.locator("ul.changes li").first()).toContainText(change?.metrics[0]?.name ?? "?");
  const figures = page.getByLabel("Figure");
  await expect(figures.locator("option")).toHaveCount(series?.tried ?? 0);

  await figures.selectOption("cause first-touch");
  await page.locator("details.table summary").click();
  const rows = page.locator("details.table tbody tr");
  await expect(rows).toHaveCount(10);
  const { findings } = explained(fixture("first-touch-faulty")) as unknown as { findings: { cause: string; wall_share: number }[] };
  const share = findings.find((finding) => finding.cause === "first-touch")?.wall_share ?? 0;
  await expect(rows.nth(0)).toContainText(`${(share * 100).toFixed(1)} %`);
  await expect(rows.nth(9)).toContainText("0.0 %");

  await page.getByRole("button", { name: "open run 6" }).click();
  await expect(page.locator("h1")).toContainText("./server");
  await expect(page.locator("article.finding", { hasText: "first-touch" })).toHaveCount(0);
  expect(opened.errors).toEqual([]);
});

test("this host is checked as by doctor, and compared with the host of a run", async ({ page }) => {
  const opened = await open(page, `${ofMany}#list=doctor`);
  await expect(page.locator("main[data-view=doctor]")).toBeVisible();
  const { checks, host } = answer("doctor") as { checks: { id: string }[]; host: string };
  await expect(page.locator("main")).toContainText(`${host}: ${checks.length} checks`);
  const ids = await page.locator("table.list tbody tr td:nth-child(2)").allTextContents();
  expect(ids.sort()).toEqual(checks.map((check) => check.id).sort());

  await page.getByLabel("What differs from the host of").selectOption("1");
  const { names } = answer("doctor", "--diff", "1") as { names: string[] };
  await expect(page.locator(".differences")).toContainText(/\d+ of \d+ checks or facts differ/);
  await expect(page.locator(".differences th").nth(1)).toHaveText(names[0] ?? "?");
  expect(opened.errors).toEqual([]);
});

test("views of many runs go by keys, with a search, and their state is in the address", async ({ page }) => {
  await open(page, ofMany);
  await expect(page.locator("table.list tbody tr")).toHaveCount(10);
  await page.keyboard.press("/");
  await page.keyboard.type("first-touch");
  await expect(page.locator("table.list tbody tr")).toHaveCount(5);
  await page.locator("h1").click();
  await page.keyboard.press("2");
  await expect(page.locator("h1")).toHaveText("Grid");
  await expect.poll(() => page.url()).toContain("list=grid");
});

test("a proof is on the page of its runs: the verdict, each pair, causes before and after", async ({ page }) => {
  const { url, proof } = await proven();
  for (const runs of ["run=1&with=7", "run=4"]) {
    const opened = await open(page, `${url}#${runs}`);
    await expect(page.locator("#proof .headline")).toHaveText(proof.summary);
    await expect(page.locator("#proof circle.after")).toHaveCount(6);
    await expect(page.locator("#proof figcaption")).toContainText("n = 6 pairs, 6 of them recorded");
    await expect(page.locator("#proof table", { hasText: "runs before" })).toContainText("first-touch");
    // The first key goes to it.
    await page.keyboard.press("1");
    await expect(page.locator("#proof h2")).toBeInViewport();
    expect(opened.errors).toEqual([]);
    await page.goto("about:blank");
  }
  await open(page, `${url}#run=13`);
  await expect(page.locator("#findings")).toBeVisible();
  await expect(page.locator("#proof")).toHaveCount(0);
});

test("hostile names are text in every view of many runs, and 400 pixels are enough for them", async ({ page }) => {
  const markup = '<img src=x onerror="window.hacked=1">\u202e';
  const hostile = changed("served-hostile", "first-touch-faulty", { "mysteries/bin/first-touch-faulty": markup });
  const at = await serve(join(folder, "hostile.db"), Array<string>(7).fill(hostile));
  await page.setViewportSize({ width: 400, height: 800 });
  for (const view of ["runs", "grid", "trends", "doctor"]) {
    const opened = await open(page, `${at}#list=${view}`);
    await expect(page.locator(`main[data-view=${view}]`)).toBeVisible();
    const text = (await page.locator("main").textContent()) ?? "";
    if (view !== "doctor") expect(text, view).toContain('<img src=x onerror="window.hacked=1">\\u{202e}');
    expect(text).not.toContain("\u202e");
    expect(await page.evaluate(() => "hacked" in window)).toBe(false);
    const beside = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    await expect.poll(beside, view).toBeLessThanOrEqual(0);
    expect(opened.errors).toEqual([]);
    await page.goto("about:blank");
  }
});

test("a benchmark that was not recorded has no page, which says so and leads back", async ({ page }) => {
  const store = join(folder, "bench.db");
  execFileSync(whylag, ["--store", store, "bench", "getppid", "--threads", "1", "--time", "200ms"]);
  const at = await serve(store, []);
  await open(page, `${at}#run=1`);
  await expect(page.locator(".failed")).toContainText("run 1 is a benchmark that was not recorded");
  await page.getByRole("link", { name: "all runs" }).press("Enter");
  await expect(page.locator("table.list tbody tr")).toHaveCount(1);
});
