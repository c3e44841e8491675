import { defineConfig } from "@playwright/test";

// Debian's browser: nothing is downloaded. Its sandbox does not work as root.
export default defineConfig({
  testDir: "tests",
  outputDir: process.env["WHYLAG_TEST_RESULTS"] ?? "test-results",
  // Of a busy machine: no test is about how long something takes.
  timeout: 180_000,
  expect: { timeout: 30_000 },
  workers: 2,
  reporter: "list",
  use: {
    viewport: { width: 1200, height: 900 },
    launchOptions: {
      executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu"],
    },
  },
});
