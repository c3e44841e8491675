// What recording cost, and what it lost.
import type { RunPage } from "../types";
import { duration } from "../format";
import { Table } from "../ui";

export function RecorderView({ run }: { run: RunPage }) {
  const { costs, probes, losses, off } = run.recorder;
  return (
    <div>
      <Table title="Cost" columns={["what", "how much"]} rows={costs} open />
      <Table title={`BPF programs (${probes.length})`} columns={["program", "runs", "time"]} rows={probes} />
      {losses.length === 0 ? (
        <p>Nothing was lost while it was recorded.</p>
      ) : (
        <Table
          title={`Lost (${losses.length})`}
          columns={["what", "how many", "after", "before"]}
          rows={losses.map((loss) => [loss.kind, loss.n, duration(loss.from_ns), duration(loss.to_ns)])}
          open
        />
      )}
      {off.length > 0 && <Table title={`Off (${off.length})`} columns={["part", "why"]} rows={off} open />}
    </div>
  );
}
