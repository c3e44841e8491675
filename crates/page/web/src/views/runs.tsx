// The list of stored runs, of the served page alone.
import { useState } from "preact/hooks";
import type { Open } from "../home";
import { useParam } from "../state";
import type { RunRow } from "../types";

export function RunList({ rows, open }: { rows: RunRow[]; open: Open }) {
  const [search, setSearch] = useParam("runs");
  const [chosen, setChosen] = useState<number[]>([]);
  const text = (row: RunRow) => `${row.id} ${row.target} ${row.cause ?? ""} ${row.labels}`.toLowerCase();
  const pair = [...chosen].sort((a, b) => a - b);
  return (
    <>
      <p class="controls">
        <label>
          Search <input type="search" value={search} onInput={(e) => setSearch(e.currentTarget.value)} />
        </label>
        <button
          type="button"
          disabled={pair.length !== 2}
          onClick={() => open(pair[0] ?? 0, pair[1] ?? 0)}
        >
          compare two
        </button>
      </p>
      <div class="scroll">
        <table class="list">
          <thead>
            <tr>
              {["", "run", "what", "started (UTC)", "length", "threads", "leading cause", "labels"].map((c) => (
                <th key={c}>{c}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows
              .filter((row) => text(row).includes(search.toLowerCase()))
              .map((row) => (
                <tr key={row.id}>
                  <td>
                    <input
                      type="checkbox"
                      aria-label={`choose run ${row.id}`}
                      checked={chosen.includes(row.id)}
                      onChange={() =>
                        setChosen(
                          chosen.includes(row.id)
                            ? chosen.filter((id) => id !== row.id)
                            : [...chosen.slice(-1), row.id],
                        )
                      }
                    />
                  </td>
                  <td>
                    <button type="button" onClick={() => open(row.id)}>
                      {row.id}
                    </button>
                  </td>
                  <td>{row.target}</td>
                  <td>{new Date(row.started_unix_ms).toISOString().slice(0, 19).replace("T", " ")}</td>
                  <td>{row.length}</td>
                  <td>{row.threads}</td>
                  <td>{row.cause ?? ""}</td>
                  <td>{row.labels}</td>
                </tr>
              ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
