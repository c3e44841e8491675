// The findings in the words of `explain`, with the picture of an interval that shows each.
import type { Finding, Picture, RunPage } from "../types";
import { set } from "../state";
import type { Theme } from "../theme";
import { duration, percent } from "../format";
import { Copy } from "../ui";
import { ChainPicture } from "./picture";

interface Shown {
  run: RunPage;
  theme: Theme;
  names: string[];
  /** Place of the run, which tells its state in the address from the other's. */
  at: string;
}

export function Findings({ run, theme, names, at }: Shown) {
  const { explanation } = run;
  return (
    <div>
      <p class="headline">{run.headline}</p>
      <p>{run.sums}</p>
      {explanation.findings.map((finding, place) => (
        <OneFinding
          key={place}
          finding={finding}
          number={place + 1}
          run={run}
          theme={theme}
          names={names}
          at={at}
        />
      ))}
      {explanation.unexplained.length > 0 && (
        <p>
          Lost time that no finding explains:{" "}
          {explanation.unexplained
            .slice(0, 5)
            .map(([account, ns]) => `${account} ${duration(ns)}`)
            .join(", ")}
        </p>
      )}
      {explanation.below_bar.length > 0 && (
        <p class="dim">
          Below the bar: {explanation.below_bar.map((b) => `${b.cause} (${b.because})`).join("; ")}
        </p>
      )}
      {explanation.not_looked_at.map((group) => (
        <p class="dim" key={group.because}>
          Not looked at: {group.because}: {group.causes.join(", ")}
        </p>
      ))}
      <p>
        In the terminal:{" "}
        {run.commands.map((c) => (
          <span key={c.command} class="labelled">
            {c.shows} <Copy command={c.command} />
          </span>
        ))}
      </p>
    </div>
  );
}

/** Shows the interval of a picture in the timeline; null if it is not among those told there. */
function seeing(run: RunPage, picture: Picture, at: string): (() => void) | null {
  const detail = run.timeline.details.find((one) => one.number === picture.number);
  if (!detail) return null;
  const margin = picture.to_ns - picture.from_ns;
  const zoom = `${Math.max(0, picture.from_ns - margin)}-${Math.min(run.length_ns, picture.to_ns + margin)}`;
  return () => {
    set({ [`interval${at}`]: String(detail.place), [`zoom${at}`]: zoom, view: "timeline" });
    document.getElementById(`timeline${at}`)?.scrollIntoView({ block: "center" });
    document.getElementById(`timeline${at}`)?.focus({ preventScroll: true });
  };
}

function OneFinding(props: Shown & { finding: Finding; number: number }) {
  const { finding, number, run } = props;
  const pictures = run.pictures.filter((picture) => picture.finding === number - 1);
  return (
    <article class="finding" data-cause={finding.cause}>
      <h3>
        {number}. <span class="cause">{finding.cause}</span>: {finding.title}
      </h3>
      <Figures finding={finding} />
      {pictures.map((picture) => (
        <ChainPicture
          key={picture.command}
          picture={picture}
          theme={props.theme}
          names={props.names}
          see={seeing(run, picture, props.at)}
        />
      ))}
      <ol class="chain">
        {finding.chain.map((link, place) => (
          <li key={place} class={link.role}>
            <span class="role">{link.role}</span>
            <span>
              {link.cause ? <b>{link.cause}: </b> : null}
              {link.text}
            </span>
          </li>
        ))}
      </ol>
      <div class="two">
        <div>
          <h4>Evidence</h4>
          <ul>
            {finding.evidence.map((evidence, place) => (
              <li key={place}>
                {evidence.text} <span class="dim">[{evidence.source}]</span>
              </li>
            ))}
          </ul>
        </div>
        <div>
          <RuledOut finding={finding} />
          <Undecided finding={finding} />
        </div>
      </div>
      <p>
        <b>Fix:</b> {finding.fix}
      </p>
      {finding.reproduce !== "" && (
        <p>
          Reproduce: <Copy command={finding.reproduce} />
        </p>
      )}
      {finding.verify !== "" && (
        <p>
          Verify: <Copy command={finding.verify} />
        </p>
      )}
    </article>
  );
}

function Figures({ finding }: { finding: Finding }) {
  return (
    <p class="figures">
      <b>{percent(finding.share)}</b> of the lost time
      {finding.wall_share > 0 && <>, {percent(finding.wall_share)} of the wall time</>}
      {finding.requests && (
        <>
          , {percent(finding.requests.ns / Math.max(1, finding.requests.total_ns))} of the{" "}
          {finding.requests.of} slowest requests
          {finding.requests.at && <> of {finding.requests.at}</>}
        </>
      )}
      ; confidence {finding.confidence.toFixed(2)}
      {finding.hurts && <>; hurts most {finding.hurts.who}</>}
      {finding.when && <>; {finding.when.text}</>}
    </p>
  );
}

function RuledOut({ finding }: { finding: Finding }) {
  return (
    <>
      <h4>Ruled out</h4>
      <ul>
        {finding.ruled_out.map((other) => (
          <li key={other.cause}>
            not <b>{other.cause}</b>: {other.because}
          </li>
        ))}
        {finding.excluded.map((other) => (
          <li key={other.what}>
            not {other.what}: {other.because}
          </li>
        ))}
      </ul>
    </>
  );
}

function Undecided({ finding }: { finding: Finding }) {
  if (finding.not_ruled_out.length + finding.doubts.length + finding.not_looked_at.length === 0) return null;
  return (
    <>
      <h4>Undecided</h4>
      <ul>
        {finding.not_ruled_out.map((other) => (
          <li key={other.cause}>
            could also be <b>{other.cause}</b>: {other.because}; to tell them apart, {other.tell_apart}
          </li>
        ))}
        {finding.not_looked_at.map((other) => (
          <li key={other.what}>
            {other.what}: {other.because}
          </li>
        ))}
        {finding.doubts.map((doubt) => (
          <li key={doubt}>{doubt}</li>
        ))}
      </ul>
    </>
  );
}
