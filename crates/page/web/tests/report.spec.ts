// A report in a real browser, opened from a file.
import { statSync } from "node:fs";
import { expect, test } from "@playwright/test";
import { address, changed, compared, drawn, explained, fixture, made, open, pixels, report, stories, whylagOutput } from "./pages";

const LANES = { top: 62, bottom: 446 };
const OVERVIEW = { top: 0, bottom: 54 };
// Colours on a light ground: waiting for a disk, and the band where something was lost.
const DISK = "#b8558f";
const LOST = "#b3261e";

for (const story of stories) {
  test(`${story}: the page says what explain --json says, and asks for nothing`, async ({ page }) => {
    const run = fixture(`${story}-faulty`);
    const file = report(`${story}-faulty`, [run]);
    expect(statSync(file).size).toBeLessThan(5_000_000);
    const opened = await open(page, address(file));
    const { findings } = explained(run);
    expect(findings.length).toBeGreaterThan(0);
    await expect(page.locator("article.finding h3")).toHaveText(
      findings.map((finding, place) => `${place + 1}. ${finding.cause}: ${finding.title}`),
    );
    for (const [place, finding] of findings.entries()) {
      const article = page.locator("article.finding").nth(place);
      for (const { text } of finding.evidence) await expect(article).toContainText(text);
      for (const { cause, because } of finding.ruled_out) {
        await expect(article).toContainText(`not ${cause}: ${because}`);
      }
      await expect(article).toContainText(`confidence ${finding.confidence.toFixed(2)}`);
    }
    expect(opened.requests).toEqual([address(file)]);
    expect(opened.errors).toEqual([]);
  });
}

test("a healthy run is said to be one", async ({ page }) => {
  const run = fixture("healthy");
  await open(page, address(report("healthy", [run])));
  expect(explained(run).findings).toEqual([]);
  await expect(page.locator("article.finding")).toHaveCount(0);
  await expect(page.locator(".headline").first()).toContainText(/no known cause|Nothing|No time/i);
});

test("hostile names are text everywhere", async ({ page }) => {
  const markup = '<img src=x onerror="window.hacked=1">';
  const script = "</script><script>window.hacked=1</script>";
  const long = `long-${"x".repeat(10_000)}`;
  const run = changed("hostile", "mmap-lock-faulty", {
    "scan-8": markup,
    "scan-10": script,
    "scan-0": "abc\u202edcba\u001b[31m\u0007",
    "scan-12": long,
    "mysteries/bin/mmap-lock-faulty": `${script}${markup}`,
  });
  const opened = await open(page, address(report("hostile", [run])));
  const text = (await page.locator("body").textContent()) ?? "";
  for (const name of [markup, script, long]) expect(text).toContain(name);
  // Where they could be mistaken they have escapes.
  expect(text).toContain("abc\\u{202e}dcba\\x1b[31m\\x07");
  expect(text).not.toMatch(/[\u202e\u001b\u0007]/);
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);
  expect(await page.locator("img, iframe, object, embed").count()).toBe(0);
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
  expect(opened.errors).toEqual([]);
});

test("one millisecond of ten minutes is seen at every zoom, and only where it is", async ({ page }) => {
  const at = 333.3e9;
  await open(page, address(made("outlier")));
  await page.emulateMedia({ colorScheme: "light" });
  for (const seconds of [600, 120, 10, 1, 0.1, 0.01, 0.002]) {
    const half = (seconds * 1e9) / 2;
    const [from, to] = [Math.max(0, at - half), Math.min(600e9, at + half + 1e6)];
    const show = (a: number, b: number) =>
      drawn(page, "timeline0", () =>
        page.evaluate((hash) => { location.hash = hash; }, `zoom0=${Math.round(a)}-${Math.round(b)}`));
    // All of the run is the first view.
    if (seconds !== 600) await show(from, to);
    await expect.poll(() => pixels(page, "timeline0", DISK, LANES)).not.toBe(-1);
    expect(await pixels(page, "timeline0", DISK, LANES), `lanes at ${seconds} s`).toBeGreaterThan(0);
    expect(await pixels(page, "timeline0", DISK, OVERVIEW), `overview at ${seconds} s`).toBeGreaterThan(0);
    if (seconds === 600) continue;
    const away = seconds * 1e9 + 2e6;
    await show(from - away, to - away);
    expect(await pixels(page, "timeline0", DISK, { top: 0, bottom: 446 }), `beside it, ${seconds} s`).toBe(0);
  }
});

test("what was lost is a band in time", async ({ page }) => {
  await open(page, address(made("outlier"), "zoom0=98000000000-103000000000"));
  const band = () => pixels(page, "timeline0", LOST, { top: 420, bottom: 447 });
  await expect.poll(band).toBeGreaterThan(20);
  // It was noticed at 100 s: lost in the second before, and not after it.
  const at = (span: string) =>
    drawn(page, "timeline0", () => page.evaluate((zoom) => { location.hash = `zoom0=${zoom}`; }, span));
  await at("99100000000-99900000000");
  expect(await band()).toBeGreaterThan(1000);
  for (const elsewhere of ["100100000000-105000000000", "97000000000-98900000000"]) {
    await at(elsewhere);
    expect(await band(), elsewhere).toBe(0);
  }
  for (const figure of ["#latencies", "#timeline"]) {
    await expect(page.locator(`${figure} figcaption`).first()).toContainText("Hatched in red: something was lost");
  }
  await expect(page.locator("#recorder")).toContainText("events (made up)");
});

test("the first view of a million intervals, and panning them (told, not judged)", async ({ page }) => {
  const file = made("million");
  await open(page, address(file));
  const first = await page.evaluate(() => Number(document.documentElement.dataset["ready"]));
  await page.locator("#timeline0").focus();
  await drawn(page, "timeline0", () => page.keyboard.press("+"));
  // A key in each frame, there and back: how often was it drawn?
  const rate = await page.evaluate(async () => {
    const canvas = document.getElementById("timeline0");
    const times = () => Number(canvas?.dataset["drawn"]);
    const [begun, before] = [performance.now(), times()];
    for (let n = 0; n < 60; n++) {
      const key = n % 2 === 0 ? "ArrowRight" : "ArrowLeft";
      canvas?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      // Keys come between frames, not within one.
      await new Promise((next) => requestAnimationFrame(() => setTimeout(next)));
    }
    return ((times() - before) * 1000) / (performance.now() - begun);
  });
  const size = (statSync(file).size / 1e6).toFixed(1);
  console.log(`a million intervals (${size} MB): first view after ${first} ms, panned at ${rate.toFixed(0)} frames a second`);
  expect(rate).toBeGreaterThan(0);
  await expect(page.locator("#timeline")).toContainText("n = 1,000,000");
});

test("a crowd of 20,000 threads, and ten minutes of one", async ({ page }) => {
  const opened = await open(page, address(made("crowd")));
  await expect(page.locator("#timeline")).toContainText("threads 1 to 24 of 20,000");
  await page.locator("#timeline0").focus();
  await drawn(page, "timeline0", () => page.keyboard.press("ArrowDown"));
  await expect(page.locator("#timeline")).toContainText("threads 2 to 25 of 20,000");
  await open(page, address(made("alone")));
  await expect(page.locator("#timeline")).toContainText("1 thread");
  // No empty lanes below the only one.
  expect(await page.locator("#timeline0").evaluate((canvas) => canvas.clientHeight)).toBe(98);
  await expect.poll(() => pixels(page, "timeline0", DISK, { top: 62, bottom: 78 })).toBeGreaterThan(10);
  expect(opened.errors).toEqual([]);
});

test("a picture leads to its interval in the timeline", async ({ page }) => {
  await open(page, address(report("mmap-lock-faulty", [fixture("mmap-lock-faulty")])));
  const picture = page.locator(".picture").first();
  const command = (await picture.locator(".command code").first().textContent()) ?? "";
  expect(command).toMatch(/--outlier \d+$/);
  await picture.getByRole("button", { name: "see it in the timeline" }).press("Enter");
  await expect(page.locator("#timeline aside.selected")).toContainText(command);
  await expect(page.locator("#timeline0")).toBeInViewport();
  await expect(page.locator("#timeline0")).toBeFocused();
});

test("printed, the bars keep their colours and the buttons are gone", async ({ page }) => {
  await open(page, address(report("mmap-lock-faulty", [fixture("mmap-lock-faulty")])));
  await page.emulateMedia({ media: "print" });
  await expect(page.locator("header")).toBeHidden();
  await expect(page.locator("button").first()).toBeHidden();
  const adjusted = await page.locator(".piece").first().evaluate((bar) => getComputedStyle(bar).printColorAdjust);
  expect(adjusted).toBe("exact");
  expect((await page.pdf()).length).toBeGreaterThan(20_000);
});

test("a window of 400 pixels has all of a story, and none of it beside the window", async ({ page }) => {
  await page.setViewportSize({ width: 400, height: 800 });
  for (const story of stories) {
    const opened = await open(page, address(report(`${story}-faulty`, [fixture(`${story}-faulty`)])));
    const beside = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    await expect.poll(beside, story).toBeLessThanOrEqual(0);
    expect(opened.errors).toEqual([]);
  }
});

test("everything can be done by keyboard, and the address has the state", async ({ page }) => {
  const file = report("mmap-lock-faulty", [fixture("mmap-lock-faulty")]);
  await open(page, address(file));
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog")).toContainText("Keys");
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  const theme = () => page.evaluate(() => document.documentElement.dataset["theme"]);
  expect(await theme()).toBe("light");
  await page.keyboard.press("t");
  expect(await theme()).toBe("dark");
  await page.keyboard.press("4");
  await expect(page.locator("#timeline h2")).toBeInViewport();
  await page.locator("#timeline0").focus();
  await page.keyboard.press("n");
  const { findings } = explained(fixture("mmap-lock-faulty"), "--outlier", "1");
  await expect(page.locator("aside.selected")).toContainText("--outlier 1");
  expect(findings.length).toBeGreaterThanOrEqual(0);
  await page.keyboard.press("+");
  await page.keyboard.press("w");
  await expect(page.locator("aside.selected").first()).toContainText("--window");
  await page.locator("#flame0").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.keyboard.press("/");
  await page.keyboard.type("mmap");
  const hash = () => page.evaluate(() => location.hash);
  for (const name of ["theme=dark", "view=timeline", "zoom0=", "window0=", "interval0=", "frame0=", "search=mmap"]) {
    await expect.poll(hash).toContain(name);
  }
  const state = await hash();
  const again = await page.context().newPage();
  await open(again, `${address(file)}${state}`);
  expect(await again.evaluate(() => document.documentElement.dataset["theme"])).toBe("dark");
  await expect(again.locator("aside.selected")).toHaveCount(2);
  await expect(again.locator("input[type=search]")).toHaveValue("mmap");
});

test("every picture has a table, and n", async ({ page }) => {
  await open(page, address(report("mmap-lock-faulty", [fixture("mmap-lock-faulty")])));
  for (const view of ["findings", "accounts", "latencies", "timeline", "flame"]) {
    await expect(page.locator(`#${view} details.table`).first()).toBeAttached();
  }
  for (const caption of await page.locator("figcaption").allTextContents()) {
    expect(caption).toMatch(/n = [\d,]+/);
  }
});

test("two runs stand side by side, and one below the other where it is narrow", async ({ page }) => {
  const names = ["mmap-lock-faulty", "mmap-lock-fixed"];
  const opened = await open(page, address(report("two", names.map(fixture))));
  const left = (run: number) =>
    page.locator(`#timeline [data-run="${run}"]`).evaluate((element) => element.getBoundingClientRect().left);
  expect(await left(1)).toBeGreaterThan((await left(0)) + 300);
  for (const [run, name] of names.entries()) {
    const causes = explained(fixture(name)).findings.map((finding) => finding.cause);
    await expect(page.locator(`#findings [data-run="${run}"] .finding .cause`)).toHaveText(causes);
  }
  await expect(page.locator("#compare")).toContainText("blocked:lock:mmap_lock:write");
  await page.setViewportSize({ width: 390, height: 800 });
  expect(await left(1)).toBe(await left(0));
  const wider = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  await expect.poll(wider).toBeLessThanOrEqual(0);
  expect(opened.errors).toEqual([]);
});

test("how two runs differ: each quantile, and each stack", async ({ page }) => {
  const runs = ["mmap-lock-faulty", "mmap-lock-fixed"].map(fixture);
  const opened = await open(page, address(report("two-moved", runs)));
  const { latencies } = compared(runs);
  const first = latencies[0];
  const rows = page.locator("#compare details", { hasText: "Quantiles" }).locator("tbody tr");
  await rows.first().locator("xpath=ancestor::details").evaluate((d) => d.setAttribute("open", ""));
  await expect(rows.locator("td:last-child")).toHaveText((first?.shift ?? []).map((one) => one.ratio.toFixed(2)));
  await expect(page.locator("#compare .plot canvas")).toHaveCount(1);
  await expect(page.locator("#compare .legend li")).toHaveCount(5);
  // What became faster and what is gone: the colours of the legend are in the picture.
  const colors = await page.locator("#compare .legend .swatch").evaluateAll((all) =>
    all.map((one) => getComputedStyle(one).backgroundColor.match(/\d+/g)?.map((c) => Number(c).toString(16).padStart(2, "0")).join("")));
  const seen = await Promise.all(colors.map((color) => pixels(page, "flamemoved", `#${color}`, { top: 0, bottom: 80 })));
  expect(Math.max(...seen.slice(2, 4))).toBeGreaterThan(100);
  expect(opened.errors).toEqual([]);
});

test("a flame graph from where threads slept, and the distribution on demand", async ({ page }) => {
  const opened = await open(page, address(report("mmap-lock-faulty", [fixture("mmap-lock-faulty")])));
  const told = page.locator("#flame .told");
  await page.locator("#flame0").focus();
  await page.keyboard.press("ArrowDown");
  await expect(told).toContainText("(pid ");
  await page.getByLabel(/reversed/).check();
  await page.locator("#flame0").focus();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowDown");
  await expect(told).not.toContainText("(pid ");
  await expect(page.locator("#latencies .plot canvas")).toHaveCount(1);
  await page.getByText("Empirical distribution").click();
  await expect(page.locator("#latencies .plot canvas")).toHaveCount(2);
  await expect.poll(() => page.evaluate(() => location.hash)).toMatch(/reverse=1.*ecdf=1/);
  expect(opened.errors).toEqual([]);
});

test("the map of seconds has the one millisecond in its cell, and a cell is a window", async ({ page }) => {
  await open(page, address(made("outlier"), "scope=blocked%3Adisk"));
  const table = page.locator("#timeline details", { hasText: "Cells with most" }).locator("tbody tr");
  await expect(table).toHaveCount(1);
  await expect(table).toContainText("333.3 s");
  // The only cell is drawn in the strongest colour.
  await expect.poll(() => pixels(page, "scope0", "#0a3c8c", { top: 0, bottom: 200 })).toBeGreaterThan(1);
  await page.locator("#scope0").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await expect(page.locator("aside.selected")).toContainText("--window 1..1.02s");
  await page.keyboard.press("Escape");
  await expect(page.locator("aside.selected")).toHaveCount(0);
});

test("pictures for the docs", async ({ page }) => {
  const docs = process.env["WHYLAG_SCREENSHOTS"];
  test.skip(docs === undefined, "only 'make stories' takes them");
  for (const story of stories) {
    await open(page, address(report(`${story}-faulty`, [fixture(`${story}-faulty`)])));
    await page.screenshot({ path: `${docs}/${story}.png` });
  }
  await open(page, address(report("mmap-lock-faulty", [fixture("mmap-lock-faulty")]), "theme=dark&view=latencies"));
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${docs}/dark.png` });
});

test("facts of host and program are in a table, and those of two runs are compared", async ({ page }) => {
  const runs = ["lazy-binding-faulty", "lazy-binding-fixed"].map(fixture);
  const shown = JSON.parse(whylagOutput("show", runs[0] ?? "", "--json")) as { facts: { name: string }[] };
  expect(shown.facts.length).toBeGreaterThan(50);
  await open(page, address(report("lazy-binding-facts", [runs[0] ?? ""])));
  await expect(page.locator("#facts tbody tr")).toHaveCount(shown.facts.length);
  const found = JSON.parse(whylagOutput("doctor", "--diff", ...runs, "--json")) as { differences: { name: string }[]; compared: number };
  await open(page, address(report("lazy-binding-both-facts", runs)));
  await expect(page.locator(".differences")).toContainText(
    `${found.differences.length} of ${found.compared} checks or facts differ.`,
  );
  for (const { name } of found.differences) await expect(page.locator(".differences")).toContainText(name);
});
