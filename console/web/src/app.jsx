// The console: a header with the views, and the view that is open.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, listen } from "./api.js";
import { GoalsView } from "./goals.jsx";
import { MetricsView } from "./metrics.jsx";
import { RulesView } from "./rules.jsx";
import "./style.css";
import { TimelineView } from "./timeline_view.jsx";
import { showTime } from "./timescale.js";
import { WhatIfView } from "./what_if.jsx";
import { WhyNotView } from "./why_not.jsx";

const VIEWS = [["timeline", "Timeline"], ["why-not", "Why not"], ["goals", "Goals"], ["what-if", "What if"], ["rules", "Rules"], ["metrics", "Metrics"]];
const OF_COPIES = ["what-if"]; // views that a stream does not have
const viewOf = () => (VIEWS.some(([id]) => id === location.hash.slice(1)) ? location.hash.slice(1) : "timeline");

function App() {
  const [about, setAbout] = useState(null);
  const [state, setState] = useState(null);
  const [connected, setConnected] = useState(true);
  const [problem, setProblem] = useState("");
  const [view, setView] = useState(viewOf);
  const [moment, setMoment] = useState(null);
  const [selected, setSelected] = useState(null);
  const [draft, setDraft] = useState({});
  const [place, setPlace] = useState(null);
  const [trial, setTrial] = useState({ edits: [], result: null, rules: false });
  const [theme, setTheme] = useState(localStorage.getItem("theme") || "");

  useEffect(() => listen(setState, setConnected), []);
  const revision = state ? state.revision : -1;
  useEffect(() => {
    ask("about").then((answer) => { setAbout(answer); setState((now) => now || answer); }, (error) => setProblem(error.message));
  }, [revision]);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
    if (window.auguryTimeline) window.auguryTimeline._draw();
  }, [theme]);
  useEffect(() => {
    const moved = () => setView(viewOf());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);

  if (problem && !about) return <main class="blank"><h1>Augury</h1><p class="problem">{problem}</p></main>;
  if (!about || !state) return <main class="blank"><h1>Augury</h1><p class="quiet">…</p></main>;
  const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const name = about.sources.length ? about.sources[about.sources.length - 1].name.split("/").pop().replace(/^<|>$/g, "") : "program";
  const onOpen = (event) => { setSelected(event); location.hash = "timeline"; };
  const onPlace = (where) => { setPlace({ ...where }); location.hash = "rules"; };
  const onWhatIf = (event, kind) => {
    const edit = kind === "move"
      ? { kind, type: event.type, id: event.id, start: event.start, end: event.end, from: event.start, to: event.end, about: event.text }
      : { kind, type: event.type, id: event.id, about: event.text };
    setTrial({ ...trial, edits: [...trial.edits.filter(({ id }) => !id || id !== event.id), edit], result: null });
    location.hash = "what-if";
  };
  const changes = trial.result ? Object.fromEntries(trial.result.lost.map(({ id }) => [id, "lost"])) : NONE;
  return (
    <>
      <header class="top">
        <h1>Augury <span>{name}</span></h1>
        <nav aria-label="Views">
          {VIEWS.filter(([id]) => !about.looksOnly || !OF_COPIES.includes(id)).map(([id, title]) => <a key={id} href={`#${id}`} aria-current={view === id ? "page" : undefined}>{title}</a>)}
        </nav>
        <p class="figures">
          <span class={`dot ${connected ? (state.live ? "live" : "still") : "lost"}`} />
          {connected ? state.title || (state.live ? "live" : "history") : "no connection; trying again"}
          <b>{state.events.toLocaleString("en")}</b> events
          <b>{state.detections.toLocaleString("en")}</b> detections
          {state.late > 0 && <><b>{state.late.toLocaleString("en")}</b> too late</>}
          <span class="clock">clock {showTime(state.clock, about.clockKind)}</span>
        </p>
        {!about.looksOnly && <a class="save" href="session.recording" download title="The program, its facts and its inputs as one file, which the console opens again">Save recording</a>}
        <button class="theme" onClick={() => setTheme(dark ? "light" : "dark")} aria-label={dark ? "Light colours" : "Dark colours"} title={dark ? "Light colours" : "Dark colours"}>{dark ? "☀" : "☾"}</button>
      </header>
      {state.problem && <p class="problem banner" role="alert">{state.problem}</p>}
      {moment !== null && view !== "timeline" && (
        <p class="banner as-of">As of {showTime(moment, about.clockKind)} <button class="plain" onClick={() => setMoment(null)}>back to {state.live ? "now" : "the end"}</button></p>
      )}
      <main>
        <TimelineView visible={view === "timeline"} {...{ state, about, moment, setMoment, selected, setSelected, changes }} onWhatIf={about.looksOnly ? null : onWhatIf} />
        {view === "why-not" && <WhyNotView {...{ about, moment, onOpen, onPlace }} />}
        {view === "goals" && <GoalsView {...{ about, state, moment, onOpen }} />}
        {view === "what-if" && !about.looksOnly && <WhatIfView {...{ about, state, moment, trial, setTrial, draft, onOpen, onPlace }} />}
        {view === "rules" && <RulesView {...{ about, state, draft, setDraft, place, onPlace }} onApplied={() => ask("about").then(setAbout)} onTry={() => { setTrial({ ...trial, rules: true, result: null }); location.hash = "what-if"; }} />}
        {view === "metrics" && <MetricsView {...{ about, state }} />}
      </main>
    </>
  );
}

const NONE = {};

render(<App />, document.getElementById("app"));
