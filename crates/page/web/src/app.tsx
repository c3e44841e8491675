// The page: views below each other, two runs beside each other.
import { useEffect, useMemo, useState } from "preact/hooks";
import { isServed } from "./data";
import { Help } from "./help";
import { type Section, SECTIONS } from "./sections";
import { useParam } from "./state";
import { isDark, theme as themeOf } from "./theme";
import { Compare } from "./views/compare";
import { Proof } from "./views/proof";
import type { ShownPage, ShownRun } from "./wire";

export function App({ page }: { page: ShownPage }) {
  const [wanted, setWanted] = useParam("theme");
  const [here, setHere] = useParam("view");
  const [help, setHelp] = useState(false);
  const dark = isDark(wanted);
  // The colours of the style are those of the theme only once it is set.
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  const theme = useMemo(() => themeOf(page.classes, dark), [page, dark]);
  const names = useMemo(() => page.classes.map((c) => c.name), [page]);
  const two = page.runs.length > 1;
  const sections = useMemo(() => SECTIONS.filter((one) => page.runs.some(one.has)), [page]);
  // What is said of the runs together stands before what each of them shows.
  const places: Place[] = [
    ...(page.proof ? [{ id: "proof", short: "Proof" }] : []),
    ...(two ? [{ id: "compare", short: "Compare" }] : []),
    ...sections,
  ];
  const jump = (id: string) => {
    setHere(id);
    document.getElementById(id)?.scrollIntoView();
  };
  const turn = () => setWanted(dark ? "light" : "dark");
  useEffect(() => {
    document.title = `${page.runs.map((run) => run.target).join(" and ").slice(0, 80)} - whylag`;
    document.getElementById(here)?.scrollIntoView();
  }, [page]);
  useKeys({ places, jump, turn, setHelp });
  const at = { version: page.version, places, here, jump, dark, turn, help, setHelp };
  return (
    <>
      <Header {...at} />
      <main class={two ? "pair-of-runs" : ""}>
        {isServed() && (
          <p>
            <a href="./">all runs</a>
          </p>
        )}
        <Titles runs={page.runs} />
        {page.proof && (
          <section id="proof">
            <h2>Proof</h2>
            <Proof proof={page.proof} theme={theme} />
          </section>
        )}
        {two && (
          <section id="compare">
            <h2>Before and after</h2>
            <Compare page={page} theme={theme} />
          </section>
        )}
        {sections.map(({ id, title, View }) => (
          <section id={id} key={id}>
            <h2>{title}</h2>
            <div class="runs">
              {page.runs.map((run, number) => (
                <div key={number} data-run={number}>
                  <View
                    run={run}
                    other={two ? (page.runs[1 - number] ?? null) : null}
                    at={String(number)}
                    theme={theme}
                    names={names}
                  />
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

/** A view that can be gone to. */
type Place = Pick<Section, "id" | "short">;

interface Keys {
  places: Place[];
  jump: (id: string) => void;
  turn: () => void;
  setHelp: (set: (open: boolean) => boolean) => void;
}

function useKeys({ places, jump, turn, setHelp }: Keys): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const element = event.target instanceof HTMLElement ? event.target.tagName : "";
      if (["INPUT", "SELECT", "TEXTAREA"].includes(element)) return;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const at = /^\d$/.test(event.key) ? places[(Number(event.key) + 9) % 10] : undefined;
      if (event.key === "?") setHelp((open) => !open);
      else if (event.key === "Escape") setHelp(() => false);
      else if (event.key === "t") turn();
      else if (event.key === "/") document.querySelector<HTMLInputElement>("input[type=search]")?.focus();
      else if (at) jump(at.id);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
}

function Header(props: Keys & { version: string; here: string; dark: boolean; help: boolean }) {
  const { places, here, jump, dark, turn, help, setHelp } = props;
  return (
    <header>
      <a class="skip" href="#view=findings">
        whylag {props.version}
      </a>
      <nav aria-label="views">
        {places.map((one, number) => (
          <button key={one.id} type="button" class={one.id === here ? "here" : ""} onClick={() => jump(one.id)}>
            <kbd>{(number + 1) % 10}</kbd> {one.short}
          </button>
        ))}
      </nav>
      <button type="button" onClick={turn}>
        <kbd>t</kbd> {dark ? "light" : "dark"}
      </button>
      <button type="button" onClick={() => setHelp((open) => !open)} aria-expanded={help}>
        <kbd>?</kbd> help
      </button>
    </header>
  );
}

function Titles({ runs }: { runs: ShownRun[] }) {
  return (
    <div class="runs">
      {runs.map((run, number) => (
        <div key={number}>
          <h1>
            {runs.length > 1 && <span class="dim">{number === 0 ? "before: " : "after: "}</span>}
            {run.target}
          </h1>
          <p class="dim">
            run {run.name}, {new Date(run.started_unix_ms).toISOString().replace("T", " ").slice(0, 19)} UTC:{" "}
            {run.about}
            {Object.entries(run.labels).map(([name, value]) => ` ${name}=${value}`)}
          </p>
        </div>
      ))}
    </div>
  );
}
