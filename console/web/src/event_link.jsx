// An event that can be opened in the timeline.

export function EventLink({ event, onOpen }) {
  return (
    <button class={`event-link ${event.kind}`} title={event.text} onClick={() => onOpen(event)}>
      {event.type}({event.args.join(", ")})
    </button>
  );
}

/** How much of something there is. */
export function Share({ part, total, label }) {
  const share = Math.round((100 * part) / Math.max(1, total));
  return <span class="share" role="img" aria-label={label || `${part} of ${total}`} title={`${part} of ${total}`}><span style={{ width: `${share}%` }} /></span>;
}

/** Offers text as a file. */
export function download(name, text, type = "text/plain") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Words, with what is code among them. */
export function Words({ parts }) {
  return parts.map(({ text, code }, i) => (code ? <code key={i}>{text}</code> : <span key={i}>{text}</span>));
}

export function Problem({ error }) {
  if (!error) return null;
  return <p class="problem" role="alert">{error.message}{error.hint && <small>{error.hint}</small>}</p>;
}
