// All of time in one strip: where events and detections are, what of it is shown, and the moment that is looked at.

import { useEffect, useRef } from "preact/hooks";

const HEIGHT = 44;

export function Overview({ data, kind, low, high, range, moment, clock, onMoment, onRange }) {
  const host = useRef(null);
  useEffect(() => {
    const canvas = host.current;
    const paint = () => draw(canvas, { data, low, high, range, moment, clock });
    paint();
    const watcher = new ResizeObserver(paint);
    watcher.observe(canvas.parentElement);
    return () => watcher.disconnect();
  });
  const timeAt = (event) => {
    const box = host.current.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    // A pixel is many times: one of them is a round one.
    const time = low + share * (high - low), perPixel = (high - low) / Math.max(1, box.width);
    const unit = kind === "logical" ? 1 : [6e7, 1e6, 1e3].find((size) => size <= perPixel * 2) || 1;
    return Math.round(Math.min(high, Math.max(low, Math.round(time / unit) * unit)));
  };
  const down = (event) => {
    host.current.setPointerCapture(event.pointerId);
    host.current.dragFrom = event.shiftKey ? timeAt(event) : null;
    if (!event.shiftKey) onMoment(timeAt(event));
  };
  const move = (event) => {
    if (!host.current.hasPointerCapture(event.pointerId)) return;
    if (host.current.dragFrom === null) onMoment(timeAt(event));
  };
  const up = (event) => {
    const from = host.current.dragFrom;
    if (from !== null && from !== undefined) onRange(...[from, timeAt(event)].sort((a, b) => a - b));
    host.current.dragFrom = undefined;
  };
  const key = (event) => {
    const step = (high - low) / 100;
    const now = moment === null ? high : moment;
    const moves = { ArrowLeft: now - step, ArrowRight: now + step, PageUp: now - 10 * step, PageDown: now + 10 * step, Home: low };
    if (event.key === "End" || event.key === "Escape") onMoment(null);
    else if (event.key in moves) onMoment(Math.round(Math.min(high, Math.max(low, moves[event.key]))));
    else return;
    event.preventDefault();
  };
  return (
    <div class="overview">
      <canvas
        ref={host} tabIndex={0} role="slider" aria-label="The moment that is looked at; arrow keys move it, End goes to the latest"
        aria-valuemin={low} aria-valuemax={high} aria-valuenow={moment === null ? high : moment}
        onPointerDown={down} onPointerMove={move} onPointerUp={up} onKeyDown={key}
      />
    </div>
  );
}

function draw(canvas, { data, low, high, range, moment }) {
  const width = canvas.parentElement.clientWidth, ratio = window.devicePixelRatio || 1;
  if (!width) return;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(HEIGHT * ratio);
  const pen = canvas.getContext("2d"), style = getComputedStyle(canvas);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  const x = (time) => ((time - low) / Math.max(1, high - low)) * width;
  if (data) {
    const { counts, edges } = data;
    const most = Math.max(1, ...counts.event), strongest = Math.max(1, ...counts.detected);
    for (let i = 0; i + 1 < edges.length; i++) {
      const left = x(edges[i]), wide = Math.max(1, x(edges[i + 1]) - left);
      pen.globalAlpha = 0.55;
      pen.fillStyle = colour("event");
      const tall = counts.event[i] ? Math.max(1.5, (counts.event[i] / most) * (HEIGHT - 18)) : 0;
      pen.fillRect(left, HEIGHT - 3 - tall, wide, tall);
      pen.globalAlpha = 1;
      if (counts.detected[i]) {
        pen.fillStyle = colour("detected");
        pen.globalAlpha = 0.45 + 0.55 * (counts.detected[i] / strongest);
        pen.fillRect(left, 4, Math.max(2, wide), 6);
        pen.globalAlpha = 1;
      }
    }
  }
  if (range) {
    const [left, right] = [Math.max(0, x(range[0])), Math.min(width, x(range[1]))];
    pen.fillStyle = colour("ink");
    pen.globalAlpha = 0.1;
    pen.fillRect(0, 0, left, HEIGHT);
    pen.fillRect(right, 0, width - right, HEIGHT);
    pen.globalAlpha = 0.5;
    pen.strokeStyle = colour("ink");
    if (right - left < width - 2) pen.strokeRect(left + 0.5, 0.5, Math.max(2, right - left - 1), HEIGHT - 1);
    pen.globalAlpha = 1;
  }
  if (moment !== null) {
    pen.fillStyle = colour("moment");
    pen.fillRect(x(moment) - 1, 0, 2, HEIGHT);
    pen.beginPath();
    pen.arc(x(moment), 7, 5, 0, 7);
    pen.fill();
  }
}
