// What has begun: partial matches with what they wait for, and detections that come unless something happens before.

import { useEffect, useState } from "preact/hooks";
import { ask, latest } from "./api.js";
import { EventLink, Problem, Share } from "./event_link.jsx";
import { showLength, showTime } from "./timescale.js";

const newest = latest();

export function GoalsView({ about, state, moment, onOpen }) {
  const [answer, setAnswer] = useState(null);
  const [error, setError] = useState(null);
  const [rule, setRule] = useState("");
  useEffect(() => { newest(ask("goals", { moment }), (goals) => { setAnswer(goals); setError(null); }, setError); }, [state.version, moment]);
  if (error) return <section class="page"><Problem error={error} /></section>;
  if (!answer) return <section class="page"><p class="quiet">…</p></section>;
  const kind = about.clockKind;
  const shown = answer.rules.filter((each) => !rule || each.rule === rule);
  return (
    <section class="page" aria-label="Goals">
      <div class="tools">
        <label>Rule
          <select aria-label="Rule" value={rule} onChange={(event) => setRule(event.currentTarget.value)}>
            <option value="">all</option>
            {answer.rules.map((each) => <option key={each.rule}>{each.rule}</option>)}
          </select>
        </label>
        <span class="quiet">{answer.now === null ? "the clock has not begun" : `the clock is at ${showTime(answer.now, kind)}`}</span>
      </div>
      {!shown.length && <p class="quiet">Nothing has begun that could still be completed.</p>}
      {shown.map((each) => (
        <div class="goals" key={each.rule}>
          <h2>{each.rule} <span class="quiet">{each.count.toLocaleString("en")}</span></h2>
          <div class="table">
            <table>
              <thead><tr><th>complete</th><th>has happened</th><th>waits for</th><th>until</th><th>left</th></tr></thead>
              <tbody>{each.goals.map((goal, i) => <Goal key={i} {...{ goal, kind, onOpen }} />)}</tbody>
            </table>
          </div>
          {each.count > each.goals.length && <p class="quiet">{(each.count - each.goals.length).toLocaleString("en")} more are not listed.</p>}
        </div>
      ))}
    </section>
  );
}

function Goal({ goal, kind, onOpen }) {
  const pending = goal.kind === "pending";
  const soon = goal.left !== null && goal.until !== null && goal.since !== null && goal.left < (goal.until - goal.since) / 5;
  return (
    <tr>
      <td data-label="complete"><Share part={goal.complete * 100} total={100} label={`${Math.round(goal.complete * 100)} %`} /> {Math.round(goal.complete * 100)} %</td>
      <td data-label="has happened"><ul class="events">{goal.done.map((event) => <li key={event.id}><EventLink event={event} onOpen={onOpen} /></li>)}</ul></td>
      <td data-label="waits for">
        {pending
          ? <>{goal.unless.length > 0 ? <>no <code>{goal.unless.join(", ")}</code></> : "time"}; then <code class={goal.event.kind}>{goal.event.type}({goal.event.args.join(", ")})</code></>
          : <code>{goal.awaits}</code>}
        {goal.binding.length > 0 && <small class="quiet">{goal.binding.map(({ name, value }) => `${name} = ${value}`).join(", ")}</small>}
      </td>
      <td data-label="until" class="figure">{goal.until === null ? "any time" : showTime(goal.until, kind)}</td>
      <td data-label="left" class={`figure${soon ? " soon" : ""}`}>{goal.left === null ? "" : showLength(goal.left, kind)}</td>
    </tr>
  );
}
