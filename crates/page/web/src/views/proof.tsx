// What `whylag prove` said of the runs that are shown: each pair as a picture, and its tables.
import type { ProofPage, ProofPair } from "../types";
import type { Theme } from "../theme";
import { Table } from "../ui";

const WIDTH = 900;
const HEIGHT = 190;
const LEFT = 70;
const BOTTOM = 24;

export function Proof({ proof, theme }: { proof: ProofPage; theme: Theme }) {
  const { pairs } = proof;
  return (
    <div>
      <p class="headline">{proof.summary}</p>
      <p>Change: {proof.change}</p>
      {proof.warnings.map((warning) => (
        <p class="warning" key={warning}>
          {warning}
        </p>
      ))}
      {pairs.length > 0 && <Pairs proof={proof} theme={theme} />}
      <Table
        title="Figure (medians of pairs)"
        columns={["", "before", "after", "after/before", "p", "pairs"]}
        rows={proof.measured}
        open
      />
      {proof.recording !== null && <p class="dim">{proof.recording}</p>}
      {proof.causes.length > 0 && (
        <Table
          title={`Causes (${proof.causes.length})`}
          columns={["", "runs before", "runs after", "wall time before", "wall time after", "p"]}
          rows={proof.causes}
          open
        />
      )}
      {proof.accounts.length > 0 && (
        <Table
          title={`Accounts that changed (${proof.accounts.length}): mean of a run, all threads`}
          columns={["account", "before", "after", "p"]}
          rows={proof.accounts}
        />
      )}
      {proof.latencies.length > 0 && (
        <Table
          title={`Latencies that changed (${proof.latencies.length}): after over before`}
          columns={["latency", "p50", "p99", "n before", "n after"]}
          rows={proof.latencies}
        />
      )}
      {proof.differences.length > 0 && (
        <>
          <h4>What else differs</h4>
          <ul>
            {proof.differences.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        </>
      )}
      <p class="dim">{proof.legend}</p>
    </div>
  );
}

function Pairs({ proof, theme }: { proof: ProofPage; theme: Theme }) {
  const { pairs, figure } = proof;
  const recorded = pairs.filter((pair) => pair.recorded).length;
  return (
    <figure class="picture">
      <figcaption>
        {figure} of each pair (n = {pairs.length} pairs, {recorded} of them recorded), from 0 on; hollow: before,
        filled: after{recorded < pairs.length && ", pale: without whylag"}.
      </figcaption>
      <div class="scroll">
        <Plot pairs={pairs} theme={theme} />
      </div>
      <Table
        title={`The same as a table (${pairs.length} pairs)`}
        columns={["pair", "run before", "run after", "before", "after"]}
        rows={pairs.map(({ number, runs, words }) => [
          number,
          runs[0] ?? "not recorded",
          runs[1] ?? "not recorded",
          ...words,
        ])}
      />
    </figure>
  );
}

function Plot({ pairs, theme }: { pairs: ProofPair[]; theme: Theme }) {
  const all = pairs.flatMap(({ values, words }) => values.map((value, side) => ({ value, word: words[side] ?? "" })));
  const largest = all.reduce((most, one) => (one.value > most.value ? one : most), { value: 0, word: "" });
  const top = largest.value > 0 ? largest.value : 1;
  const y = (value: number) => 12 + (1 - Math.max(0, value) / top) * (HEIGHT - BOTTOM - 20);
  const step = (WIDTH - LEFT) / pairs.length;
  const every = Math.ceil(pairs.length / 30);
  return (
    <svg
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={`before and after of ${pairs.length} pairs; a table follows`}
    >
      {[largest, { value: 0, word: "0" }].map(({ value, word }) => (
        <g key={word}>
          <line x1={LEFT} x2={WIDTH} y1={y(value)} y2={y(value)} stroke={theme.line} />
          <text x={LEFT - 8} y={y(value) + 4} fill={theme.dim} font-size="11" text-anchor="end">
            {word}
          </text>
        </g>
      ))}
      {pairs.map(({ number, recorded, values, words }, place) => {
        const x = LEFT + (place + 0.5) * step;
        const [before, after] = [y(values[0]), y(values[1])];
        return (
          <g key={number} opacity={recorded ? 1 : 0.45}>
            <title>{`pair ${number}: ${words.join(" to ")}`}</title>
            <line x1={x} x2={x} y1={before} y2={after} stroke={theme.accent} stroke-width="1.5" />
            <circle cx={x} cy={before} r="4.5" fill={theme.ground} stroke={theme.accent} stroke-width="1.5" />
            <circle class="after" cx={x} cy={after} r="4.5" fill={theme.accent} />
            {place % every === 0 && (
              <text x={x} y={HEIGHT - 8} fill={theme.dim} font-size="11" text-anchor="middle">
                {number}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}
