// What if: changes to a copy of the session, what would appear and disappear, and why.

import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "./api.js";
import { download, EventLink, Problem } from "./event_link.jsx";
import { DerivationGraph } from "./graph.jsx";
import { Timeline } from "./timeline.js";
import { showTime } from "./timescale.js";
import { Miss } from "./why_not.jsx";

export function WhatIfView({ about, state, moment, trial, setTrial, draft, onOpen, onPlace }) {
  const { edits, result } = trial;
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const changed = Object.keys(draft).length > 0;
  const setEdits = (next) => setTrial({ edits: next, result: null, rules: trial.rules });
  const run = async () => {
    setBusy(true);
    setError(null);
    try {
      const sources = changed && trial.rules ? draft : {};
      const answer = await ask("what-if", { edits: edits.map(({ about: _, ...edit }) => edit), sources, moment });
      setTrial({ ...trial, result: answer });
    } catch (failure) {
      setError(failure);
      setTrial({ ...trial, result: null });
    }
    setBusy(false);
  };
  const ready = edits.length > 0 || (changed && trial.rules);
  return (
    <section class="page" aria-label="What if">
      <p class="quiet">Changes are made to a copy of the session{moment === null ? "" : ` as of ${showTime(moment, about.clockKind)}`}; the session itself goes on as it is. Click an event in the timeline to move or revoke it.</p>
      <div class="edit-forms">
        <AddEvent about={about} onEdit={(edit) => setEdits([...edits, edit])} />
        <ChangeFact onEdit={(edit) => setEdits([...edits, edit])} />
      </div>
      <ul class="edits" aria-label="Changes">
        {edits.map((edit, i) => (
          <li key={i}>
            <EditRow {...{ edit, about }} onChange={(next) => setEdits(edits.map((each, k) => (k === i ? next : each)))} />
            <button class="plain" aria-label={`Leave out: ${words(edit)}`} onClick={() => setEdits(edits.filter((_, k) => k !== i))}>leave out</button>
          </li>
        ))}
        {changed && (
          <li><label class="check"><input type="checkbox" checked={trial.rules} onChange={(event) => setTrial({ ...trial, result: null, rules: event.currentTarget.checked })} /> with the rules as they are edited</label> <a href="#rules">show them</a></li>
        )}
        {!edits.length && !changed && <li class="quiet">Nothing is changed yet.</li>}
      </ul>
      <p>
        <button class="primary" disabled={busy || !ready} onClick={run}>{busy ? "Running…" : "What would change?"}</button>{" "}
        {(ready || result) && <button disabled={busy} onClick={() => setTrial({ edits: [], result: null, rules: false })}>Discard</button>}
      </p>
      <Problem error={error} />
      {result && <Result {...{ result, about, state, onOpen, onPlace }} />}
    </section>
  );
}

function words(edit) {
  return { add: `add ${edit.event}`, revoke: `revoke ${edit.about}`, move: `move ${edit.about}`, assert: `assert ${edit.fact}`, retract: `retract ${edit.fact}` }[edit.kind];
}

function EditRow({ edit, about, onChange }) {
  const verb = { add: "add", revoke: "revoke", move: "move", assert: "assert the fact", retract: "retract the fact" }[edit.kind];
  const text = edit.event || edit.fact || edit.about;
  const shift = (unit) => (event) => {
    const by = Math.round(Number(event.currentTarget.value) * unit);
    onChange({ ...edit, start: edit.from + by, end: edit.to + by });
  };
  const unit = about.clockKind === "logical" ? 1 : 6e7;
  return (
    <>
      <b class={edit.kind}>{verb}</b> <code>{text}</code>
      {edit.kind === "move" && <> by <input type="number" step="any" aria-label="Move by" value={(edit.start - edit.from) / unit} onInput={shift(unit)} /> {unit === 1 ? "ticks" : "minutes"}, to {showTime(edit.end, about.clockKind)}</>}
      {edit.time && <> from {edit.time} on</>}{" "}
    </>
  );
}

function AddEvent({ about, onEdit }) {
  const [text, setText] = useState("");
  const input = Object.entries(about.types).find(([, type]) => type.kind === "event");
  const when = about.clockKind === "logical" ? "3" : "'2026-07-01 12:30'";
  const example = input ? `${input[0]}(${input[1].attributes.join(", ")}) @ ${when}` : "";
  return (
    <form onSubmit={(event) => { event.preventDefault(); if (text.trim()) onEdit({ kind: "add", event: text.trim() }); setText(""); }}>
      <label>Add an event <input type="text" size={44} placeholder={example} value={text} onInput={(event) => setText(event.currentTarget.value)} /></label>
      <button disabled={!text.trim()}>Add</button>
    </form>
  );
}

function ChangeFact({ onEdit }) {
  const [text, setText] = useState("");
  const [time, setTime] = useState("");
  const send = (kind) => { onEdit({ kind, fact: text.trim(), time: time.trim() }); setText(""); setTime(""); };
  return (
    <form onSubmit={(event) => { event.preventDefault(); if (text.trim()) send("assert"); }}>
      <label>A fact <input type="text" size={26} placeholder="near('creek', 's3')" value={text} onInput={(event) => setText(event.currentTarget.value)} /></label>
      <label>from <input type="text" size={16} placeholder="the beginning" value={time} onInput={(event) => setTime(event.currentTarget.value)} /></label>
      <button disabled={!text.trim()}>Assert</button>
      <button type="button" disabled={!text.trim()} onClick={() => send("retract")}>Retract</button>
    </form>
  );
}

function Result({ result, about, state, onOpen, onPlace }) {
  const { counts } = result;
  return (
    <div class="result" aria-live="polite">
      <h2><span class="gained">{counts.gained.toLocaleString("en")} appear</span>, <span class="lost">{counts.lost.toLocaleString("en")} disappear</span>, {counts.same.toLocaleString("en")} stay</h2>
      {result.refused.length > 0 && <p class="problem">Too late to count, as the lateness is: {result.refused.join(", ")}</p>}
      {counts.gained + counts.lost > 0 && <ChangesOverTime {...{ result, about, state }} />}
      <Changed title="Appear" kind="gained" events={result.gained} {...{ about, onOpen, onPlace }} />
      <Changed title="Disappear" kind="lost" events={result.lost} {...{ about, onOpen, onPlace }} />
      <p>
        {result.case ? <button onClick={() => download("what_if.toml", result.case, "application/toml")}>Save as a test case</button> : <span class="quiet">No test case: {result.noCase}.</span>}
      </p>
    </div>
  );
}

function Changed({ title, kind, events, about, onOpen, onPlace }) {
  if (!events.length) return null;
  return (
    <section class={`changed ${kind}`} aria-label={title}>
      {events.map((event, i) => (
        <details key={`${event.type} ${event.id}`} open={i === 0 && event.kind === "detected"}>
          <summary><span class="sign">{kind === "gained" ? "+" : "−"}</span> <code class={event.kind}>{event.type}({event.args.join(", ")})</code> <span class="quiet">{event.start === event.end ? "" : `${showTime(event.start, about.clockKind)} to `}{showTime(event.end, about.clockKind)}</span></summary>
          <div class="because">
            {event.misses && event.misses.map((miss) => <Miss key={miss.rule} clock={about.clockKind} {...{ miss, onOpen, onPlace }} />)}
            {event.graph && <><p class="quiet">{kind === "gained" ? "because of" : "it was there because of"}</p><DerivationGraph graph={event.graph} kind={about.clockKind} onSelect={kind === "lost" ? onOpen : null} label={`Why ${event.text}`} /></>}
          </div>
        </details>
      ))}
    </section>
  );
}

/** What appears and disappears, on the axis of time. */
function ChangesOverTime({ result, about, state }) {
  const host = useRef(null), timeline = useRef(null);
  useEffect(() => {
    timeline.current = new Timeline(host.current);
    return () => timeline.current.destroy();
  }, []);
  useEffect(() => {
    const changes = {}, lanes = new Map();
    for (const word of ["gained", "lost"]) {
      for (const event of result[word]) {
        changes[event.id] = word;
        const lane = lanes.get(event.type) || { name: event.type, kind: event.kind, total: 0, count: 0, marks: { start: [], end: [], arrived: [], state: [], id: [], label: [] } };
        lanes.set(event.type, lane);
        const { marks } = lane;
        marks.start.push(event.start); marks.end.push(event.end); marks.arrived.push(event.end); marks.id.push(event.id);
        marks.state.push(word === "lost" ? -1 : 0); marks.label.push(event.args.join(", "));
        lane.total++; lane.count++;
      }
    }
    timeline.current.update({ lanes: [...lanes.values()], low: state.low, high: state.high, kind: about.clockKind, changes });
  }, [result]);
  return <div class="lanes small" ref={host} />;
}
