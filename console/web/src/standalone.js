// The timeline without a server: in an exported page, and in a notebook as an anywidget. All of its data is there already.

import { Timeline, WORDS } from "./timeline.js";

const HELP = "Scroll to zoom, drag to move, shift-drag to select a range; click an event to see what it was made of; double-click to see all again.";

/** Shows a timeline in an element; returns what takes it away. */
export function mount(host, data) {
  const plot = document.createElement("div"), said = document.createElement("p");
  plot.className = "lanes";
  said.className = "about";
  said.textContent = HELP;
  host.classList.add("augury-timeline");
  if (data.title) {
    const title = document.createElement("h1");
    title.textContent = data.title;
    host.append(title);
  }
  host.append(legend(data.lanes), plot, said);
  let selected = null;
  const place = new Map();
  data.lanes.forEach((lane) => lane.marks && lane.marks.id.forEach((id, i) => place.set(lane.first + i, { lane, i })));
  const numberOf = (item) => {
    const lane = data.lanes.find((each) => each.name === item.type && each.kind === item.kind);
    return lane.first + lane.marks.id.indexOf(item.id);
  };
  const timeline = new Timeline(plot, {
    hover: (text) => { said.textContent = text || (selected ? timeline.describe(selected) : HELP); },
    select: (item) => {
      selected = item;
      timeline.update({ selected: item, graph: item ? derivation(numberOf(item)) : first });
    },
  });
  const node = (number) => {
    const { lane, i } = place.get(number), { marks } = lane;
    return { key: number, kind: lane.kind, type: lane.name, id: marks.id[i], start: marks.start[i], end: marks.end[i] };
  };
  function derivation(...roots) {
    const nodes = new Map(), edges = [], open = [...roots];
    while (open.length) {
      const whole = open.pop();
      if (nodes.has(whole) || !place.has(whole)) continue;
      nodes.set(whole, node(whole));
      for (const part of data.made[whole] || []) if (place.has(part)) { edges.push({ from: part, to: whole }); open.push(part); }
    }
    return { nodes: [...nodes.values()], edges };
  }
  const first = data.selected.length ? derivation(...data.selected) : null;
  timeline.update({ lanes: data.lanes, low: data.low, high: data.high, kind: data.clock, gaps: [], selected: null, graph: first });
  host.auguryTimeline = timeline;
  return () => { timeline.destroy(); host.replaceChildren(); };
}

/** What colours and shapes stand for. */
function legend(lanes) {
  const list = document.createElement("p");
  list.className = "legend";
  for (const [kind, word] of Object.entries(WORDS)) {
    if (!lanes.some((lane) => lane.kind === kind)) continue;
    const sign = document.createElement("span");
    sign.className = kind;
    sign.textContent = kind === "event" ? "●" : "◆";
    list.append(sign, word);
  }
  return list;
}

const stored = typeof document === "undefined" ? null : document.getElementById("augury-data");
if (stored) mount(document.getElementById("augury-timeline"), JSON.parse(stored.textContent));

export default { render: ({ model, el }) => mount(el, model.get("data")) };
