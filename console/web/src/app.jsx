// The console: a header with the views, and the view that is open.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, listen } from "./api.js";
import "./style.css";
import { TimelineView } from "./timeline_view.jsx";
import { showTime } from "./timescale.js";

const VIEWS = [["timeline", "Timeline"]];

function App() {
  const [about, setAbout] = useState(null);
  const [state, setState] = useState(null);
  const [connected, setConnected] = useState(true);
  const [problem, setProblem] = useState("");
  const [view, setView] = useState(location.hash.slice(1) || "timeline");
  const [moment, setMoment] = useState(null);
  const [selected, setSelected] = useState(null);
  const [theme, setTheme] = useState(localStorage.getItem("theme") || "");

  useEffect(() => {
    ask("about").then((answer) => { setAbout(answer); setState(answer); }, (error) => setProblem(error.message));
    return listen(setState, setConnected);
  }, []);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
    if (window.auguryTimeline) window.auguryTimeline._draw();
  }, [theme]);
  useEffect(() => {
    const moved = () => setView(location.hash.slice(1) || "timeline");
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);

  if (problem) return <main class="blank"><h1>Augury</h1><p class="problem">{problem}</p></main>;
  if (!about || !state) return <main class="blank"><h1>Augury</h1><p class="quiet">…</p></main>;
  const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const name = about.sources.length ? about.sources[0].name.split("/").pop() : "program";
  return (
    <>
      <header class="top">
        <h1>Augury <span>{name}</span></h1>
        <nav aria-label="Views">
          {VIEWS.map(([id, title]) => <a key={id} href={`#${id}`} aria-current={view === id ? "page" : undefined}>{title}</a>)}
        </nav>
        <p class="figures">
          <span class={`dot ${connected ? (state.live ? "live" : "still") : "lost"}`} />
          {connected ? (state.live ? "live" : "history") : "no connection; trying again"}
          <b>{state.events.toLocaleString("en")}</b> events
          <b>{state.detections.toLocaleString("en")}</b> detections
          {state.late > 0 && <><b>{state.late.toLocaleString("en")}</b> too late</>}
          <span class="clock">clock {showTime(state.clock, about.clockKind)}</span>
        </p>
        <button class="theme" onClick={() => setTheme(dark ? "light" : "dark")} aria-label={dark ? "Light colours" : "Dark colours"} title={dark ? "Light colours" : "Dark colours"}>{dark ? "☀" : "☾"}</button>
      </header>
      {state.problem && <p class="problem banner">{state.problem}</p>}
      <main>
        <TimelineView visible={view === "timeline"} {...{ state, about, moment, setMoment, selected, setSelected }} />
      </main>
    </>
  );
}

render(<App />, document.getElementById("app"));
