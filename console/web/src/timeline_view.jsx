// The timeline with its overview, the moment that is looked at, filters, and the details of what is selected.

import { useEffect, useRef, useState } from "preact/hooks";
import { ask, latest } from "./api.js";
import { Inspector } from "./inspector.jsx";
import { Overview } from "./overview.jsx";
import { Timeline } from "./timeline.js";
import { showTime } from "./timescale.js";

const SPEEDS = [1, 10, 60, 600, 3600];
const lanesOf = latest(), overviewOf = latest();

export function TimelineView({ state, about, moment, setMoment, selected, setSelected, onWhatIf, visible, changes }) {
  const host = useRef(null), timeline = useRef(null);
  const [hover, setHover] = useState("");
  const [filter, setFilter] = useState("");
  const [collapse, setCollapse] = useState(false);
  const [overview, setOverview] = useState(null);
  const [edges, setEdges] = useState(null);
  const [range, setRange] = useState(null);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(0);
  const [problem, setProblem] = useState("");
  const kind = about.clockKind;

  useEffect(() => {
    const component = new Timeline(host.current, {
      view: (asked) => { setEdges(asked); setRange([asked[0], asked[asked.length - 1]]); },
      select: (item) => setSelected(item),
      hover: (text) => setHover(text),
      roomy: true,
    });
    timeline.current = component;
    window.auguryTimeline = component;
    return () => component.destroy();
  }, []);
  useEffect(() => {
    const gaps = collapse && overview ? overview.gaps : NO_GAPS;
    timeline.current.update({ low: state.low, high: state.high, kind, gaps });
  }, [state.low, state.high, kind, collapse, collapse && overview]);
  useEffect(() => {
    if (!edges || !visible) return;
    lanesOf(ask("timeline", { edges, moment, filter }), (answer) => {
      timeline.current.update({ lanes: answer.lanes, edges, clock: answer.clock, frontier: answer.frontier, moment });
      setProblem("");
    }, (error) => setProblem(error.message));
  }, [edges, moment, filter, state.version, visible]);
  useEffect(() => {
    if (!visible || state.high <= state.low) return;
    const count = 400, size = (state.high - state.low) / count, all = [];
    for (let i = 0; i <= count; i++) {
      const time = Math.round(state.low + i * size);
      if (!all.length || time > all[all.length - 1]) all.push(time);
    }
    if (all.length < 2) return;
    all[all.length - 1] += 1;
    overviewOf(ask("overview", { edges: all }), (answer) => setOverview({ ...answer, edges: all }));
  }, [state.version, visible]);
  useEffect(() => { timeline.current.update({ selected }); if (!selected) timeline.current.update({ graph: null }); }, [selected]);
  useEffect(() => timeline.current.update({ changes: changes || {} }), [changes]);
  useEffect(() => {
    if (!playing) return undefined;
    const step = 50;
    const perStep = speed ? speed * (kind === "logical" ? 1 : 1e6) * (step / 1000) : (state.high - state.low) / (20_000 / step);
    const timer = setInterval(() => setMoment((now) => {
      const next = Math.round((now === null ? state.low : now) + Math.max(1, perStep));
      if (next < state.high) return next;
      setPlaying(false);
      return null;
    }), step);
    return () => clearInterval(timer);
  }, [playing, speed, state.low, state.high]);

  return (
    <section class={`timeline-view${selected ? " with-details" : ""}`} hidden={!visible} aria-label="Timeline">
      <div class="main">
        <div class="tools">
          <input
            type="search" placeholder="Filter by value" aria-label="Filter by a value of the arguments" value={filter}
            onInput={(event) => setFilter(event.currentTarget.value.slice(0, 200))}
          />
          <label class="check"><input type="checkbox" checked={collapse} onChange={(event) => setCollapse(event.currentTarget.checked)} /> Collapse idle times</label>
          <span class="group">
            <button onClick={() => timeline.current.zoom(0.6)} aria-label="Zoom in" title="Zoom in">+</button>
            <button onClick={() => timeline.current.zoom(1 / 0.6)} aria-label="Zoom out" title="Zoom out">−</button>
            <button onClick={() => timeline.current.showAll()}>All</button>
          </span>
          <span class="spacer" />
          <span class="group moment">
            <output title="The moment that is looked at">{moment === null ? (state.live ? "now" : "at the end") : `as of ${showTime(moment, kind)}`}</output>
            <button onClick={() => { if (moment === null) setMoment(state.low); setPlaying(!playing); }} aria-label={playing ? "Pause" : "Play from this moment"}>{playing ? "Pause" : "Play"}</button>
            <select aria-label="Speed" value={speed} onChange={(event) => setSpeed(Number(event.currentTarget.value))}>
              <option value={0}>in 20 s</option>
              {SPEEDS.map((times) => <option key={times} value={times}>{kind === "logical" ? `${times} ticks/s` : `${times}×`}</option>)}
            </select>
            <button disabled={moment === null} onClick={() => { setPlaying(false); setMoment(null); }}>{state.live ? "Live" : "End"}</button>
          </span>
        </div>
        <Overview
          data={overview} kind={kind} low={state.low} high={state.high} range={range} moment={moment} clock={state.clock}
          onMoment={(time) => { setPlaying(false); setMoment(time); }} onRange={(from, to) => timeline.current.show(from, to)}
        />
        <div class="lanes" ref={host} />
        <p class="hover" aria-live="off">{problem || hover || "Scroll to zoom, drag to move, shift-drag to select a range; click an event for why it is there. The strip above moves the moment that is looked at."}</p>
      </div>
      {selected && (
        <Inspector
          item={selected} moment={moment} version={state.version} kind={kind} onSelect={setSelected} onWhatIf={onWhatIf}
          onGraph={(graph) => timeline.current.update({ graph })} onClose={() => { setSelected(null); timeline.current.canvas.focus(); }}
        />
      )}
    </section>
  );
}

const NO_GAPS = [];
