// The timeline: lanes of events and detections on a canvas. It shows what `update` gives it, draws only when something
// has changed, and tells its owner what people do. The same module draws in the console, in exported pages and in notebooks.

import { packed } from "./packing.js";
import { Line, View, showLength, showTime } from "./timescale.js";

const ROW = 20, PAD = 7, BAR = 12, HISTOGRAM = 46, AXIS = 40, TOP = 22, RADIUS = 5, FONT = "11px system-ui, sans-serif";
export const WORDS = { event: "event", derived: "derived on the way", detected: "detected" };

export class Timeline {
  /** `on` has what to call: `view(edges)`, `select(item)`, `hover(text)`; and `roomy`, whether bins use all of the height. */
  constructor(host, on = {}) {
    this.host = host;
    this.on = on;
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", "Timeline. Arrow keys move between events and lanes, plus and minus zoom, Enter opens an event.");
    this.said = document.createElement("div");
    this.said.className = "said";
    this.said.setAttribute("aria-live", "polite");
    host.append(this.canvas, this.said);
    this.model = { lanes: [], low: 0, high: 1, kind: "timestamp", gaps: [], clock: null, frontier: null, moment: null, edges: [0, 1], graph: null, changes: {} };
    this.line = new Line(0, 1);
    this.first = 0;
    this.last = 1;
    this.following = true; // whether all of time is shown, as it grows
    this.focus = null;
    this.frames = 0;
    this.drawn = { marks: 0, bins: 0 };
    this._listen();
  }

  /** Shows other data: some of lanes, low, high, kind, gaps, clock, frontier, moment, edges, selected, graph, changes. */
  update(change) {
    const before = this.model;
    this.model = { ...before, ...change };
    const { low, high, gaps } = this.model;
    if (low !== before.low || high !== before.high || gaps !== before.gaps) {
      const times = [this.line.time(this.first), this.line.time(this.last)];
      const spare = Math.max(1, (high - low) / 50);
      this.line = new Line(low - spare, high + spare, gaps);
      if (this.following) [this.first, this.last] = [0, this.line.length];
      else [this.first, this.last] = times.map((time) => this.line.place(time));
      this._asked();
    }
    this._draw();
  }

  show(from, to) {
    this.following = false;
    this._move(this.line.place(from), this.line.place(to));
  }

  showAll() {
    this.following = true;
    this._move(0, this.line.length);
  }

  zoom(factor, x = this.gutter + this.plot / 2) {
    const place = this.first + ((x - this.gutter) / this.plot) * (this.last - this.first);
    this.following = false;
    this._move(place - (place - this.first) * factor, place + (this.last - place) * factor);
  }

  pan(share) {
    this.following = false;
    const by = (this.last - this.first) * share;
    this._move(this.first + by, this.last + by);
  }

  range() {
    return [this.line.time(this.first), this.line.time(this.last)];
  }

  destroy() {
    this.watcher.disconnect();
    cancelAnimationFrame(this.frame);
    this.host.replaceChildren();
  }

  // What is asked for, and when

  _move(first, last) {
    const least = this.model.kind === "logical" ? 4 : 100, whole = this.line.length;
    let length = Math.min(Math.max(last - first, least), whole * 1.2);
    const middle = (first + last) / 2;
    first = Math.min(Math.max(middle - length / 2, -whole * 0.1), whole * 1.1 - length);
    [this.first, this.last] = [first, first + length];
    this._asked();
    this._draw();
  }

  _asked() {
    clearTimeout(this.asking);
    this.asking = setTimeout(() => this.on.view && this.on.view(this.view.edges(3)), 60);
  }

  get view() {
    return new View(this.line, this.first, this.last, this.gutter, this.plot);
  }

  _draw() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this._paint());
  }

  // Drawing

  get gutter() {
    return this.width < 560 ? 96 : 168;
  }

  get plot() {
    return Math.max(50, this.width - this.gutter - 14);
  }

  get width() {
    return this._width || 600;
  }

  _measure(text) {
    this.widths = this.widths && this.widths.size < 5000 ? this.widths : new Map();
    let width = this.widths.get(text);
    if (width === undefined) this.widths.set(text, (width = this.pen.measureText(text).width));
    return width;
  }

  _paint() {
    this.frame = 0;
    this.frames++;
    const style = getComputedStyle(this.host);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim() || "#888";
    this.colours = Object.fromEntries(["event", "derived", "detected", "late", "ink", "muted", "line", "panel", "moment", "gained", "lost"].map((name) => [name, colour(name)]));
    this.pen = this.canvas.getContext("2d");
    this.pen.font = FONT;
    const places = this._places();
    const height = places.bottom + AXIS, ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(this.width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(this.width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.height = `${height}px`;
    }
    const pen = this.pen;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.width, height);
    pen.font = FONT;
    pen.textBaseline = "middle";
    this.drawn = { marks: 0, bins: 0 };
    this._backs(places);
    pen.save();
    pen.beginPath();
    pen.rect(this.gutter - 7, 0, this.plot + 21, height);
    pen.clip();
    this._axis(places.bottom);
    this.scales = [];
    for (const lane of places.lanes) (lane.slots ? this._marks : this._bars).call(this, lane);
    this._arrows(places);
    this._times(places.bottom);
    this._scales();
    pen.restore();
    this.places = places;
  }

  /** Where lanes and marks are. */
  _places() {
    const view = this.view, right = this.gutter + this.plot;
    let top = TOP;
    const room = (this.host.clientHeight - TOP - AXIS) / Math.max(1, this.model.lanes.length) - 4;
    const tall = this.on.roomy ? Math.min(120, Math.max(HISTOGRAM, Math.floor(room))) : HISTOGRAM;
    const lanes = this.model.lanes.map((data) => {
      const lane = { data, top, marks: [] };
      if (data.marks) {
        const { start, end, label } = data.marks;
        for (let i = 0; i < start.length; i++) {
          const left = view.x(start[i]), to = view.x(end[i]);
          if (to >= this.gutter - 400 && left <= right + 10) lane.marks.push({ i, left, right: Math.max(left, to), shownLeft: Math.max(left, this.gutter) });
        }
        const boxes = lane.marks.map((mark) => [mark.shownLeft, mark.right, this._measure(label[mark.i])]);
        const slots = packed(boxes, this.gutter, right + 10);
        if (slots) {
          lane.slots = slots.slots;
          lane.height = 2 * PAD + ROW * slots.rows;
          lane.marks.forEach((mark, n) => Object.assign(mark, { y: top + PAD + ROW * (slots.slots[n].row + 0.5), label: slots.slots[n].label }));
        } else lane.bins = binsOf(data.marks, this.view.edges(4));
      } else lane.bins = { ...data.bins, edges: this.model.edges };
      lane.height = lane.height || tall;
      top += lane.height + 4;
      return lane;
    });
    return { lanes, bottom: Math.max(top, TOP + 60) };
  }

  _backs(places) {
    const pen = this.pen;
    for (const { data, top, height } of places.lanes) {
      pen.fillStyle = this.colours.line;
      pen.globalAlpha = 0.35;
      pen.fillRect(0, top, this.width, height);
      pen.globalAlpha = 1;
      pen.fillStyle = this.colours[data.kind];
      pen.fillRect(0, top, 3, height);
      const count = data.total.toLocaleString("en");
      const room = this.gutter - 26 - this._measure(count);
      pen.fillStyle = this.colours.ink;
      pen.font = "12px system-ui, sans-serif";
      pen.fillText(cut(pen, data.name, room), 10, top + height / 2);
      pen.font = FONT;
      pen.fillStyle = this.colours.muted;
      pen.textAlign = "right";
      pen.fillText(count, this.gutter - 12, top + height / 2);
      pen.textAlign = "left";
    }
    if (!places.lanes.length) {
      pen.fillStyle = this.colours.muted;
      pen.fillText("no events yet", this.gutter, TOP + 30);
    }
  }

  _axis(bottom) {
    const pen = this.pen, view = this.view;
    pen.strokeStyle = pen.fillStyle = this.colours.muted;
    for (const [from, to] of this.line.gaps) {
      const left = view.x(from), right = view.x(to);
      if (right < this.gutter || left > this.gutter + this.plot) continue;
      pen.globalAlpha = 0.12;
      pen.fillRect(left + 6, TOP, Math.max(1, right - left - 12), bottom - TOP);
      pen.globalAlpha = 1;
      if (right - left > 14) {
        pen.textAlign = "center";
        pen.fillText("≈", (left + right) / 2, bottom + 12);
        pen.textAlign = "left";
      }
    }
    for (const tick of view.ticks(this.model.kind)) {
      pen.globalAlpha = 0.18;
      pen.beginPath();
      pen.moveTo(Math.round(tick.x) + 0.5, TOP);
      pen.lineTo(Math.round(tick.x) + 0.5, bottom + 4);
      pen.stroke();
      pen.globalAlpha = 1;
      pen.textAlign = "center";
      const wide = this._measure(tick.text) / 2;
      pen.fillText(tick.text, Math.min(Math.max(tick.x, this.gutter + wide - 6), this.gutter + this.plot + 12 - wide), bottom + 14);
      if (tick.below) {
        const half = this._measure(tick.below) / 2;
        pen.fillText(tick.below, Math.min(Math.max(tick.x, this.gutter + half - 6), this.gutter + this.plot + 10 - half), bottom + 29);
      }
      pen.textAlign = "left";
    }
  }

  /** The clock and the frontier, and the moment that people look at. */
  _times(bottom) {
    const pen = this.pen, { clock, frontier, moment } = this.model;
    const lines = [[frontier, "frontier", this.colours.muted, [4, 3]], [clock, "clock", this.colours.ink, []]];
    if (moment !== null) lines.push([moment, "as of", this.colours.moment, []]);
    const taken = [];
    for (const [time, name, colour, dash] of lines) {
      if (time === null || time === undefined) continue;
      const x = this.view.x(time);
      if (x < this.gutter - 7 || x > this.gutter + this.plot + 7) continue;
      pen.strokeStyle = pen.fillStyle = colour;
      pen.setLineDash(dash);
      pen.lineWidth = name === "as of" ? 1.5 : 1;
      pen.beginPath();
      pen.moveTo(Math.round(x) + 0.5, 16);
      pen.lineTo(Math.round(x) + 0.5, bottom + 4);
      pen.stroke();
      pen.setLineDash([]);
      pen.lineWidth = 1;
      const half = this._measure(name) / 2 + 3;
      let middle = Math.min(Math.max(x, this.gutter - 4 + half), this.gutter + this.plot + 12 - half);
      while (taken.some(([a, b]) => middle - half < b && middle + half > a)) middle -= 10;
      if (middle - half < this.gutter - 10) continue;
      taken.push([middle - half, middle + half]);
      pen.textAlign = "center";
      pen.fillText(name, middle, 8);
      pen.textAlign = "left";
    }
  }

  _marks({ data, marks }) {
    const pen = this.pen, { state, label, id, start, end, arrived } = data.marks;
    this.drawn.marks += marks.length;
    for (const { i, left, right, y, label: labelX } of marks) {
      const gone = state[i] < 0, refused = state[i] === 2;
      const changed = this.model.changes[id[i]];
      const colour = changed ? this.colours[changed] : refused ? this.colours.muted : this.colours[data.kind];
      if (data.kind === "event" && state[i] > 0 && arrived[i] > end[i]) this._arrival(Math.max(right + RADIUS, labelX === null ? 0 : labelX + this._measure(label[i]) + 3), this.view.x(arrived[i]), y);
      pen.strokeStyle = pen.fillStyle = colour;
      pen.lineWidth = 1.5;
      if (gone || refused) pen.setLineDash([3, 2]);
      if (start[i] === end[i] || right - left < 3) this._point(data.kind, left, y, !(gone || refused));
      else this._bar(left, right, y, gone, colour);
      pen.setLineDash([]);
      if (gone || refused) this._strike(left, right, y, start[i] === end[i]);
      if (this._is(data, id[i], "selected")) this._ring(left, right, y);
      if (this.focus && this.focus.lane === data.name && this.focus.id === id[i]) this._ring(left, right, y, true);
      pen.lineWidth = 1;
      if (labelX !== null && label[i]) {
        pen.fillStyle = gone ? this.colours.muted : this.colours.ink;
        pen.fillText(label[i], labelX, y + 0.5);
      }
    }
  }

  _is(data, id, which) {
    const item = this.model[which];
    return item && item.type === data.name && item.id === id;
  }

  _point(kind, x, y, filled) {
    const pen = this.pen;
    pen.beginPath();
    if (kind === "event") pen.arc(x, y, RADIUS, 0, 7);
    else {
      pen.moveTo(x, y - RADIUS - 1);
      pen.lineTo(x + RADIUS + 1, y);
      pen.lineTo(x, y + RADIUS + 1);
      pen.lineTo(x - RADIUS - 1, y);
      pen.closePath();
    }
    if (filled) pen.fill();
    else pen.stroke();
  }

  _bar(left, right, y, gone) {
    const pen = this.pen;
    const from = Math.max(left, this.gutter - 20), to = Math.min(right, this.gutter + this.plot + 20);
    pen.beginPath();
    pen.roundRect(from, y - BAR / 2, to - from, BAR, 3);
    if (!gone) {
      pen.globalAlpha = 0.25;
      pen.fill();
      pen.globalAlpha = 1;
    }
    pen.stroke();
  }

  _strike(left, right, y, point) {
    const pen = this.pen;
    pen.beginPath();
    if (point) {
      pen.moveTo(left - RADIUS - 2, y + RADIUS + 2);
      pen.lineTo(left + RADIUS + 2, y - RADIUS - 2);
    } else {
      pen.moveTo(left - 3, y);
      pen.lineTo(right + 3, y);
    }
    pen.stroke();
  }

  /** From a late event, and its label, to when it arrived. */
  _arrival(from, to, y) {
    const pen = this.pen;
    pen.strokeStyle = this.colours.late;
    pen.lineWidth = 1.5;
    pen.setLineDash([1, 3]);
    pen.beginPath();
    if (from < to) {
      pen.moveTo(from, y);
      pen.lineTo(to, y);
      pen.stroke();
    }
    pen.setLineDash([]);
    pen.beginPath();
    pen.moveTo(to, y - 4);
    pen.lineTo(to, y + 4);
    pen.stroke();
  }

  _ring(left, right, y, dashed) {
    const pen = this.pen;
    pen.strokeStyle = this.colours.ink;
    pen.lineWidth = dashed ? 1 : 1.5;
    if (dashed) pen.setLineDash([2, 2]);
    pen.beginPath();
    pen.roundRect(left - RADIUS - 4, y - RADIUS - 4, right - left + 2 * RADIUS + 8, 2 * RADIUS + 8, 7);
    pen.stroke();
    pen.setLineDash([]);
  }

  /** A histogram: what stands, what is late of it, and what is gone as an outline. */
  _bars({ data, bins, top, height }) {
    const pen = this.pen, view = this.view, { edges, standing, gone, late } = bins;
    const most = Math.max(1, ...standing, ...gone), unit = (height - 18) / most, base = top + height - 5;
    const xs = edges.map((edge) => view.x(edge));
    const bars = (counts, colour, outline) => {
      pen.fillStyle = pen.strokeStyle = colour;
      pen.beginPath();
      for (let i = 0; i < counts.length; i++) {
        if (!counts[i] || xs[i + 1] < this.gutter || xs[i] > this.gutter + this.plot) continue;
        const tall = Math.max(1, counts[i] * unit);
        pen.rect(xs[i], base - tall, Math.max(1, xs[i + 1] - xs[i]), tall);
        this.drawn.bins++;
      }
      if (outline) pen.stroke();
      else pen.fill();
    };
    bars(standing, this.colours[data.kind]);
    if (late.some(Boolean)) bars(late, this.colours.late);
    if (gone.some(Boolean)) bars(gone, this.colours.muted, true);
    const each = showLength(Math.round((edges[edges.length - 1] - edges[0]) / standing.length), this.model.kind);
    this.scales.push([`up to ${most.toLocaleString("en")} in ${each}`, top + 8]);
  }

  /** What the bars of histograms stand for, above all lines. */
  _scales() {
    const pen = this.pen, x = this.gutter + this.plot + 8;
    pen.textAlign = "right";
    pen.strokeStyle = this.colours.panel;
    pen.fillStyle = this.colours.muted;
    pen.lineWidth = 3;
    for (const [text, y] of this.scales) {
      pen.strokeText(text, x, y);
      pen.fillText(text, x, y);
    }
    pen.lineWidth = 1;
    pen.textAlign = "left";
  }

  // Derivations

  _arrows(places) {
    const { graph } = this.model;
    if (!graph) return;
    const where = new Map();
    for (const node of graph.nodes) {
      const lane = places.lanes.find(({ data }) => data.name === node.type);
      if (!lane || node.kind === "fact") continue;
      const mark = lane.slots && lane.marks.find(({ i }) => lane.data.marks.id[i] === node.id);
      const y = mark ? mark.y : lane.top + lane.height - 12;
      const place = { left: this.view.x(node.start), right: this.view.x(node.end), y };
      if (!lane.slots) {
        this.pen.fillStyle = this.colours[node.kind];
        this.pen.strokeStyle = this.colours.ink;
        this._point(node.kind, place.right, y, true);
        this._point(node.kind, place.right, y, false);
      }
      where.set(node.key, place);
    }
    for (const edge of graph.edges) {
      const part = where.get(edge.from), whole = where.get(edge.to);
      if (part && whole) this._arrow(part, whole);
    }
  }

  _arrow(part, whole) {
    const pen = this.pen, x1 = part.right, x2 = Math.min(Math.max(x1, whole.left), whole.right);
    const down = whole.y >= part.y ? 1 : -1, near = Math.abs(whole.y - part.y) < 4;
    const y1 = near ? part.y - 7 : part.y + 7 * down, y2 = near ? whole.y - 8 : whole.y - 9 * down;
    const middle = near ? y1 - 14 : (y1 + y2) / 2;
    pen.strokeStyle = pen.fillStyle = this.colours.ink;
    pen.globalAlpha = 0.6;
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.bezierCurveTo(x1, middle, x2, middle, x2, y2 - 3 * (near ? 1 : down));
    pen.stroke();
    pen.beginPath();
    const head = near ? 1 : down;
    pen.moveTo(x2 - 3.2, y2 - 5 * head);
    pen.lineTo(x2 + 3.2, y2 - 5 * head);
    pen.lineTo(x2, y2 + 1.5 * head);
    pen.fill();
    pen.globalAlpha = 1;
  }

  // What people do

  _hit(x, y) {
    for (const lane of this.places ? this.places.lanes : []) {
      if (y < lane.top || y > lane.top + lane.height || !lane.slots) continue;
      let best = null, distance = 8;
      for (const mark of lane.marks) {
        const dx = x < mark.left ? mark.left - x : x > mark.right ? x - mark.right : 0;
        const away = Math.max(dx, Math.abs(y - mark.y) - BAR / 2);
        if (away < distance) [best, distance] = [mark, away];
      }
      if (best) return this._item(lane, best.i);
    }
    return null;
  }

  _item(lane, i) {
    const { marks, name, kind } = lane.data;
    return { type: name, kind, id: marks.id[i], start: marks.start[i], end: marks.end[i], label: marks.label[i], state: marks.state[i], arrived: marks.arrived[i] };
  }

  describe(item) {
    const { kind } = this.model;
    const when = item.start === item.end ? showTime(item.end, kind) : `${showTime(item.start, kind)} to ${showTime(item.end, kind)}`;
    const late = item.kind === "event" && item.state > 0 ? `, arrived at ${showTime(item.arrived, kind)}${item.state === 2 ? " and was refused" : ""}` : "";
    return `${item.type}(${item.label}) · ${WORDS[item.kind]} · ${when}${late}${item.state < 0 ? ", taken back" : ""}`;
  }

  _listen() {
    const canvas = this.canvas;
    this.watcher = new ResizeObserver(([entry]) => {
      this._width = Math.floor(entry.contentRect.width);
      this._asked();
      this._draw();
    });
    this.watcher.observe(this.host);
    const inside = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("wheel", (event) => {
      const scrolls = this.host.scrollHeight > this.host.clientHeight + 4 && !event.ctrlKey;
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX / this.plot);
      else if (!scrolls) this.zoom(1.0015 ** event.deltaY, inside(event)[0]);
      else return;
      event.preventDefault();
    }, { passive: false });
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      const [x, y] = inside(event);
      drag = { x, y, first: this.first, last: this.last, moved: false, range: event.shiftKey };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = inside(event);
      if (!drag) {
        const item = this._hit(x, y);
        canvas.style.cursor = item ? "pointer" : "default";
        if (this.on.hover) this.on.hover(item ? this.describe(item) : "", item);
        return;
      }
      if (Math.abs(x - drag.x) > 3) drag.moved = true;
      if (drag.moved && !drag.range) {
        this.following = false;
        const by = ((drag.x - x) / this.plot) * (drag.last - drag.first);
        this._move(drag.first + by, drag.last + by);
      }
    });
    canvas.addEventListener("pointerup", (event) => {
      const [x, y] = inside(event);
      const was = drag;
      drag = null;
      if (!was) return;
      if (was.moved && was.range) this.show(...[was.x, x].sort((a, b) => a - b).map((edge) => this.view.time(edge)));
      else if (!was.moved && this.on.select) this.on.select(this._hit(x, y));
    });
    canvas.addEventListener("dblclick", () => this.showAll());
    canvas.addEventListener("keydown", (event) => this._key(event));
    canvas.addEventListener("blur", () => { this.focus = null; this._draw(); });
  }

  _key(event) {
    const keys = {
      "+": () => this.zoom(0.6), "=": () => this.zoom(0.6), "-": () => this.zoom(1 / 0.6), "0": () => this.showAll(),
      ArrowLeft: () => (event.shiftKey ? this.pan(-0.2) : this._step(-1)), ArrowRight: () => (event.shiftKey ? this.pan(0.2) : this._step(1)),
      ArrowUp: () => this._lane(-1), ArrowDown: () => this._lane(1),
      Enter: () => this._open(), " ": () => this._open(),
      Escape: () => { this.focus = null; if (this.on.select) this.on.select(null); },
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
    this._draw();
  }

  _focused() {
    const lanes = this.places.lanes.filter((lane) => lane.slots && lane.marks.length);
    const number = this.focus ? lanes.findIndex((lane) => lane.data.name === this.focus.lane) : -1;
    return { lanes, number };
  }

  _step(by) {
    const { lanes, number } = this._focused();
    if (!lanes.length) return this.pan(by * 0.2);
    const lane = lanes[Math.max(0, number)];
    const order = [...lane.marks].sort((a, b) => a.left - b.left);
    const now = this.focus ? order.findIndex(({ i }) => lane.data.marks.id[i] === this.focus.id) : -1;
    const next = order[Math.min(order.length - 1, Math.max(0, now + by))];
    this._focusOn(lane, next);
  }

  _lane(by) {
    const { lanes, number } = this._focused();
    if (!lanes.length) return;
    const lane = lanes[Math.min(lanes.length - 1, Math.max(0, number + by))];
    const x = this.focus ? this.focus.x : 0;
    const nearest = lane.marks.reduce((best, mark) => (Math.abs(mark.left - x) < Math.abs(best.left - x) ? mark : best));
    this._focusOn(lane, nearest);
  }

  _focusOn(lane, mark) {
    const item = this._item(lane, mark.i);
    this.focus = { lane: item.type, id: item.id, x: mark.left, item };
    this.said.textContent = this.describe(item);
    if (this.on.hover) this.on.hover(this.said.textContent, item);
  }

  _open() {
    if (this.focus && this.on.select) this.on.select(this.focus.item);
  }
}

/** Marks that are too many for rows, counted. */
export function binsOf({ start, end, state }, edges) {
  const bins = { edges, standing: new Array(edges.length - 1).fill(0), gone: new Array(edges.length - 1).fill(0), late: new Array(edges.length - 1).fill(0) };
  const bin = (time) => {
    let low = 0, high = edges.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (edges[middle] <= time) low = middle;
      else high = middle;
    }
    return low;
  };
  for (let i = 0; i < start.length; i++) {
    if (end[i] < edges[0] || start[i] > edges[edges.length - 1]) continue;
    const counts = state[i] < 0 ? bins.gone : bins.standing;
    for (let k = bin(start[i]), last = bin(end[i]); k <= last; k++) {
      counts[k]++;
      if (state[i] > 0) bins.late[k]++;
    }
  }
  return bins;
}

function cut(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let length = text.length;
  while (length > 1 && pen.measureText(`${text.slice(0, length)}…`).width > room) length--;
  return `${text.slice(0, length)}…`;
}
