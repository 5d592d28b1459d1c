// Marks and labels in the rows of a lane, without overlaps.

const GAP = 5, RADIUS = 5, LABELLED = 5, ROWS = 9;

/** Rows for marks `[left, right, labelWidth]` between two places; null where they need too many. Labels are left out where that helps. */
export function packed(marks, left, right) {
  return pack(marks, left, right, LABELLED, true) || pack(marks, left, right, ROWS, false);
}

function pack(marks, left, right, most, labelled) {
  const ends = [];
  const result = new Array(marks.length);
  const order = marks.map((_, i) => i).sort((a, b) => marks[a][0] - marks[b][0]);
  for (const i of order) {
    const [from, to, width] = marks[i];
    const inside = labelled && to - from >= width + 2 * GAP;
    const fits = labelled && !inside && to + RADIUS + 2 * GAP + width <= right;
    const end = to + (fits ? RADIUS + 2 * GAP + width : RADIUS + 1);
    const before = from - RADIUS - GAP - width; // where a label begins that stands before its mark
    const precede = labelled && !inside && !fits && width > 0 && before >= left;
    if (precede && !ends.length) ends.push(-Infinity);
    let row = precede ? ends.findIndex((taken) => taken <= before - 1) : -1;
    const precedes = row >= 0;
    if (!precedes) row = ends.findIndex((taken) => taken <= from - RADIUS - 1);
    if (row < 0) row = ends.push(-Infinity) - 1;
    if (row >= most) return null;
    ends[row] = end;
    result[i] = { row, label: inside ? from + GAP : fits ? to + RADIUS + GAP : precedes ? before : null };
  }
  return { rows: Math.max(1, ends.length), slots: result };
}
