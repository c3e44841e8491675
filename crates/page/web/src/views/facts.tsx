// Host and program as they were while a run was recorded.
import type { ShownRun } from "../wire";
import { Table } from "../ui";

export function Facts({ run }: { run: ShownRun }) {
  return (
    <Table
      title={`Facts of host and program (${run.facts.length})`}
      columns={["fact", "value", "read from"]}
      rows={run.facts.map((fact) => [fact.name, fact.value, fact.source])}
    />
  );
}
