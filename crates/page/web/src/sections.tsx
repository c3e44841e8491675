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
  /** True if a run has something to show there. */
  has: (run: ShownRun) => boolean;
  View: (given: Given) => ComponentChildren;
}

export const SECTIONS: Section[] = [
  { id: "findings", title: "Findings", has: () => true, View: (given) => <Findings {...given} /> },
  { id: "accounts", title: "Where the time went", has: (run) => run.accounts.length > 0, View: (given) => <Accounts {...given} /> },
  { id: "latencies", title: "Latencies", has: (run) => run.latencies.length > 0, View: (given) => <Latencies {...given} /> },
  { id: "timeline", title: "Timeline", has: (run) => run.timeline.lanes.length > 0, View: (given) => <TimelineView {...given} /> },
  {
    id: "flame",
    title: "Flame graph",
    has: (run) => run.flames.trees.length > 0,
    View: ({ run, theme, at }) => <Flame flames={run.flames} theme={theme} at={at} />,
  },
  { id: "requests", title: "Requests", has: (run) => run.requests.rows.length > 0, View: (given) => <Requests {...given} /> },
  { id: "facts", title: "Host and program", has: (run) => run.facts.length > 0, View: (given) => <Facts run={given.run} /> },
  { id: "recorder", title: "Cost and losses", has: (run) => run.accounts.length > 0, View: (given) => <RecorderView run={given.run} /> },
];
