// Two runs beside each other: causes and accounts, before and after.
import type { Page } from "../types";
import type { Theme } from "../theme";
import { Table } from "../ui";

export function Compare({ page, theme }: { page: Page; theme: Theme }) {
  const [before, after] = page.runs;
  if (!before || !after) return null;
  const most = Math.max(0.001, ...page.differences.flatMap((row) => row.share));
  return (
    <div>
      <div class="two">
        {[before, after].map((run, place) => (
          <div key={place}>
            <h4>
              {place === 0 ? "Before" : "After"}: {run.target}
            </h4>
            <p class="headline small">{run.headline}</p>
          </div>
        ))}
      </div>
      <p class="dim">Part of the wall time in each account, before above after; n is in each run.</p>
      <div class="bars">
        {page.differences.slice(0, 14).map((row) => (
          <div class="bar-row" key={row.account}>
            <span class="bar-name">{row.account}</span>
            <span class="pair">
              {row.share.map((share, place) => (
                <span
                  key={place}
                  class={place === 0 ? "half before" : "half"}
                  style={{
                    width: `${(100 * share) / most}%`,
                    background: theme.classes[row.class] ?? "",
                  }}
                />
              ))}
            </span>
            <span class="dim">{row.shares.join(" to ")}</span>
          </div>
        ))}
      </div>
      <Table
        title={`Accounts of both (${page.differences.length})`}
        columns={["account", "before", "part", "after", "part"]}
        rows={page.differences.map((row) => [
          row.account,
          row.time[0],
          row.shares[0],
          row.time[1],
          row.shares[1],
        ])}
      />
    </div>
  );
}
