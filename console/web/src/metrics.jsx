// Figures over time: events, detections, state, what steps cost, and how far the frontier is behind.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { ask, latest } from "./api.js";
import { Problem } from "./event_link.jsx";
import { showLength, showTime } from "./timescale.js";

const newest = latest();
const WORK = ["Time of a step", "Rows touched by rule"]; // a stream takes its steps elsewhere
const COLOURS = ["event", "detected", "derived", "moment", "late", "muted"];

/** The difference of a growing figure to the one before. */
const increase = (values) => values.map((value, i) => (i ? Math.max(0, value - values[i - 1]) : value));

export function MetricsView({ about, state }) {
  const [answer, setAnswer] = useState(null);
  const [error, setError] = useState(null);
  const [axis, setAxis] = useState("clock");
  useEffect(() => { newest(ask("metrics"), (metrics) => { setAnswer(metrics); setError(null); }, setError); }, [state.version]);
  if (error) return <section class="page"><Problem error={error} /></section>;
  if (!answer) return <section class="page"><p class="quiet">…</p></section>;
  if (!answer.wall.length) return <section class="page"><p class="quiet">There are no figures yet.</p></section>;
  const logical = axis === "clock" && about.clockKind === "logical";
  const usable = answer.clock.map((clock) => clock !== null);
  const pick = (values) => values.filter((_, i) => usable[i]);
  const times = pick(axis === "clock" ? answer.clock.map((time) => (logical ? time : time / 1e6)) : answer.wall);
  const lag = answer.clock.map((clock, i) => (clock === null || answer.frontier[i] === null ? null : (clock - answer.frontier[i]) / (about.clockKind === "logical" ? 1 : 1e6)));
  const busy = increase(answer.seconds), steps = increase(answer.steps);
  const rules = Object.entries(answer.rules);
  const each = (name) => rules.map(([label, figures]) => [label, pick(figures[name])]);
  const charts = [
    ["Events and detections", [["events", pick(answer.events)], ["detections", pick(answer.detections)], ["too late", pick(answer.late)]]],
    ["State", [["rows", pick(answer.rows)]]],
    ["Memory", [["bytes", pick(answer.bytes)]], bytes],
    ["Time of a step", [["ms", pick(busy.map((seconds, i) => (steps[i] ? (1000 * seconds) / steps[i] : 0)))]]],
    ["Frontier behind the clock", [[about.clockKind === "logical" ? "ticks" : "s", pick(lag)]]],
    ["Rows by rule", each("rows")],
    ["Bytes by rule", each("bytes"), bytes],
    ["Rows touched by rule", each("touched")],
  ];
  return (
    <section class="page" aria-label="Metrics">
      <div class="tools">
        <label>Over
          <select aria-label="Over" value={axis} onChange={(event) => setAxis(event.currentTarget.value)}>
            <option value="clock">the time of events</option>
            <option value="wall">the time at which they came</option>
          </select>
        </label>
        {!about.looksOnly && <span class="quiet">{state.events.toLocaleString("en")} events in {showLength(Math.round(1e6 * answer.seconds[answer.seconds.length - 1]), "timestamp")} of work</span>}
      </div>
      <div class="charts">
        {charts.filter(([title, series]) => !(about.looksOnly && WORK.includes(title)) && series.some(([, values]) => values.some((value) => value !== null))).map(([title, series, format]) => <Chart key={title} {...{ title, series, times, logical, format }} />)}
      </div>
    </section>
  );
}

function bytes(value) {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) if (value >= size) return `${Number((value / size).toPrecision(3))} ${unit}`;
  return String(value);
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Times of an axis in seconds: the time of the day, and the day where it is another one. */
function times24(values, span) {
  let before = "";
  return values.map((seconds) => {
    const date = new Date(seconds * 1000), day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
    const clock = date.toISOString().slice(11, span < 300 ? 19 : 16), below = day === before ? "" : `\n${day} ${date.getUTCFullYear()}`;
    before = day;
    return span > 4 * 86400 ? `${day}` : `${clock}${below}`;
  });
}

const number = (value) => (value === null || value === undefined ? "" : value >= 1e6 ? `${Number((value / 1e6).toPrecision(3))} M` : Number(value.toPrecision(4)).toLocaleString("en"));

function Chart({ title, series, times, logical, format = number }) {
  const host = useRef(null);
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const watcher = new MutationObserver(() => setTheme((count) => count + 1));
    watcher.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => watcher.disconnect();
  }, []);
  useEffect(() => {
    const style = getComputedStyle(host.current), colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const axis = { stroke: colour("muted"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 }, font: "11px system-ui, sans-serif" };
    const options = {
      width: host.current.clientWidth, height: 170, legend: { show: true, live: true }, cursor: { drag: { x: true, y: false } },
      scales: { x: { time: !logical, range: (_, low, high) => (low === high ? [low - 60, high + 60] : [low, high]) }, y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.05 : 1] } },
      axes: [logical ? { ...axis, values: (_, values) => values.map(number) } : { ...axis, values: (_, values) => times24(values, times[times.length - 1] - times[0]) }, { ...axis, size: 62, values: (_, values) => values.map(format) }],
      series: [{ label: "time", value: (_, value) => (value === null || value === undefined ? "–" : logical ? number(value) : showTime(Math.round(value * 1e6), "timestamp")) }, ...series.map(([label], i) => ({ label, stroke: colour(COLOURS[i % COLOURS.length]), width: 1.5, paths: uPlot.paths.stepped({ align: 1 }), dash: i >= COLOURS.length ? [4, 3] : undefined, value: (_, value) => (value === null || value === undefined ? "–" : format(value)), points: { show: times.length < 3 } }))],
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
    };
    const chart = new uPlot(options, [times, ...series.map(([, values]) => values)], host.current);
    const watcher = new ResizeObserver(([entry]) => chart.setSize({ width: Math.floor(entry.contentRect.width), height: 170 }));
    watcher.observe(host.current);
    return () => { watcher.disconnect(); chart.destroy(); };
  }, [times.length, times[0], times[times.length - 1], logical, theme]);
  return <figure class="chart"><figcaption>{title}</figcaption><div ref={host} /></figure>;
}
