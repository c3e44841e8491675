// What whylag doctor says of this host, and how it differs from where a run was recorded.
import { useEffect, useState } from "preact/hooks";
import { checkup } from "../data";
import { useParam } from "../state";
import type { CheckedSubject, CheckupDiff, CheckupPage, RunRow } from "../types";
import { Copy, Table } from "../ui";

export function CheckupView({ now, rows }: { now: CheckupPage; rows: RunRow[] }) {
  return (
    <>
      <p>{now.summary}</p>
      <p class="dim">
        In the terminal: <Copy command="whylag doctor" />
      </p>
      <Beside rows={rows} />
      {now.subjects.map((subject) => (
        <Subject key={subject.title} subject={subject} />
      ))}
    </>
  );
}

/** This host now, and a run. */
function Beside({ rows }: { rows: RunRow[] }) {
  const [run, setRun] = useParam("host-of");
  const [found, setFound] = useState<CheckupDiff | string | null>(null);
  useEffect(() => {
    setFound(null);
    if (run === "") return;
    let isWanted = true;
    checkup(run)
      .then(({ differences }) => isWanted && setFound(differences))
      .catch((error: unknown) => isWanted && setFound(error instanceof Error ? error.message : String(error)));
    return () => {
      isWanted = false;
    };
  }, [run]);
  return (
    <div>
      <label>
        What differs from the host of{" "}
        <select value={run} onChange={(event) => setRun(event.currentTarget.value)}>
          <option value="">(choose a run)</option>
          {rows.map((row) => (
            <option key={row.id} value={String(row.id)}>
              run {row.id}: {row.target.slice(0, 60)}
            </option>
          ))}
        </select>
      </label>
      {typeof found === "string" && <p class="failed">{found}</p>}
      {found !== null && typeof found !== "string" && <Differences found={found} />}
    </div>
  );
}

/** What differs between two hosts, those known to matter first. */
export function Differences({ found }: { found: CheckupDiff }) {
  const matter = found.differences.filter((one) => one.matters);
  const others = found.differences.filter((one) => !one.matters);
  const table = (title: string, some: CheckupDiff["differences"], open: boolean) =>
    some.length > 0 && (
      <Table
        title={`${title} (${some.length})`}
        columns={["", ...found.names]}
        rows={some.map((one) => [
          <span class={one.is_bad ? "result bad" : ""}>{one.name}</span>,
          one.first,
          one.second,
        ])}
        open={open}
      />
    );
  return (
    <div class="differences">
      <p>
        {found.differences.length} of {found.compared} checks or facts differ.
      </p>
      {table("Known to matter for latency", matter, true)}
      {table("Others", others, false)}
      {found.left_out.map((line) => (
        <p class="dim" key={line}>
          Not compared: {line}
        </p>
      ))}
    </div>
  );
}

function Subject({ subject }: { subject: CheckedSubject }) {
  return (
    <section>
      <h2>{subject.title}</h2>
      <div class="scroll">
        <table class="list">
          <thead>
            <tr>
              {["result", "check", "found", "what to do", "read from"].map((column) => (
                <th key={column}>{column}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {subject.checks.map((check) => (
              <tr key={check.id}>
                <td class={`result ${check.result}`}>{check.word}</td>
                <td title={check.why}>{check.id}</td>
                <td>
                  {check.fact}
                  {check.result !== "good" && check.why !== "" && <div class="dim">{check.why}</div>}
                </td>
                <td>{check.advice}</td>
                <td class="dim">{check.source}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
