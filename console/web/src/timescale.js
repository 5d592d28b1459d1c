// Time as places: idle times may be collapsed, ticks stand at round times.

const SECOND = 1e6, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const STEPS = [
  ...[1, 10, 100, 1e3, 1e4, 1e5].flatMap((power) => [power, 2 * power, 5 * power]),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND), ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR), ...[1, 2, 7].map((n) => n * DAY),
];
const MONTH_STEPS = [1, 3, 6, 12, 24, 60, 120, 240, 600, 1200];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** A monotone map between times and a line on which collapsed gaps are short. */
export class Line {
  constructor(low, high, gaps = []) {
    const idle = gaps.reduce((sum, [from, to]) => sum + to - from, 0);
    const short = gaps.length ? Math.max(1, (high - low - idle) * 0.02) : 0;
    this.gaps = gaps;
    this.times = [low];
    this.places = [0];
    let place = 0, last = low;
    for (const [from, to] of gaps) {
      place += from - last;
      this.times.push(from, to);
      this.places.push(place, (place += Math.min(short, to - from)));
      last = to;
    }
    this.times.push(Math.max(high, last + 1));
    this.places.push(place + Math.max(high, last + 1) - last);
    this.low = low;
  }

  get length() {
    return this.places[this.places.length - 1];
  }

  place(time) {
    return convert(time, this.times, this.places);
  }

  time(place) {
    return convert(place, this.places, this.times);
  }
}

function convert(value, from, to) {
  let low = 0, high = from.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (from[middle] <= value) low = middle;
    else high = middle;
  }
  if (value < from[0]) return to[0] + (value - from[0]);
  if (value > from[from.length - 1]) return to[to.length - 1] + (value - from[from.length - 1]);
  const span = from[high] - from[low] || 1;
  return to[low] + ((value - from[low]) / span) * (to[high] - to[low]);
}

/** The part of a line between two places, drawn from `left` on. */
export class View {
  constructor(line, first, last, left, width) {
    Object.assign(this, { line, first, last, left, width });
  }

  x(time) {
    return this.left + ((this.line.place(time) - this.first) / (this.last - this.first)) * this.width;
  }

  time(x) {
    return this.line.time(this.first + ((x - this.left) / this.width) * (this.last - this.first));
  }

  /** Increasing whole times, about one for each `size` pixels. */
  edges(size) {
    const count = Math.max(2, Math.floor(this.width / size));
    const edges = [];
    for (let i = 0; i <= count; i++) {
      const time = Math.round(this.line.time(this.first + ((this.last - this.first) * i) / count));
      if (!edges.length || time > edges[edges.length - 1]) edges.push(time);
    }
    if (edges.length < 2) edges.push(edges[0] + 1);
    return edges;
  }

  ticks(kind) {
    const perPixel = (this.last - this.first) / this.width;
    const shown = this.line.gaps.filter(([from, to]) => this.x(to) > this.left && this.x(from) < this.left + this.width);
    const bounds = [Math.ceil(this.time(this.left)), ...shown.flat(), Math.floor(this.time(this.left + this.width))];
    const result = [];
    let before = "";
    for (let i = 0; i + 1 < bounds.length; i += 2) {
      for (const tick of ticksOf(bounds[i], bounds[i + 1], perPixel * 95, kind)) {
        result.push({ ...tick, x: this.x(tick.time), below: tick.below === before ? "" : tick.below });
        before = tick.below;
      }
    }
    return result.filter((tick, i) => i === 0 || tick.x - result[i - 1].x > 50);
  }
}

function ticksOf(low, high, least, kind) {
  if (kind === "logical") {
    const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
    const step = [1, 2, 5, 10].map((n) => n * power).find((size) => size >= least) || 1;
    return range(low, high, step, 0).map((time) => ({ time, text: time.toLocaleString("en"), below: "" }));
  }
  const step = STEPS.find((size) => size >= least);
  if (step === undefined) return byMonths(low, high, least / (30.4 * DAY));
  const origin = step === 7 * DAY ? -3 * DAY : 0;
  return range(low, high, step, origin).map((time) => ({ time, ...words(time, step) }));
}

function range(low, high, step, origin) {
  const result = [];
  for (let time = Math.ceil((low - origin) / step) * step + origin; time <= high && result.length < 200; time += step) result.push(time);
  return result;
}

function words(time, step) {
  const date = new Date(time / 1000);
  const day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  if (step >= DAY) return { text: day, below: String(date.getUTCFullYear()) };
  const below = `${day} ${date.getUTCFullYear()}`;
  const clock = date.toISOString().slice(11, 16);
  if (step >= MINUTE) return { text: clock, below };
  if (step >= SECOND) return { text: date.toISOString().slice(11, 19), below };
  const micro = String(((time % SECOND) + SECOND) % SECOND).padStart(6, "0");
  return { text: `${date.toISOString().slice(17, 19)}.${step % 1000 ? micro : micro.slice(0, 3)}`, below: `${clock}, ${below}` };
}

function byMonths(low, high, least) {
  const step = MONTH_STEPS.find((months) => months >= least) || 1200;
  const first = new Date(low / 1000), last = new Date(high / 1000);
  const result = [];
  const months = (date) => date.getUTCFullYear() * 12 + date.getUTCMonth();
  for (let month = Math.ceil(months(first) / step) * step; month <= months(last) && result.length < 200; month += step) {
    const time = Date.UTC(Math.floor(month / 12), month % 12, 1) * 1000;
    if (time < low) continue;
    const year = String(Math.floor(month / 12));
    result.push(step >= 12 ? { time, text: year, below: "" } : { time, text: MONTHS[month % 12], below: year });
  }
  return result;
}

/** A time as people write it. */
export function showTime(time, kind) {
  if (time === null || time === undefined) return "–";
  if (kind === "logical") return time.toLocaleString("en");
  const date = new Date(time / 1000);
  if (Number.isNaN(date.getTime())) return String(time);
  const micro = ((time % SECOND) + SECOND) % SECOND;
  const fraction = micro ? `.${String(micro).padStart(6, "0").replace(/0+$/, "")}` : "";
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()} ${date.toISOString().slice(11, 19)}${fraction}`;
}

/** A length of time in a unit that suits it. */
export function showLength(length, kind) {
  if (kind === "logical") return length === 1 ? "1 tick" : `${length.toLocaleString("en")} ticks`;
  const units = [["days", DAY, 2 * DAY], ["h", HOUR, HOUR], ["min", MINUTE, MINUTE], ["s", SECOND, SECOND], ["ms", 1000, 1000]];
  const i = units.findIndex(([, , least]) => Math.abs(length) >= least);
  if (i < 0) return `${length} µs`;
  const [unit, size] = units[i];
  if (size <= SECOND) return `${Number((length / size).toPrecision(3))} ${unit}`;
  // In two units: 1 h 50 min.
  const [below, small] = units[i + 1], parts = Math.round(Math.abs(length) / small), whole = Math.floor((parts * small) / size);
  const rest = parts - (whole * size) / small;
  return `${length < 0 ? "−" : ""}${whole} ${unit}${rest ? ` ${rest} ${below}` : ""}`;
}
