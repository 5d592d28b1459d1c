"use strict";
// Pans and zooms the time of a timeline: marks, bins, arrows and ticks stand where their `data-` attributes say.
const svg = document.querySelector("svg[data-about]");
if (svg) {
  const about = JSON.parse(svg.dataset.about);
  const { left, width, top, bottom } = about;
  let lo = about.lo, hi = about.hi;
  const place = (t) => left + (t - lo) / (hi - lo) * width;
  const all = (query) => [...svg.querySelectorAll(query)];
  const numbers = (text) => text.split(" ").map(Number);

  // What lies beside the plot is cut off.
  const ns = "http://www.w3.org/2000/svg";
  const clip = svg.insertBefore(document.createElementNS(ns, "clipPath"), svg.firstChild);
  clip.id = "plot";
  const hole = clip.appendChild(document.createElementNS(ns, "rect"));
  for (const [name, value] of Object.entries({ x: left - 7, y: top, width: width + 7, height: bottom - top })) hole.setAttribute(name, value);
  const plot = document.createElementNS(ns, "g");
  plot.setAttribute("clip-path", "url(#plot)");
  const movable = all(":scope > .mark, :scope > .bins, :scope > .arrow, :scope > .why");
  svg.append(plot);
  plot.append(...movable);

  const marks = all(".mark").map((g) => {
    const [start, end] = numbers(g.dataset.t);
    const text = g.querySelector("text");
    const at = text && Number(text.getAttribute("x"));
    return { g, start, end, text, at, y: g.getAttribute("transform").match(/ (\S+)\)/)[1],
             bar: g.querySelector("rect"), strike: g.querySelector(".strike"), length: place(end) - place(start) };
  });
  const arrows = all(".arrow").map((g) => ({ g, x: numbers(g.dataset.x), y: numbers(g.dataset.y), paths: g.querySelectorAll("path") }));

  const SECOND = 1e6, MINUTE = 60e6, HOUR = 3600e6, DAY = 86400e6;
  const STEPS = [0, 1, 2, 3, 4, 5].flatMap((k) => [1, 2, 5].map((m) => m * 10 ** k)).concat(
    [1, 2, 5, 10, 15, 30].map((n) => n * SECOND), [1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
    [1, 2, 3, 6, 12].map((n) => n * HOUR), [1, 2, 7].map((n) => n * DAY));
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

  function said(t, step) {
    const d = new Date(t / 1000), iso = d.toISOString();
    const day = `${d.getUTCDate()} ${MONTHS[d.getUTCMonth()]}`;
    if (step >= DAY) return [day, String(d.getUTCFullYear())];
    const date = `${day} ${d.getUTCFullYear()}`;
    if (step >= MINUTE) return [iso.slice(11, 16), date];
    if (step >= SECOND) return [iso.slice(11, 19), date];
    const digits = String(((t % SECOND) + SECOND) % SECOND).padStart(6, "0");
    return [`${iso.slice(17, 19)}.${step % 1000 === 0 ? digits.slice(0, 3) : digits}`, `${iso.slice(11, 16)}, ${date}`];
  }

  function ticks(most) {
    const found = [];
    if (about.clock === "logical") {
      const least = Math.max(1, (hi - lo) / most), power = 10 ** Math.floor(Math.log10(least));
      const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= least);
      for (let t = Math.ceil(lo / step) * step; t <= hi; t += step) found.push([t, t.toLocaleString("en"), ""]);
      return found;
    }
    let before = "";
    const step = STEPS.find((s) => (hi - lo) / s <= most);
    const add = (t, text, below) => { found.push([t, text, below === before ? "" : below]); before = below; };
    if (step) {
      const origin = step === 7 * DAY ? -3 * DAY : 0;
      for (let t = Math.ceil((lo - origin) / step) * step + origin; t <= hi; t += step) add(t, ...said(t, step));
      return found;
    }
    const first = new Date(lo / 1000), last = new Date(hi / 1000);
    const from = first.getUTCFullYear() * 12 + first.getUTCMonth(), to = last.getUTCFullYear() * 12 + last.getUTCMonth();
    const months = [1, 3, 6, 12, 24, 60, 120, 240, 600, 1200].find((s) => (to - from) / s <= most) || 1200;
    for (let m = Math.ceil(from / months) * months; m <= to; m += months) {
      const t = Date.UTC(Math.floor(m / 12), m % 12) * 1000;
      if (t >= lo) months >= 12 ? add(t, String(Math.floor(m / 12)), "") : add(t, MONTHS[m % 12], String(Math.floor(m / 12)));
    }
    return found;
  }

  function draw() {
    const zoom = (about.hi - about.lo) / (hi - lo);
    for (const m of marks) {
      m.g.setAttribute("transform", `translate(${place(m.start)} ${m.y})`);
      const length = place(m.end) - place(m.start);
      if (m.bar) m.bar.setAttribute("width", length);
      if (m.strike) m.strike.setAttribute("d", `M-3 0H${length + 3}`);
      if (m.text) m.text.setAttribute("x", m.at > m.length ? m.at - m.length + length : m.at);
    }
    for (const a of arrows) {
      const [x1, x2] = a.x.map(place), [y1, y2, down] = a.y;
      const middle = y1 === y2 ? y1 - 12 : (y1 + y2) / 2;
      a.paths[0].setAttribute("d", `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2 - 4 * down}`);
      a.paths[1].setAttribute("d", `M${x2 - 3.2} ${y2 - 5 * down}L${x2 + 3.2} ${y2 - 5 * down} ${x2} ${y2 + 1.5 * down}Z`);
    }
    const level = Math.min(3, Math.floor(Math.log(zoom) / Math.log(4) + 1e-9));
    const shift = place(about.lo) - zoom * left;
    for (const g of all(".bins")) {
      g.style.display = Number(g.dataset.level) === level ? "" : "none";
      g.querySelector("g").setAttribute("transform", `translate(${shift} ${g.dataset.y}) scale(${zoom} 1)`);
    }
    const lines = [], texts = [];
    for (const [t, text, below] of ticks(Math.max(2, Math.floor(width / 90)))) {
      const x = place(t).toFixed(1);
      lines.push(`<path d="M${x} ${top}V${bottom + 4}"/>`);
      texts.push(`<text x="${x}" y="${bottom + 17}" text-anchor="middle" fill="currentColor">${text}</text>`);
      if (below) texts.push(`<text x="${x}" y="${bottom + 31}" text-anchor="middle" font-size="10" fill="currentColor" fill-opacity="0.7">${below}</text>`);
    }
    svg.querySelector(".axis").innerHTML = lines.join("");
    svg.querySelector(".times").innerHTML = texts.join("");
  }

  function show(from, to) {
    const least = 10, whole = about.hi - about.lo;
    if (to - from < least) return;
    if (to - from >= whole) { from = about.lo; to = about.hi; }
    if (from < about.lo) { to += about.lo - from; from = about.lo; }
    if (to > about.hi) { from -= to - about.hi; to = about.hi; }
    lo = from; hi = to;
    draw();
  }

  const time = (event) => {
    const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
    const scale = Math.min(box.width / view.width, box.height / view.height);
    const x = (event.clientX - box.left - (box.width - view.width * scale) / 2) / scale;
    return [lo + (x - left) / width * (hi - lo), scale];
  };
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const [t] = time(event), factor = Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 200);
    show(t - (t - lo) * factor, t + (hi - t) * factor);
  }, { passive: false });

  let grabbed = null, moved = false;
  svg.addEventListener("pointerdown", (event) => { grabbed = { x: event.clientX, lo, hi, scale: time(event)[1] }; moved = false; });
  addEventListener("pointermove", (event) => {
    if (!grabbed) return;
    const by = (event.clientX - grabbed.x) / grabbed.scale / width * (grabbed.hi - grabbed.lo);
    moved = moved || Math.abs(event.clientX - grabbed.x) > 3;
    if (moved) { svg.classList.add("moving"); show(grabbed.lo - by, grabbed.hi - by); }
  });
  addEventListener("pointerup", () => { grabbed = null; svg.classList.remove("moving"); });
  svg.addEventListener("dblclick", () => show(about.lo, about.hi));

  const said0 = document.getElementById("said"), help = said0.textContent;
  const first = all(".arrow").filter((g) => !g.closest(".why"));
  svg.addEventListener("click", (event) => {
    if (moved) return;
    const mark = event.target.closest(".mark");
    all(".mark.chosen").forEach((g) => g.classList.remove("chosen"));
    all(".why").forEach((g) => { g.style.display = mark && g.dataset.of === mark.dataset.i ? "" : "none"; });
    first.forEach((g) => { g.style.display = mark ? "none" : ""; });
    if (mark) mark.classList.add("chosen");
    said0.textContent = mark ? mark.querySelector("title").textContent : help;
  });
}
