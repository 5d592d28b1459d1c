// Why an event was not detected: a question, completed from what there is, and for each rule how near it came.

import { useEffect, useId, useState } from "preact/hooks";
import { ask, latest } from "./api.js";
import { EventLink, Problem, Share, Words } from "./event_link.jsx";
import { showTime } from "./timescale.js";

export function WhyNotView({ about, moment, onOpen, onPlace }) {
  const derived = Object.entries(about.types).filter(([, type]) => type.kind !== "event");
  const [type, setType] = useState(() => (derived.find(([, each]) => each.kind === "detected") || derived[0] || [""])[0]);
  const [args, setArgs] = useState([]);
  const [time, setTime] = useState("");
  const [answer, setAnswer] = useState(null);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const attributes = (about.types[type] || { attributes: [] }).attributes;
  const atom = `${type}(${attributes.map((_, i) => (args[i] || "").trim() || "_").join(", ")})${time.trim() ? ` @ ${time.trim()}` : ""}`;
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      setAnswer({ atom, ...(await ask("why-not", { atom, moment })) });
    } catch (failure) {
      setError(failure);
      setAnswer(null);
    }
    setBusy(false);
  };
  if (!derived.length) return <section class="page"><p class="quiet">The program derives nothing.</p></section>;
  return (
    <section class="page" aria-label="Why not">
      <form class="question" onSubmit={submit}>
        <label>Event
          <select aria-label="Event" value={type} onChange={(event) => { setType(event.currentTarget.value); setArgs([]); }}>
            {derived.map(([name]) => <option key={name}>{name}</option>)}
          </select>
        </label>
        {attributes.map((name, i) => (
          <Argument key={`${type} ${i}`} {...{ about, type, name, i }} value={args[i] || ""} onValue={(value) => { const next = [...args]; next[i] = value; setArgs(next); }} />
        ))}
        <label>at <input type="text" placeholder="any time" size={22} value={time} onInput={(event) => setTime(event.currentTarget.value)} /></label>
        <button class="primary" disabled={busy}>{busy ? "Searching…" : "Why not?"}</button>
      </form>
      <p class="quiet">{moment === null ? "Of what there is now." : `As of ${showTime(moment, about.clockKind)}.`} A field that is empty may have any value.</p>
      <Problem error={error} />
      {answer && <Misses {...{ answer, onOpen, onPlace }} clock={about.clockKind} />}
    </section>
  );
}

function Misses({ answer, clock, onOpen, onPlace }) {
  return (
    <div aria-live="polite">
      <h2 class="asked">Why not <code>{answer.atom}</code></h2>
      <div class="cards">{answer.misses.map((miss) => <Miss key={miss.rule} {...{ miss, clock, onOpen, onPlace }} />)}</div>
    </div>
  );
}

/** How near a rule came. */
export function Miss({ miss, clock, onOpen, onPlace }) {
  return (
    <article class="card">
      <header>
        <h3>{miss.place && onPlace ? <button class="plain" onClick={() => onPlace(miss.place)}>rule {miss.rule}</button> : `rule ${miss.rule}`}</h3>
        <Share part={miss.parts.length} total={miss.total} />
        <span class="quiet">{miss.parts.length} of {miss.total} {miss.total === 1 ? "event" : "events"}</span>
      </header>
      {miss.parts.length > 0 && <ul class="events">{miss.parts.map((part) => <li key={part.id}><EventLink event={part} onOpen={onOpen} /> <span class="quiet">{part.start === part.end ? "" : `${showTime(part.start, clock)} to `}{showTime(part.end, clock)}</span></li>)}</ul>}
      <ul class="failed">
        {miss.failed.map((failed) => (
          <li key={failed.parts.map(({ text }) => text).join()}>
            <Words parts={failed.parts} />{" "}
            {failed.events.map((event) => <span key={event.id}> <EventLink event={event} onOpen={onOpen} /></span>)}
            {failed.place && onPlace && <button class="plain" onClick={() => onPlace(failed.place)}>show in the rules</button>}
          </li>
        ))}
      </ul>
    </article>
  );
}

function Argument({ about, type, name, i, value, onValue }) {
  const id = useId();
  const [values, setValues] = useState([]);
  const [newest] = useState(latest);
  const complete = (beginning) => newest(ask("values", { type, argument: i, beginning }), async (answer) => setValues(answer.values), () => {});
  useEffect(() => {
    // Values of inputs complete the arguments of what was never detected.
    Promise.all(Object.entries(about.types).map(async ([other, each]) => {
      const same = other === type ? i : each.attributes.indexOf(name);
      return same < 0 ? [] : (await ask("values", { type: other, argument: same })).values;
    })).then((all) => setValues([...new Set(all.flat())].sort().slice(0, 60)), () => {});
  }, [type, i]);
  return (
    <label>{name}
      <input
        type="text" list={id} placeholder="anything" size={14} value={value} autocomplete="off"
        onInput={(event) => { onValue(event.currentTarget.value); if (event.currentTarget.value.length > 2) complete(event.currentTarget.value); }}
      />
      <datalist id={id}>{values.map((each) => <option key={each} value={each} />)}</datalist>
    </label>
  );
}
