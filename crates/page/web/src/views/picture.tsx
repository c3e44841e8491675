// Who waited for whom, on an axis of time.
import type { Picture } from "../types";
import { inkOn, type Theme } from "../theme";
import { duration, moment, ticks } from "../format";
import { Copy, Table } from "../ui";

type PictureLane = Picture["lanes"][number];

const WIDTH = 900;
const LANE = 46;
const LEFT = 8;

export function ChainPicture(props: { picture: Picture; theme: Theme; names: string[]; see: (() => void) | null }) {
  const { picture, theme, names, see } = props;
  const span = picture.to_ns - picture.from_ns;
  const margin = span * 0.03;
  const from = picture.from_ns - margin;
  const to = picture.to_ns + margin;
  const x = (ns: number) =>
    LEFT + ((Math.min(to, Math.max(from, ns)) - from) / (to - from)) * (WIDTH - 2 * LEFT);
  const height = picture.lanes.length * LANE + 24;
  return (
    <figure class="picture">
      <figcaption>Who waited for whom, in one interval (n = 1): {picture.text}</figcaption>
      <div class="scroll">
        <svg
          viewBox={`0 0 ${WIDTH} ${height}`}
          role="img"
          aria-label={`who waited for whom: ${picture.lanes.map((l) => `${l.name} ${l.role}`).join(", ")}`}
        >
          <defs>
            <pattern id="somewhere" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <line x1="0" y1="0" x2="0" y2="6" stroke={theme.ground} stroke-width="3" />
            </pattern>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path d="M0,0 L8,4 L0,8 z" fill={theme.text} />
            </marker>
          </defs>
          {ticks(from, to, 8).map((at) => (
            <g key={at}>
              <line x1={x(at)} x2={x(at)} y1={0} y2={height - 22} stroke={theme.line} />
              <text x={Math.min(WIDTH - 24, Math.max(24, x(at)))} y={height - 8} fill={theme.dim} font-size="11" text-anchor="middle">
                {moment(at, to - from)}
              </text>
            </g>
          ))}
          {picture.lanes.map((lane, number) => (
            <Lane key={number} lane={lane} top={number * LANE} x={x} theme={theme} />
          ))}
        </svg>
      </div>
      <p class="dim">
        Time since the start of the run; an arrow is a wake-up; hatched: so long within this time,
        drawn at its end. <Copy command={picture.command} />{" "}
        {see && (
          <button type="button" onClick={see}>
            see it in the timeline
          </button>
        )}
      </p>
      <Table
        title="The same as a table"
        columns={["thread", "role", "from", "for", "what", "class"]}
        rows={picture.lanes.flatMap((lane) =>
          lane.bars.map((bar) => [
            lane.name,
            lane.role,
            moment(bar.from_ns, span),
            duration(bar.to_ns - bar.from_ns),
            bar.text,
            names[bar.class] ?? "",
          ]),
        )}
      />
    </figure>
  );
}

function Lane(props: { lane: PictureLane; top: number; x: (ns: number) => number; theme: Theme }) {
  const { lane, top, x, theme } = props;
  return (
    <g>
      <text x={LEFT} y={top + 13} fill={theme.text} font-size="12">
        {lane.name}
        <tspan fill={theme.dim}> {lane.role}</tspan>
      </text>
      {lane.bars.map((bar, place) => {
        const [left, right] = [x(bar.from_ns), x(bar.to_ns)];
        const fill = theme.classes[bar.class] ?? theme.dim;
        const box = { x: left, y: top + 20, width: Math.max(1.5, right - left), height: 18, fill };
        return (
          <g key={place}>
            <title>{bar.text}</title>
            <rect {...box} rx="2" />
            {bar.somewhere && <rect {...box} fill="url(#somewhere)" opacity="0.35" rx="2" />}
            {right - left > 7 * bar.text.length && (
              <text x={left + 5} y={top + 33} font-size="11" fill={inkOn(box.fill)}>
                {bar.text}
              </text>
            )}
          </g>
        );
      })}
      {lane.ends_ns !== null && (
        <line
          class="arrow"
          x1={x(lane.ends_ns)}
          x2={x(lane.ends_ns)}
          y1={top + 20}
          y2={top - LANE + 40}
          stroke={theme.text}
          stroke-width="1.5"
          marker-end="url(#arrow)"
        />
      )}
    </g>
  );
}
