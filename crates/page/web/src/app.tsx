// The page: views below each other, two runs beside each other.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ShownPage, ShownRun } from "./wire";
import { isServed } from "./data";
import { useParam } from "./state";
import { isDark, theme as themeOf } from "./theme";
import { Accounts } from "./views/accounts";
import { Compare } from "./views/compare";
import { Findings } from "./views/findings";
import { Flame } from "./views/flame";
import { Latencies } from "./views/latency";
import { RecorderView } from "./views/recorder";
import { Requests } from "./views/requests";
import { TimelineView } from "./views/timeline";

interface Section {
  id: string;
  title: string;
  /** True if a run has something to show there. */
  has: (run: ShownRun) => boolean;
  view: (run: ShownRun, other: ShownRun | null, at: string) => ComponentChildren;
}

export function App({ page }: { page: ShownPage }) {
  const [wanted, setWanted] = useParam("theme");
  const [section, setSection] = useParam("view");
  const [help, setHelp] = useState(false);
  const dark = isDark(wanted);
  // The colours of the style are those of the theme only once it is set.
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  const theme = useMemo(() => themeOf(page, dark), [page, dark]);
  const names = useMemo(() => page.classes.map((c) => c.name), [page]);
  const two = page.runs.length > 1;
  const all: Section[] = [
    { id: "findings", has: () => true, title: "Findings", view: (run) => <Findings run={run} theme={theme} names={names} /> },
    { id: "accounts", has: (run) => run.accounts.length > 0, title: "Where the time went", view: (run) => <Accounts run={run} theme={theme} names={names} /> },
    {
      id: "latencies",
      has: (run) => run.latencies.length > 0,
      title: "Latencies",
      view: (run, other, at) => <Latencies run={run} other={other} theme={theme} at={at} />,
    },
    { id: "timeline", has: (run) => run.timeline.lanes.length > 0, title: "Timeline", view: (run, _, at) => <TimelineView run={run} theme={theme} names={names} at={at} /> },
    { id: "flame", has: (run) => run.flames.trees.length > 0, title: "Flame graph", view: (run, _, at) => <Flame flames={run.flames} theme={theme} at={at} /> },
    { id: "requests", has: (run) => run.requests.rows.length > 0, title: "Requests", view: (run) => <Requests run={run} theme={theme} /> },
    { id: "recorder", has: (run) => run.accounts.length > 0, title: "Cost and losses", view: (run) => <RecorderView run={run} /> },
  ];
  const sections = all.filter((one) => page.runs.some(one.has));
  const jump = (id: string) => {
    setSection(id);
    document.getElementById(id)?.scrollIntoView();
  };
  useEffect(() => {
    document.title = `${page.runs.map((run) => run.target).join(" and ").slice(0, 80)} - whylag`;
    document.getElementById(section)?.scrollIntoView();
  }, [page]);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const element = event.target instanceof HTMLElement ? event.target.tagName : "";
      if (["INPUT", "SELECT", "TEXTAREA"].includes(element)) return;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const at = sections[Number(event.key) - 1];
      if (event.key === "?") setHelp((open) => !open);
      else if (event.key === "Escape") setHelp(false);
      else if (event.key === "t") setWanted(dark ? "light" : "dark");
      else if (event.key === "/") document.querySelector<HTMLInputElement>("input[type=search]")?.focus();
      else if (at) jump(at.id);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
  return (
    <>
      <header>
        <a class="skip" href="#view=findings">
          whylag {page.version}
        </a>
        <nav aria-label="views">
          {sections.map((one, number) => (
            <button
              key={one.id}
              type="button"
              class={one.id === section ? "here" : ""}
              onClick={() => jump(one.id)}
            >
              <kbd>{number + 1}</kbd> {one.title}
            </button>
          ))}
        </nav>
        <button type="button" onClick={() => setWanted(dark ? "light" : "dark")}>
          <kbd>t</kbd> {dark ? "light" : "dark"}
        </button>
        <button type="button" onClick={() => setHelp(!help)} aria-expanded={help}>
          <kbd>?</kbd> help
        </button>
      </header>
      <main class={two ? "pair-of-runs" : ""}>
        {isServed() && (
          <p>
            <a href="./">all runs</a>
          </p>
        )}
        <div class="runs">
          {page.runs.map((run, number) => (
            <div key={number}>
              <h1>
                {two && <span class="dim">{number === 0 ? "before: " : "after: "}</span>}
                {run.target}
              </h1>
              <p class="dim">
                run {run.name}, {new Date(run.started_unix_ms).toISOString().replace("T", " ").slice(0, 19)}{" "}
                UTC: {run.about}
                {Object.entries(run.labels).map(([name, value]) => ` ${name}=${value}`)}
              </p>
            </div>
          ))}
        </div>
        {two && (
          <section id="compare">
            <h2>Before and after</h2>
            <Compare page={page} theme={theme} />
          </section>
        )}
        {sections.map((one) => (
          <section id={one.id} key={one.id}>
            <h2>{one.title}</h2>
            <div class="runs">
              {page.runs.map((run, number) => (
                <div key={number} data-run={number}>
                  {one.view(run, page.runs.length === 2 ? (page.runs[1 - number] ?? null) : null, String(number))}
                </div>
              ))}
            </div>
          </section>
        ))}
      </main>
      {help && <Help close={() => setHelp(false)} />}
    </>
  );
}

function Help({ close }: { close: () => void }) {
  const keys: [string, string][] = [
    ["1, 2, 3 ...", "go to a view"],
    ["t", "dark or light"],
    ["/", "search in the flame graph"],
    ["?", "this help; Escape closes it"],
    ["Tab", "to the next picture; then its own keys work"],
    ["timeline: + - 0", "zoom in, out, all of the run"],
    ["timeline: left, right", "earlier, later"],
    ["timeline: up, down", "other threads"],
    ["timeline: n, p", "the next or previous of the longest intervals"],
    ["timeline: w", "choose what is seen as the window to explain, or none"],
    ["map of seconds: arrows, Enter", "another cell, explain its time; Escape for none"],
    ["flame graph: arrows, Enter", "another frame, zoom to it; Escape for all"],
  ];
  return (
    <div class="help" role="dialog" aria-label="help">
      <h2>Keys</h2>
      <dl>
        {keys.map(([key, does]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </>
        ))}
      </dl>
      <p>
        The address has the state of every view: copy it, and whoever opens it with this file sees the
        same. Every number is that of <code>whylag explain --json</code> and <code>show --json</code>.
      </p>
      <button type="button" onClick={close}>
        close
      </button>
    </div>
  );
}
