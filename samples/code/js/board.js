// The game of life on a board of any size, of which only the living cells are kept.

const key = (x, y) => `${x},${y}`;
const place = (text) => text.split(",").map(Number);

/** Reads rows of "#" (alive) and "." (dead) into a set of cells. */
export function parse(picture) {
  const cells = new Set();
  picture.trim().split("\n").forEach((row, y) => {
    [...row.trim()].forEach((mark, x) => {
      if (mark === "#") cells.add(key(x, y));
    });
  });
  return cells;
}

/** The next generation: two or three neighbours keep a cell alive, three give birth to one. */
export function step(cells) {
  const counts = new Map();
  for (const cell of cells) {
    const [x, y] = place(cell);
    for (let dy = -1; dy <= 1; dy += 1) {
      for (let dx = -1; dx <= 1; dx += 1) {
        if (dx === 0 && dy === 0) continue;
        const next = key(x + dx, y + dy);
        counts.set(next, (counts.get(next) ?? 0) + 1);
      }
    }
  }
  const born = new Set();
  for (const [cell, count] of counts) {
    if (count === 3 || (count === 2 && cells.has(cell))) born.add(cell);
  }
  return born;
}

/** Draws the smallest frame that holds every living cell. */
export function draw(cells) {
  if (cells.size === 0) return "";
  const places = [...cells].map(place);
  const xs = places.map(([x]) => x);
  const ys = places.map(([, y]) => y);
  const lines = [];
  for (let y = Math.min(...ys); y <= Math.max(...ys); y += 1) {
    let line = "";
    for (let x = Math.min(...xs); x <= Math.max(...xs); x += 1) {
      line += cells.has(key(x, y)) ? "#" : ".";
    }
    lines.push(line);
  }
  return lines.join("\n");
}

if (import.meta.url === `file://${process.argv[1]}`) {
  let cells = parse(".#.\n..#\n###");
  for (let generation = 0; generation < 4; generation += 1) {
    console.log(draw(cells), "\n");
    cells = step(cells);
  }
}
