// The program: an editor with findings as one types, and the plan that runs.

import { useEffect, useMemo, useState } from "preact/hooks";
import { ask, latest } from "./api.js";
import { Editor } from "./editor.jsx";
import { Problem, Words } from "./event_link.jsx";
import { PlanGraph } from "./plan.jsx";

const checks = latest();

export function RulesView({ about, state, draft, setDraft, place, onTry, onApplied, onPlace }) {
  const [file, setFile] = useState(about.sources[0] ? about.sources[0].name : "");
  const [checked, setChecked] = useState(null);
  const [error, setError] = useState(null);
  const [said, setSaid] = useState("");
  const [busy, setBusy] = useState(false);
  const source = about.sources.find(({ name }) => name === file) || about.sources[0];
  const changed = Object.keys(draft).length > 0;
  useEffect(() => { if (place) setFile(place.source); }, [place]);
  useEffect(() => {
    const timer = setTimeout(() => {
      checks(ask("check", { sources: draft }), (answer) => { setChecked(answer); setError(null); }, (failure) => { setChecked(null); setError(failure); });
    }, 250);
    return () => clearTimeout(timer);
  }, [draft, state.revision]);
  const findings = useMemo(() => (checked ? checked.findings.filter((each) => !each.place || each.place.source === (source || {}).name) : []), [checked, source && source.name]);
  if (!source) return <section class="page"><p class="quiet">The program has no text.</p></section>;
  const errors = checked ? checked.findings.filter(({ severity }) => severity === "error").length : 0;
  const edit = (text) => {
    setSaid("");
    const { [source.name]: _, ...others } = draft;
    setDraft(text === source.text ? others : { ...others, [source.name]: text });
  };
  const apply = async () => {
    setBusy(true);
    setError(null);
    try {
      const { added, removed } = await ask("apply", { sources: draft });
      await onApplied();
      setDraft({});
      setSaid(`It runs: ${added} ${added === 1 ? "rule" : "rules"} added, ${removed} taken out.`);
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  const difference = checked && checked.difference;
  const usable = changed && checked && !errors;
  return (
    <section class="page rules" aria-label="Rules">
      <div class="tools">
        {about.sources.length > 1 && (
          <select aria-label="File" value={source.name} onChange={(event) => setFile(event.currentTarget.value)}>
            {about.sources.map(({ name }) => <option key={name}>{name}</option>)}
          </select>
        )}
        <span role="status" class={errors ? "problem" : "quiet"}>{status({ checked, errors, changed, said })}</span>
        <span class="spacer" />
        {!about.looksOnly && <><button class="primary" disabled={!usable || busy} onClick={onTry}>Try on a copy</button>
        <button disabled={!usable || busy || !difference || !(difference.added.length + difference.removed.length)} title={checked && checked.notNow ? checked.notNow : "Runs on the state that is held"} onClick={apply}>{busy ? "Applying…" : "Apply to the session"}</button></>}
        <button disabled={!changed || busy} onClick={() => { setDraft({}); setSaid(""); }}>Undo all</button>
      </div>
      <Problem error={error} />
      {usable && checked.notNow && <p class="quiet">{checked.notNow}.</p>}
      <Editor key={source.name} text={draft[source.name] !== undefined ? draft[source.name] : source.text} words={about.words[source.language] || []} names={Object.keys(about.types)} findings={findings} place={place && place.source === source.name ? place : null} onText={edit} label={`Text of ${source.name}`} />
      {checked && checked.findings.length > 0 && <Findings findings={checked.findings} onPlace={onPlace} />}
      <PlanGraph {...{ state, about }} />
    </section>
  );
}

function status({ checked, errors, changed, said }) {
  if (said) return said;
  if (!checked) return "checking…";
  if (errors) return `${errors} ${errors === 1 ? "error" : "errors"}`;
  const warnings = checked.findings.length;
  const found = warnings ? `${warnings} ${warnings === 1 ? "warning" : "warnings"}` : "no findings";
  return changed ? `edited; ${found}` : found;
}

function Findings({ findings, onPlace }) {
  return (
    <ul class="findings" aria-label="Findings">
      {findings.map((each, i) => (
        <li key={i} class={each.severity}>
          <b>{each.severity} {each.code}</b> <Words parts={each.words} />{" "}
          {each.place && <button class="plain" onClick={() => onPlace(each.place)}>show</button>}
          {each.notes.map((note, k) => <small key={k}><Words parts={note.words} /></small>)}
          {each.hintWords.length > 0 && <small><Words parts={each.hintWords} /></small>}
        </li>
      ))}
    </ul>
  );
}
