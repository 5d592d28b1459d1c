// A derivation as a graph over the time axis: an event a row, parts below what they are part of.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Line, View } from "./timescale.js";

const ROW = 30, TOP = 6, AXIS = 30;

/** The rows of nodes: each below what it is part of, depth first. */
function ordered(graph) {
  const below = new Map();
  for (const edge of graph.edges) below.set(edge.to, [...(below.get(edge.to) || []), edge.from]);
  const parts = new Set(graph.edges.map((edge) => edge.from));
  const nodes = new Map(graph.nodes.map((node) => [node.key, node]));
  const rows = [];
  const visit = (key, depth) => {
    if (rows.some((row) => row.node.key === key)) return;
    const node = nodes.get(key);
    rows.push({ node, depth });
    const next = (below.get(key) || []).map((part) => nodes.get(part)).filter(Boolean);
    next.sort((a, b) => (a.kind === "fact") - (b.kind === "fact") || a.end - b.end);
    next.forEach((part) => visit(part.key, depth + 1));
  };
  for (const node of graph.nodes) if (!parts.has(node.key)) visit(node.key, 0);
  for (const node of graph.nodes) visit(node.key, 0);
  return rows;
}

export function DerivationGraph({ graph, kind, onSelect, label }) {
  const host = useRef(null);
  const [width, setWidth] = useState(320);
  useEffect(() => {
    const watcher = new ResizeObserver(([entry]) => setWidth(Math.max(240, Math.floor(entry.contentRect.width))));
    watcher.observe(host.current);
    return () => watcher.disconnect();
  }, []);
  const rows = useMemo(() => ordered(graph), [graph]);
  const low = Math.min(...rows.map(({ node }) => node.start)), high = Math.max(...rows.map(({ node }) => node.end));
  const spare = Math.max(1, (high - low) * 0.04);
  const line = new Line(low - spare, high + spare);
  const view = new View(line, 0, line.length, 14, width - 28);
  const y = new Map(rows.map(({ node }, i) => [node.key, TOP + ROW * i + 20]));
  const bottom = TOP + ROW * rows.length + 6;
  const byKey = new Map(rows.map(({ node }) => [node.key, node]));
  return (
    <div class="graph" ref={host}>
      <svg width={width} height={bottom + AXIS} role="group" aria-label={label}>
        <g class="grid">
          {view.ticks(kind).filter((_, i, all) => width > 300 || i % 2 === 0 || all.length < 4).map((tick) => (
            <g key={tick.time}>
              <line x1={tick.x} x2={tick.x} y1={TOP} y2={bottom} />
              <text x={tick.x} y={bottom + 13} text-anchor="middle">{tick.text}</text>
              {tick.below && <text x={Math.min(Math.max(tick.x, 34), width - 34)} y={bottom + 26} text-anchor="middle">{tick.below}</text>}
            </g>
          ))}
        </g>
        {graph.edges.map((edge) => {
          const part = byKey.get(edge.from), whole = byKey.get(edge.to);
          if (!part || !whole) return null;
          const x1 = view.x(part.end), x2 = Math.min(Math.max(x1, view.x(whole.start)), view.x(whole.end));
          const [y1, y2] = [y.get(part.key), y.get(whole.key)];
          return <path class={`edge ${part.kind}`} key={`${edge.from}>${edge.to}`} d={`M${x1} ${y1}C${x1} ${(y1 + y2) / 2} ${x2} ${(y1 + y2) / 2} ${x2} ${y2}`} />;
        })}
        {rows.map(({ node, depth }) => (
          <Node key={node.key} node={node} depth={depth} y={y.get(node.key)} view={view} width={width} onSelect={onSelect} />
        ))}
      </svg>
      {graph.leftOut > 0 && <p class="quiet">{graph.leftOut.toLocaleString("en")} more parts are not drawn.</p>}
    </div>
  );
}

function Node({ node, depth, y, view, width, onSelect }) {
  const left = view.x(node.start), right = view.x(node.end);
  const text = `${node.kind === "fact" ? node.text : `${node.type}(${node.args.join(", ")})`}${node.rule ? `  ← ${node.rule}` : ""}`;
  const most = Math.floor((width - 16) / 6.2), shown = text.length > most ? `${text.slice(0, most - 1)}…` : text;
  const room = shown.length * 6.2;
  const x = Math.max(4, Math.min(left - 4, width - room - 8));
  const open = node.kind === "fact" || !onSelect ? null : () => onSelect(node);
  const point = right - left < 4;
  return (
    <g
      class={`node ${node.kind}${depth === 0 ? " root" : ""}`} tabIndex={open ? 0 : undefined} role={open ? "button" : undefined}
      onClick={open} onKeyDown={open && ((event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), open()))}
    >
      <title>{node.text}</title>
      <rect class="hit" x={0} y={y - 18} width={width} height={ROW} />
      <text x={x} y={y - 9}>{shown}</text>
      {node.kind === "fact" ? <path d={`M${right - 5} ${y - 4}h10v8h-10z`} />
        : !point ? <rect class="bar" x={left} y={y - 4} width={right - left} height={8} rx={3} />
          : node.kind === "event" ? <circle cx={left} cy={y} r={4.5} /> : <path d={`M${left} ${y - 6}l6 6l-6 6l-6 -6z`} />}
    </g>
  );
}
