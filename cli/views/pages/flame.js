// The tree comes as four numbers for each node: distance back to its parent, name, own cost, calls. Node 0 is the root.
// The file has plain shapes for where no script runs; the graph takes their place and the whole window.
$('still').remove();
$('etrace').removeAttribute('viewBox');
for (const side of ['width', 'height']) $('etrace').setAttribute(side, '100%');
$('etrace').classList.add('live');
const ROW = 19, MOST = 4000;
const unit = data.seen ? n => plural(n, 'time') : duration;
const names = data.names;
const hues = names.map(n => {
  let h = 7;
  for (const c of n.split(/[.:](?=[^.:]*$)/)[0]) h = (h * 31 + c.codePointAt(0)) % 65521;
  return Math.round(h * 137.508) % 360;
});

const byTotal = () => {
  const n = data.nodes.length / 4 + 1, t = { parent: new Int32Array(n), name: new Int32Array(n), own: new Float64Array(n),
    calls: new Float64Array(n), total: new Float64Array(n) };
  t.parent[0] = t.name[0] = -1;
  for (let i = 1, at = 0; i < n; i++) {
    t.parent[i] = i - data.nodes[at++];
    t.name[i] = data.nodes[at++];
    t.total[i] = t.own[i] = data.nodes[at++];
    t.calls[i] = data.nodes[at++];
  }
  for (let i = n - 1; i > 0; i--) t.total[t.parent[i]] += t.total[i];
  return t;
};

// Makes the tree of own time: below the root each function with its own time, and below each function its callers.
const byOwn = full => {
  const t = { parent: [-1], name: [-1], own: [0], calls: [0], total: [0] }, below = new Map();
  for (let i = 1; i < full.parent.length; i++) {
    if (!full.own[i]) continue;
    t.total[0] += full.own[i];
    for (let up = i, at = 0, deep = 0; up > 0 && deep < 100; up = full.parent[up], deep++) {
      const key = at * names.length + full.name[up];
      let to = below.get(key);
      if (to === undefined) {
        to = t.parent.length;
        below.set(key, to);
        t.parent.push(at), t.name.push(full.name[up]), t.own.push(0), t.calls.push(0), t.total.push(0);
      }
      t.total[to] += full.own[i];
      if (deep === 0) t.own[to] += full.own[i];
      t.calls[to] += full.calls[i];
      at = to;
    }
  }
  return t;
};

// Computes the position of each frame. Children are in the order of their size, the largest first.
const lay = t => {
  const n = t.parent.length;
  t.first = new Int32Array(n + 1);
  for (let i = 1; i < n; i++) t.first[t.parent[i] + 1]++;
  for (let i = 0; i < n; i++) t.first[i + 1] += t.first[i];
  t.order = new Int32Array(n);
  const free = t.first.slice();
  for (let i = 1; i < n; i++) t.order[free[t.parent[i]]++] = i;
  t.start = new Float64Array(n);
  t.depth = new Int32Array(n);
  t.deepest = 0;
  const todo = [0];
  while (todo.length) {
    const i = todo.pop(), kids = t.order.subarray(t.first[i], t.first[i + 1]).sort((a, b) => t.total[b] - t.total[a] || a - b);
    let at = t.start[i];
    for (const k of kids) {
      t.start[k] = at;
      t.depth[k] = t.depth[i] + 1;
      at += t.total[k];
      todo.push(k);
    }
    t.deepest = Math.max(t.deepest, t.depth[i]);
  }
  return t;
};

const trees = { total: lay(byTotal()) };
let tree = trees.total, zoomed = 0, here = 0, top_ = 0, up = false, test = null, hits = null, drawn = new Map();

const nameOf = i => i ? names[tree.name[i]] : 'all';
const share = (part, whole) => whole ? Number((100 * part / whole).toPrecision(3)) + '%' : '';
const about = i => {
  const t = tree.total[i];
  return nameOf(i) + ' · ' + unit(t) + ' · ' + share(t, tree.total[0]) + (data.seen || !i ? '' :
    (tree === trees.total ? ' · own ' + unit(tree.own[i]) : '') + ' · ' + plural(tree.calls[i], 'call'));
};

const area = () => {
  const bar = Math.ceil($('bar').getBoundingClientRect().height), width = innerWidth, height = innerHeight;
  $('barbox').setAttribute('height', bar);
  $('footbox').setAttribute('y', height - 46);
  return { x: 0, y: bar + 4, width: width, height: Math.max(height - bar - 46 - 8, ROW) };
};

const draw = () => {
  const a = area(), g = $('frames'), root = zoomed, scale = a.width / (tree.total[root] || 1);
  const rows = Math.floor(a.height / ROW);
  const path = [];
  for (let i = root; i > 0; i = tree.parent[i]) path.push(tree.parent[i]);
  let found = path.map(i => [i, 0, a.width]), least = 1, narrow = false, deepest = tree.depth[root];
  const todo = [root];
  while (todo.length) {
    const i = todo.pop(), w = tree.total[i] * scale;
    found.push([i, (tree.start[i] - tree.start[root]) * scale, w]);
    deepest = Math.max(deepest, tree.depth[i]);
    for (let k = tree.first[i]; k < tree.first[i + 1]; k++) {
      if (tree.total[tree.order[k]] * scale < least) {
        narrow ||= tree.total[tree.order[k]] > 0;
        break;
      }
      todo.push(tree.order[k]);
    }
  }
  top_ = Math.max(0, Math.min(top_, deepest + 1 - rows));
  found = found.filter(f => tree.depth[f[0]] >= top_ && tree.depth[f[0]] < top_ + rows);
  if (found.length > MOST) {
    found.sort((x, y) => y[2] - x[2] || x[0] - y[0]);
    found.length = MOST;
    narrow = true;
  }
  found.sort((x, y) => tree.depth[x[0]] - tree.depth[y[0]] || x[1] - y[1]);
  drawn = new Map();
  const nodes = found.map(([i, x, w]) => {
    const row = tree.depth[i] - top_, y = up ? a.y + a.height - (row + 1) * ROW : a.y + row * ROW;
    const n = svgNode('g', { role: 'treeitem', 'aria-level': tree.depth[i] + 1, tabindex: i === here ? 0 : -1, 'data-i': i });
    n.setAttribute('class', (tree.depth[i] < tree.depth[root] ? 'above ' : '') + (hits && i && hits[tree.name[i]] ? 'hit ' : '') +
      (i === here ? 'here' : ''));
    const label = about(i);
    n.setAttribute('aria-label', label);
    n.append(svgNode('title', {}, label),
      svgNode('rect', { x: x.toFixed(2), y: y, width: Math.max(w, 0.5).toFixed(2), height: ROW - 1, style: '--h:' + (i ? hues[tree.name[i]] : 45) }));
    const room = Math.floor((w - 6) / 7.3), text = nameOf(i);
    if (room >= 3)
      n.append(svgNode('text', { x: (x + 3).toFixed(2), y: y + 13.5 }, text.length <= room ? text : text.slice(0, room - 1) + '…'));
    drawn.set(i, n);
    return n;
  });
  g.replaceChildren(...nodes);
  g.setAttribute('class', hits ? 'searched' : '');
  g.setAttribute('data-drawn', nodes.length);
  g.setAttribute('data-zoomed', nameOf(zoomed));
  $('narrow').textContent = narrow ? '· some frames are too narrow to be drawn: zoom in' : '';
};

const say = i => { $('status').textContent = about(i); };
const focusOn = i => {
  here = i;
  const rows = Math.floor(area().height / ROW), d = tree.depth[i];
  if (d < top_) top_ = d;
  if (d >= top_ + rows) top_ = d - rows + 1;
  draw();
  if (drawn.has(i)) drawn.get(i).focus({ preventScroll: true });
  say(i);
};
const zoom = i => {
  zoomed = i;
  top_ = Math.min(top_, tree.depth[i]);
  focusOn(i);
};
const search = () => {
  test = searched();
  hits = test ? names.map(n => test(n)) : null;
  let sum = 0, many = 0;
  if (hits) {
    hits.forEach(h => { many += h; });
    const todo = [0]; // a hit includes the frames below it, so do not descend into it
    while (todo.length) {
      const i = todo.pop();
      if (i && hits[tree.name[i]]) sum += tree.total[i];
      else for (let k = tree.first[i]; k < tree.first[i + 1]; k++) todo.push(tree.order[k]);
    }
  }
  $('found').textContent = hits ? plural(many, 'function') + ' · ' + unit(sum) + ' · ' + share(sum, tree.total[0]) :
    $('search').value ? 'not a pattern' : '';
  draw();
};
const setMode = mode => {
  if (!trees[mode]) trees[mode] = lay(byOwn(trees.total));
  tree = trees[mode];
  zoomed = here = top_ = 0;
  search();
  say(0);
};
const step = (i, by) => { // returns the sibling to the left or right
  if (!i) return i;
  const p = tree.parent[i];
  for (let k = tree.first[p]; k < tree.first[p + 1]; k++)
    if (tree.order[k] === i) {
      const to = tree.order[k + by];
      return k + by >= tree.first[p] && k + by < tree.first[p + 1] && drawn.has(to) ? to : i;
    }
  return i;
};
const inward = i => tree.first[i] < tree.first[i + 1] ? tree.order[tree.first[i]] : i;
const outward = i => i ? tree.parent[i] : 0;

const frameOf = e => {
  const g = e.target.closest && e.target.closest('#frames g');
  return g ? Number(g.getAttribute('data-i')) : -1;
};
$('frames').addEventListener('click', e => { const i = frameOf(e); if (i >= 0) zoom(i); });
$('frames').addEventListener('mouseover', e => { const i = frameOf(e); if (i >= 0) say(i); });
$('frames').addEventListener('focusin', e => { const i = frameOf(e); if (i >= 0) { here = i; say(i); } });
$('etrace').addEventListener('wheel', e => {
  if (e.ctrlKey || e.target.closest('foreignObject')) return;
  e.preventDefault();
  top_ += (e.deltaY > 0) === up ? -3 : 3;
  draw();
}, { passive: false });
addEventListener('keydown', e => {
  const field = e.target.closest && e.target.closest('input, select, button');
  if (e.ctrlKey || e.altKey || e.metaKey) return;
  if (e.key === 'Escape') {
    if ($('search').value) { $('search').value = ''; search(); }
    else if (zoomed) zoom(outward(zoomed));
    focusOn(here);
  } else if (e.target.id === 'search') {
    if (e.key !== 'Enter') return;
    const to = [...drawn.keys()].find(i => i && hits && hits[tree.name[i]]);
    if (to !== undefined) focusOn(to);
  } else if (e.key === '/') $('search').focus();
  else if (field) return;
  else if (e.key === 'Enter' || e.key === ' ') zoom(here);
  else if (e.key === 'Home') zoom(0);
  else if (e.key === 'ArrowLeft') focusOn(step(here, -1));
  else if (e.key === 'ArrowRight') focusOn(step(here, 1));
  else if (e.key === (up ? 'ArrowUp' : 'ArrowDown')) focusOn(inward(here));
  else if (e.key === (up ? 'ArrowDown' : 'ArrowUp')) focusOn(outward(here));
  else if (e.key === 'f') { up = !up; draw(); }
  else return;
  e.preventDefault();
});
$('search').addEventListener('input', search);
$('regex').addEventListener('change', search);
$('mode').addEventListener('change', () => setMode($('mode').value));
$('flip').addEventListener('click', () => { up = !up; draw(); });
$('all').addEventListener('click', () => zoom(0));
addEventListener('resize', draw);
if (data.seen) $('modebox').style.display = 'none';
setMode('total');
$('etrace').setAttribute('data-ready', 'yes');
