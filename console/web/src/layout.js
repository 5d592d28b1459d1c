// A layered layout of a graph without cycles: layers by the longest way from the inputs, order within a layer by neighbours.

/** Places `{ key, width }` nodes with `[from, to]` edges; returns places by key, width and height. */
export function layered(nodes, edges, { height = 40, gapX = 44, gapY = 14 } = {}) {
  const keys = new Set(nodes.map(({ key }) => key));
  const links = edges.filter(([from, to]) => keys.has(from) && keys.has(to) && from !== to);
  const into = new Map(nodes.map(({ key }) => [key, []])), outOf = new Map(nodes.map(({ key }) => [key, []]));
  for (const [from, to] of links) { into.get(to).push(from); outOf.get(from).push(to); }
  const layer = new Map();
  const depth = (key, open) => {
    if (layer.has(key)) return layer.get(key);
    if (open.has(key)) return 0; // a recursion: its way back is drawn, and says nothing of layers
    open.add(key);
    const below = into.get(key).map((from) => depth(from, open) + 1);
    open.delete(key);
    layer.set(key, Math.max(0, ...below));
    return layer.get(key);
  };
  nodes.forEach(({ key }) => depth(key, new Set()));
  // An input stands just before what reads it.
  for (const { key } of nodes) {
    if (!into.get(key).length && outOf.get(key).length) layer.set(key, Math.max(0, Math.min(...outOf.get(key).map((to) => layer.get(to))) - 1));
  }
  const layers = [];
  for (const node of nodes) (layers[layer.get(node.key)] = layers[layer.get(node.key)] || []).push(node);
  const filled = layers.filter(Boolean);
  const rank = new Map();
  const number = () => filled.forEach((each) => each.forEach(({ key }, i) => rank.set(key, i - (each.length - 1) / 2)));
  number();
  for (let round = 0; round < 12; round++) {
    const near = round % 2 ? outOf : into;
    for (const each of round % 2 ? [...filled].reverse() : filled) {
      const middle = ({ key }) => { const others = near.get(key); return others.length ? others.reduce((sum, other) => sum + rank.get(other), 0) / others.length : rank.get(key); };
      const middles = new Map(each.map((node) => [node.key, middle(node)]));
      each.sort((a, b) => middles.get(a.key) - middles.get(b.key));
      each.forEach(({ key }, i) => rank.set(key, i - (each.length - 1) / 2));
    }
  }
  const tallest = Math.max(...filled.map((each) => each.length)), places = new Map();
  let x = 0;
  for (const each of filled) {
    const wide = Math.max(...each.map(({ width }) => width));
    const top = ((tallest - each.length) * (height + gapY)) / 2;
    each.forEach((node, i) => places.set(node.key, { x, y: top + i * (height + gapY), width: node.width, height }));
    x += wide + gapX;
  }
  return { places, width: Math.max(0, x - gapX), height: tallest * (height + gapY) - gapY, links };
}
