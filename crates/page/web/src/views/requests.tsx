// The slow requests and messages, as lanes with their parts.
import type { RunPage } from "../types";
import type { Theme } from "../theme";
import { duration } from "../format";
import { Copy, Table } from "../ui";

export function Requests({ run, theme }: { run: RunPage; theme: Theme }) {
  const { rows, basis } = run.requests;
  if (rows.length === 0) return <p>{basis}</p>;
  const longest = Math.max(...rows.map((row) => row.ns));
  return (
    <div>
      <p class="dim">
        {basis}; the longest bar is {duration(longest)}. Pale: before a thread began to work on it.
      </p>
      <div class="bars">
        {rows.slice(0, 20).map((row) => (
          <div class="bar-row" key={row.number}>
            <span class="bar-name">
              {row.number}. {row.name}
            </span>
            <span class="bar" style={{ width: `${(100 * row.ns) / longest}%` }}>
              {row.parts.map((part, place) => (
                <span
                  key={place}
                  class={part.waiting ? "piece waiting" : "piece"}
                  title={`${part.name}: ${part.time}`}
                  style={{ flexGrow: String(Math.max(1, part.ns)), background: theme.accent }}
                />
              ))}
            </span>
            <span class="dim">{row.time}</span>
          </div>
        ))}
      </div>
      <Table
        title={`Requests (${rows.length})`}
        columns={["number", "request", "at", "took", "parts", "command"]}
        rows={rows.map((row) => [
          row.number,
          row.name,
          duration(row.from_ns, 6),
          row.time,
          row.parts.map((part) => `${part.name} ${part.time}`).join(", "),
          <Copy key="c" command={row.command} />,
        ])}
      />
    </div>
  );
}
