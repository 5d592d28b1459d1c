// What is known of one event: its arguments and times, why it was derived, and what it led to.

import { useEffect, useState } from "preact/hooks";
import { ask, latest } from "./api.js";
import { DerivationGraph } from "./graph.jsx";
import { showLength, showTime } from "./timescale.js";

const KINDS = { event: "event", derived: "derived on the way", detected: "detection" };
const newest = latest();

export function Inspector({ item, moment, version, kind, onSelect, onGraph, onWhatIf, onClose }) {
  const [answer, setAnswer] = useState(null);
  const [direction, setDirection] = useState("why");
  const [all, setAll] = useState(false);
  const [way, setWay] = useState(0);
  const [error, setError] = useState(null);
  useEffect(() => { setDirection(item.kind === "event" ? "leads-to" : "why"); setAll(false); setWay(0); }, [item.type, item.id]);
  useEffect(() => {
    const body = { type: item.type, id: item.id, moment };
    const about = ask("item", { type: item.type, id: item.id });
    const graph = direction === "why" ? ask("why", { ...body, all }) : ask("leads-to", body);
    newest(Promise.all([about, graph]), ([details, found]) => { setAnswer({ details, found, direction }); setError(null); }, setError);
  }, [item.type, item.id, direction, all, moment, item.kind === "event" ? version : 0]);
  const graph = answer && (answer.direction === "why" ? answer.found.derivations[Math.min(way, answer.found.derivations.length - 1)] : answer.found.graph);
  useEffect(() => { onGraph(graph || null); }, [graph]);
  if (error) return <Frame onClose={onClose} title={item.type}><p class="problem">{error.message}{error.hint && <small>{error.hint}</small>}</p></Frame>;
  if (!answer || answer.details.id !== item.id) return <Frame onClose={onClose} title={item.type}><p class="quiet">…</p></Frame>;
  const { details, found } = answer;
  return (
    <Frame onClose={onClose} title={details.type} tag={KINDS[details.kind]} kind={details.kind}>
      <dl class="facts">
        {details.arguments.map((argument) => [<dt key={`n${argument.name}`}>{argument.name}</dt>, <dd key={`v${argument.name}`}><code>{argument.value}</code></dd>])}
        <dt>{details.start === details.end ? "time" : "from"}</dt><dd>{showTime(details.start, kind)}</dd>
        {details.start !== details.end && [<dt key="to">to</dt>, <dd key="end">{showTime(details.end, kind)} <span class="quiet">({showLength(details.end - details.start, kind)})</span></dd>]}
        {details.late && [<dt key="a">arrived</dt>, <dd key="b"><span class="tag late">late</span> {showTime(details.arrived, kind)}</dd>]}
        {details.refused && [<dt key="a">arrived</dt>, <dd key="b"><span class="tag late">too late</span> {showTime(details.arrived, kind)}; it does not count</dd>]}
        {details.gone !== null && [<dt key="c">{details.kind === "event" ? "revoked" : "retracted"}</dt>, <dd key="d"><span class="tag gone">taken back</span> {showTime(details.gone, kind)}</dd>]}
        <dt>id</dt><dd class="quiet"><code>{details.id}</code></dd>
      </dl>
      <div class="choices" role="tablist">
        {details.kind !== "event" && <button role="tab" aria-selected={direction === "why"} onClick={() => setDirection("why")}>Why</button>}
        <button role="tab" aria-selected={direction === "leads-to"} onClick={() => setDirection("leads-to")}>Leads to</button>
        {onWhatIf && details.kind === "event" && <span class="act">What if: <button onClick={() => onWhatIf(details, "revoke")}>revoke</button> <button onClick={() => onWhatIf(details, "move")}>move</button></span>}
      </div>
      {direction === "why" && answer.direction === "why" && (
        <>
          {found.retracted && <p class="quiet">It was retracted; this is why it stood before that.</p>}
          {graph && <DerivationGraph graph={graph} kind={kind} onSelect={onSelect} label={`Why ${details.text}`} />}
          {(found.more > 0 || found.derivations.length > 1) && (
            <p class="pager">
              {found.derivations.length > 1 && <>
                <button disabled={way === 0} onClick={() => setWay(way - 1)} aria-label="Previous derivation">‹</button>
                derivation {way + 1} of {found.derivations.length}
                <button disabled={way >= found.derivations.length - 1} onClick={() => setWay(way + 1)} aria-label="Next derivation">›</button>
              </>}
              {found.more > 0 && <button onClick={() => setAll(true)}>Show all {found.more + 1} derivations</button>}
            </p>
          )}
        </>
      )}
      {direction === "leads-to" && answer.direction === "leads-to" && (
        found.count ? <DerivationGraph graph={found.graph} kind={kind} onSelect={onSelect} label={`What ${details.text} led to`} />
          : <p class="quiet">Nothing rests on it.</p>
      )}
      {direction === "leads-to" && found.capped && <p class="quiet">There are too many later events: some were not looked at.</p>}
    </Frame>
  );
}

function Frame({ title, tag, kind, onClose, children }) {
  return (
    <aside class="inspector" aria-label="Details">
      <header>
        <h2 class={kind || ""}>{title}</h2>
        {tag && <span class="quiet">{tag}</span>}
        <button class="close" onClick={onClose} aria-label="Close details">×</button>
      </header>
      {children}
    </aside>
  );
}
