// What the served page shows before a run is chosen: all runs, in a list, in grids and over time, and
// the host as it is now.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { checkup, grids, runs, trends } from "./data";
import { Help } from "./help";
import { set, useParam } from "./state";
import { isDark, type Theme, theme as themeOf } from "./theme";
import { CheckupView } from "./views/checkup";
import { Grids } from "./views/grid";
import { RunList } from "./views/runs";
import { Trends } from "./views/trends";

/** Shows a run, or two beside each other. */
export type Open = (run: number, other?: number) => void;

interface View {
  id: string;
  title: string;
  /** Asks for what it needs, and gives what is to be seen. */
  load: (open: Open) => Promise<(theme: Theme) => ComponentChildren>;
}

const VIEWS: View[] = [
  {
    id: "runs",
    title: "Runs",
    load: async (open) => {
      const rows = await runs();
      return () => <RunList rows={rows} open={open} />;
    },
  },
  {
    id: "grid",
    title: "Grid",
    load: async (open) => {
      const all = await grids();
      return (theme) => <Grids all={all} theme={theme} open={open} />;
    },
  },
  {
    id: "trends",
    title: "Over time",
    load: async (open) => {
      const all = await trends();
      return (theme) => <Trends all={all} theme={theme} open={open} />;
    },
  },
  {
    id: "doctor",
    title: "This host",
    load: async () => {
      const [page, rows] = await Promise.all([checkup(""), runs()]);
      return () => <CheckupView now={page} rows={rows} />;
    },
  },
];

export function Home({ open }: { open: () => void }) {
  const [wanted, setWanted] = useParam("theme");
  const [list, setList] = useParam("list");
  const [help, setHelp] = useState(false);
  const [shown, setShown] = useState<((theme: Theme) => ComponentChildren) | null>(null);
  const dark = isDark(wanted);
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  const theme = useMemo(() => themeOf([], dark), [dark]);
  const view = VIEWS.find(({ id }) => id === list) ?? VIEWS[0];
  useEffect(() => {
    if (!view) return;
    let isWanted = true;
    const show: Open = (run, other) => {
      set({ run: String(run), with: other === undefined ? "" : String(other) });
      open();
    };
    document.title = `${view.title} - whylag`;
    setShown(null);
    view
      .load(show)
      .then((draw) => isWanted && setShown(() => draw))
      .catch((error: unknown) => {
        const text = error instanceof Error ? error.message : String(error);
        if (isWanted) setShown(() => () => <p class="failed">{text}</p>);
      });
    return () => {
      isWanted = false;
    };
  }, [view]);
  const turn = () => setWanted(dark ? "light" : "dark");
  useKeys(setList, turn, setHelp);
  return (
    <>
      <header>
        <span class="skip">whylag</span>
        <nav aria-label="views">
          {VIEWS.map(({ id, title }, number) => (
            <button key={id} type="button" class={id === view?.id ? "here" : ""} onClick={() => setList(id)}>
              <kbd>{number + 1}</kbd> {title}
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
      <main data-view={shown ? view?.id : ""}>
        <h1>{view?.title}</h1>
        {shown ? shown(theme) : <p class="dim">Reading the store ...</p>}
      </main>
      {help && <Help close={() => setHelp(false)} />}
    </>
  );
}

function useKeys(
  setList: (id: string) => void,
  turn: () => void,
  setHelp: (set: (open: boolean) => boolean) => void,
): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const element = event.target instanceof HTMLElement ? event.target.tagName : "";
      if (["INPUT", "SELECT", "TEXTAREA"].includes(element)) return;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const at = VIEWS[Number(event.key) - 1];
      if (event.key === "?") setHelp((open) => !open);
      else if (event.key === "Escape") setHelp(() => false);
      else if (event.key === "t") turn();
      else if (event.key === "/") document.querySelector<HTMLInputElement>("input[type=search]")?.focus();
      else if (at) setList(at.id);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
}
