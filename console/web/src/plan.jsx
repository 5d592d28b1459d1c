// The plan as a graph, coloured by what its operators hold, look at, or take.

import { useEffect, useMemo, useState } from "preact/hooks";
import { ask, latest } from "./api.js";
import { Problem } from "./event_link.jsx";
import { layered } from "./layout.js";

const newest = latest();
const FIGURES = [["rows", "rows kept"], ["bytes", "bytes kept"], ["touched", "rows touched"], ["seconds", "time"]];
const HEIGHT = 42;

export function show(name, value) {
  if (name === "seconds") return value >= 1 ? `${value.toFixed(2)} s` : `${(1000 * value).toFixed(1)} ms`;
  if (name === "bytes") return value >= 1e6 ? `${(value / 1e6).toFixed(1)} MB` : value >= 1e3 ? `${(value / 1e3).toFixed(1)} kB` : `${value} B`;
  return Math.round(value).toLocaleString("en");
}

export function PlanGraph({ state, about }) {
  const [answer, setAnswer] = useState(null);
  const [error, setError] = useState(null);
  const [figure, setFigure] = useState(about.looksOnly ? "rows" : "touched");
  const [rule, setRule] = useState("");
  const [chosen, setChosen] = useState(null);
  useEffect(() => { newest(ask("plan"), (plan) => { setAnswer(plan); setError(null); }, setError); }, [state.version, state.revision]);
  const operators = useMemo(() => (answer ? drawn(answer.operators, rule) : []), [answer, rule]);
  const graph = useMemo(() => layered(operators.map((each) => ({ key: each.number, width: 176 })), operators.flatMap((each) => each.inputs.map((from) => [from, each.number])), { height: HEIGHT }), [operators]);
  if (error) return <Problem error={error} />;
  if (!answer || !operators.length) return null;
  const most = Math.max(1e-9, ...operators.map((each) => each.metrics[figure]));
  const open = operators.find(({ number }) => number === chosen);
  return (
    <section aria-label="Plan">
      <div class="tools plan-tools">
        <h2>Plan</h2>
        <label>coloured by
          <select aria-label="Coloured by" value={figure} onChange={(event) => setFigure(event.currentTarget.value)}>{FIGURES.map(([name, title]) => <option key={name} value={name}>{title}</option>)}</select>
        </label>
        <label>rule
          <select aria-label="Rule" value={rule} onChange={(event) => setRule(event.currentTarget.value)}>
            <option value="">all</option>
            {answer.rules.map((each) => <option key={each.rule}>{each.rule}</option>)}
          </select>
        </label>
      </div>
      {answer.hints.map((hint) => <p key={`${hint.operator}${hint.problem}`} class="slow"><b>slow</b> operator {hint.operator} of {hint.rules.join(", ")}: {hint.problem}<small>{hint.hint}</small></p>)}
      <div class="plan">
        <svg width={graph.width + 16} height={graph.height + 16} role="group" aria-label="Operators">
          <g transform="translate(8 8)">
            {graph.links.map(([from, to]) => <Link key={`${from} ${to}`} from={graph.places.get(from)} to={graph.places.get(to)} />)}
            {operators.map((each) => <Operator key={each.number} {...{ each, figure }} place={graph.places.get(each.number)} share={each.metrics[figure] / most} chosen={each.number === chosen} onChoose={() => setChosen(each.number === chosen ? null : each.number)} />)}
          </g>
        </svg>
      </div>
      {open && (
        <div class="operator-details" aria-live="polite">
          <p><b>{open.number}</b> <code>{open.text || open.operator}</code> <span class="quiet">{open.rules.join(", ")}</span></p>
          <dl class="facts">
            <dt>read</dt><dd>{show("rows", open.metrics.rows_in)} rows</dd><dt>written</dt><dd>{show("rows", open.metrics.rows_out)} rows</dd>
            {FIGURES.map(([name, title]) => [<dt key={`t${name}`}>{title}</dt>, <dd key={`d${name}`}>{show(name, open.metrics[name])}</dd>])}
            {open.keeps.map((kept) => [<dt key={`k${kept.what}`}>keeps {kept.what}</dt>, <dd key={`l${kept.what}`}>{kept.for}</dd>])}
          </dl>
        </div>
      )}
    </section>
  );
}

/** The operators of a rule; what only stands between two others, the set of derived events, is one with its head. */
function drawn(operators, rule) {
  const used = operators.filter((each) => each.metrics && (!rule || each.rules.includes(rule)));
  const fed = new Set(used.flatMap(({ inputs }) => inputs));
  return used.filter((each) => each.rules.length && (each.inputs.length || fed.has(each.number)));
}

function Link({ from, to }) {
  if (!from || !to) return null;
  const x1 = from.x + from.width, y1 = from.y + from.height / 2, x2 = to.x, y2 = to.y + to.height / 2;
  const bend = Math.max(20, Math.abs(x2 - x1) / 2);
  return <path class="link" d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`} />;
}

function Operator({ each, figure, place, share, chosen, onChoose }) {
  const title = each.text || each.operator, most = 25;
  const text = title.length > most ? `${title.slice(0, most - 1)}…` : title;
  return (
    <g
      class={`operator${chosen ? " chosen" : ""}`} tabIndex={0} role="button" aria-pressed={chosen} transform={`translate(${place.x} ${place.y})`}
      onClick={onChoose} onKeyDown={(event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), onChoose())}
    >
      <title>{`${each.number} ${title}`}</title>
      <rect class="box" width={place.width} height={place.height} rx={6} />
      <rect class="heat" width={place.width} height={place.height} rx={6} style={{ fillOpacity: 0.08 + 0.6 * share }} visibility={share > 0 ? "visible" : "hidden"} />
      <text x={9} y={17}>{text}</text>
      <text class="small" x={9} y={33}>{show(figure, each.metrics[figure])}</text>
      <text class="small" x={place.width - 9} y={33} text-anchor="end">{each.operator === "input" || each.operator === "set" ? "" : each.rules.slice(0, 1).join("")}</text>
    </g>
  );
}
