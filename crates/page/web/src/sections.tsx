// The views of a run, in the order in which they stand below each other.
import type { ComponentChildren } from "preact";
import type { Theme } from "./theme";
import type { ShownRun } from "./wire";
import { Accounts } from "./views/accounts";
import { Facts } from "./views/facts";
import { Findings } from "./views/findings";
import { Flame } from "./views/flame";
import { Latencies } from "./views/latency";
import { RecorderView } from "./views/recorder";
import { Requests } from "./views/requests";
import { TimelineView } from "./views/timeline";

/** What a view is drawn of. */
export interface Given {
  run: ShownRun;
  /** The other of two runs. */
  other: ShownRun | null;
  /** Place of the run, which tells its state in the address from the other's. */
  at: string;
  theme: Theme;
  /** Of the classes. */
  names: string[];
}

export interface Section {
  id: string;
  title: string;
  /** The same in the line of views, where all have to fit. */
  short: string;
  /** True if a run has something to show there. */
  has: (run: ShownRun) => boolean;
  View: (given: Given) => ComponentChildren;
}

export const SECTIONS: Section[] = [
  { id: "findings", title: "Findings", short: "Findings", has: () => true, View: (given) => <Findings {...given} /> },
  { id: "accounts", title: "Where the time went", short: "Time", has: (run) => run.accounts.length > 0, View: (given) => <Accounts {...given} /> },
  { id: "latencies", title: "Latencies", short: "Latencies", has: (run) => run.latencies.length > 0, View: (given) => <Latencies {...given} /> },
  { id: "timeline", title: "Timeline", short: "Timeline", has: (run) => run.timeline.lanes.length > 0, View: (given) => <TimelineView {...given} /> },
  {
    id: "flame",
    title: "Flame graph", short: "Flame graph",
    has: (run) => run.flames.trees.length > 0,
    View: ({ run, theme, at }) => <Flame flames={run.flames} theme={theme} at={at} />,
  },
  { id: "requests", title: "Requests", short: "Requests", has: (run) => run.requests.rows.length > 0, View: (given) => <Requests {...given} /> },
  { id: "facts", title: "Host and program", short: "Host", has: (run) => run.facts.length > 0, View: (given) => <Facts run={given.run} /> },
  { id: "recorder", title: "Cost and losses", short: "Cost", has: (run) => run.accounts.length > 0, View: (given) => <RecorderView run={given.run} /> },
];
