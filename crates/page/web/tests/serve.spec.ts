// The served page over a store with two runs.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "@playwright/test";
import { explained, fixture, open, whylag } from "./pages";

const folder = mkdtempSync(join(tmpdir(), "whylag-serve."));
const store = join(folder, "whylag.db");
let url = "";
let server: ReturnType<typeof spawn> | null = null;

test.beforeAll(async () => {
  for (const name of ["mmap-lock-faulty", "mmap-lock-fixed"]) {
    execFileSync(whylag, ["--store", store, "import", fixture(name)]);
  }
  const started = spawn(whylag, ["--store", store, "serve"], { stdio: ["ignore", "pipe", "inherit"] });
  server = started;
  url = await new Promise((resolve) => started.stdout.once("data", (line: Buffer) => resolve(line.toString().trim())));
});

test.afterAll(() => {
  server?.kill();
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
