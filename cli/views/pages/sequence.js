// A row has five numbers: kind, time sent and time arrived (-1: not seen), sender and receiver (-1: elsewhere).
const ROW = 32, HEAD = 34, TIME = 92, WIDE = 190;
const MESSAGE = 0, SPAWN = 1, EXIT = 2;
const rows = data.rows, texts = data.texts, count = rows.length / 5;
const kind = i => rows[5 * i], sent = i => rows[5 * i + 1], arrived = i => rows[5 * i + 2];
const from = i => rows[5 * i + 3], to = i => rows[5 * i + 4];
const whose = w => w < 0 ? 'elsewhere' : data.who[w];
const when = i => sent(i) >= 0 ? sent(i) : arrived(i);
const seconds = ns => (ns / 1e9).toFixed(6);

// Shortens messages of gen_server: removes the parts that they all have. The status line has the whole message.
const brief = text => {
  const ask = text.match(/^\{:?['"]\$gen_(call|cast)['"], ?(?:\{[^{}]*\}, ?)?(.*)$/s);
  const reply = text.match(/^\{\[:?alias ?\| ?#Ref[^\]]*\], ?(.*)$/s);
  return ask ? ask[1] + ' ' + ask[2].replace(/\}$/, '') : reply ? 'reply ' + reply[1].replace(/\}$/, '') : text;
};

// Processes with the same name share a lane if the user merges them. The names are those behind the pids.
const bare = data.who.map(label => label.replace(/<[\d.]+>/, '').trim());
const names = bare.map(name => name.endsWith(')') ? name.replace(/\((.*)\)$/, '$1') : (name + ' processes without a name').trim());
const lanes = [], sizes = new Map(), firsts = new Map();
names.forEach((name, w) => {
  if (!firsts.has(name)) firsts.set(name, w);
  lanes.push(firsts.get(name));
  sizes.set(lanes[w], (sizes.get(lanes[w]) || 0) + 1);
});
const PRINTED = 500;
let shown = [], columns = [], column = new Map(), here = 0, only = null, merged = false, many = new Map(), printing = false;
const lane = w => merged && w >= 0 ? lanes[w] : w;
const laneName = w => !merged || w < 0 ? whose(w) : names[w] + (sizes.get(w) > 1 ? ' ×' + sizes.get(w) : '');
const isOf = (w, one) => only.byName && w >= 0 && one >= 0 ? lanes[w] === lanes[one] : w === one;

// Returns the first word of a message. Merged messages have the same one.
const head = text => (brief(text).match(/^(?:(?:call|cast|reply) )?[^\w'"]*[\w.:'"@?!/]+/) || [''])[0];

const about = i => {
  if (many.has(i) && many.get(i).n > 1)
    return many.get(i).n.toLocaleString('en') + [' messages from ', ' processes, started by ', ' exits of '][kind(i)] + laneName(lane(from(i))) +
      (kind(i) === MESSAGE ? ' to ' + laneName(lane(to(i))) : '') + ', the first at ' + seconds(when(i)) + ', the last at ' + seconds(when(many.get(i).last)) + ': ' + texts[i];
  if (kind(i) === EXIT) return seconds(when(i)) + ' ' + whose(from(i)) + ' exit ' + texts[i];
  if (kind(i) === SPAWN) return seconds(when(i)) + ' ' + whose(from(i)) + ' spawns ' + whose(to(i)) + ' ' + texts[i];
  const how = sent(i) < 0 ? 'its sending was not seen' : arrived(i) < 0 ? 'its arrival was not seen' : 'arrived after ' + duration(arrived(i) - sent(i));
  return seconds(when(i)) + ' ' + whose(from(i)) + ' → ' + whose(to(i)) + ' (' + how + ') ' + texts[i];
};

// Makes one row of all messages with the same names and the same first word. Rows are in the order of their first ones.
const merge = all => {
  const first = new Map();
  for (const i of all) {
    const key = [kind(i), lane(from(i)), lane(to(i)), head(texts[i])].join(' ');
    if (!first.has(key)) {
      first.set(key, i);
      many.set(i, { n: 0, last: i });
    }
    const m = many.get(first.get(key));
    m.n++;
    m.last = i;
  }
  return [...first.values()];
};

const choose = () => {
  const test = searched(), was = shown[here];
  const hit = test ? data.who.map(w => test(w)) : null;
  shown = [];
  for (let i = 0; i < count; i++) {
    if (only && !(only.length === 1 ? isOf(from(i), only[0]) || isOf(to(i), only[0]) :
      (isOf(from(i), only[0]) && isOf(to(i), only[1])) || (isOf(from(i), only[1]) && isOf(to(i), only[0])))) continue;
    if (test && !test(texts[i]) && !hit[from(i)] && !hit[to(i)]) continue;
    shown.push(i);
  }
  const messages = shown.length;
  many = new Map();
  if (merged) shown = merge(shown);
  column = new Map();
  for (const i of shown)
    for (const w of [lane(from(i)), lane(to(i))])
      if (!column.has(w)) column.set(w, 0);
  columns = [...column.keys()].sort((a, b) => (a < 0) - (b < 0) || a - b);
  columns.forEach((w, c) => column.set(w, c));
  here = Math.max(0, shown.indexOf(was));
  $('space').style.height = Math.max(HEAD + shown.length * ROW + 8, 1) + 'px';
  $('space').style.width = TIME + columns.length * WIDE + 'px';
  const bad = $('search').getAttribute('aria-invalid') === 'true';
  $('found').textContent = bad ? 'not a pattern' : plural(messages, 'message') + (messages < count ? ' of ' + count.toLocaleString('en') : '') +
    ' · ' + (merged ? plural(columns.length, 'name') : plural(columns.length, 'process').replace(/processs$/, 'processes'));
  $('view').setAttribute('data-shown', shown.length);
  reveal();
};

const x = w => TIME + column.get(lane(w)) * WIDE + WIDE / 2 - (printing ? 0 : $('pane').scrollLeft);

const put = (n, at) => {
  const i = shown[n], y = HEAD + n * ROW - (printing ? 0 : $('pane').scrollTop), width = paper().width, m = many.get(i);
  const half = kind(i) === MESSAGE && (sent(i) < 0 || arrived(i) < 0);
  const g = svgNode('g', { role: 'option', id: 'row' + i, 'data-n': n, 'aria-selected': n === here, 'aria-label': about(i),
    class: 'row' + (half ? ' half' : '') + (kind(i) === SPAWN ? ' spawn' : '') + (n === here ? ' here' : '') });
  g.append(svgNode('title', {}, about(i)), svgNode('rect', { x: 0, y: y + 1, width: width, height: ROW - 2 }),
    svgNode('text', { class: 'time', x: 6, y: y + 20 }, seconds(when(i))));
  const a = x(from(i)), b = x(to(i)), base = y + ROW - 8;
  let left = Math.min(a, b);
  if (kind(i) === EXIT) {
    g.append(svgNode('path', { class: 'arrow', d: `M${a - 6} ${base - 6}l12 12m0 -12l-12 12` }));
  } else if (a === b) {
    g.append(svgNode('path', { class: 'arrow', fill: 'none', d: `M${a} ${base - 8}h26v8h-20` }), svgNode('path', { class: 'head', d: `M${a} ${base}l8 -4v8z` }));
    left = a + 24;
  } else {
    const d = b > a ? -1 : 1;
    g.append(svgNode('line', { class: 'arrow', x1: a, y1: base, x2: b + d * 7, y2: base }),
      svgNode('path', { class: 'head', d: `M${b} ${base}l${d * 9} -4.5v9z` }));
  }
  const what = kind(i) === SPAWN ? 'spawn ' : kind(i) === EXIT ? 'exit ' : '';
  const text = m && m.n > 1 ? '×' + m.n.toLocaleString('en') + ' ' + what + head(texts[i]) : what + brief(texts[i]);
  const begin = Math.max(left + 8, TIME + 4), room = Math.max(Math.floor((width - begin) / 7.3), 12);
  g.append(svgNode('text', { class: 'msg', x: begin, y: y + 15 }, text.length > room ? text.slice(0, room - 1) + '…' : text));
  at.push(g);
};

// The size of the picture: that of the window, or of all rows and lanes for paper.
const paper = () => printing ? { width: TIME + columns.length * WIDE, height: HEAD + shown.length * ROW + 8 } :
  { width: $('pane').clientWidth, height: $('pane').clientHeight };

const draw = () => {
  const pane = $('pane'), view = $('view'), { width, height } = paper(), at = [];
  view.setAttribute('width', width);
  view.setAttribute('height', height);
  const first = printing ? 0 : Math.max(0, Math.floor(pane.scrollTop / ROW) - 1);
  const last = printing ? shown.length : Math.min(shown.length, first + Math.ceil(height / ROW) + 2);
  const near = columns.filter(w => x(w) > -WIDE && x(w) < width + WIDE);
  for (const w of near) at.push(svgNode('line', { class: 'life', x1: x(w), y1: HEAD, x2: x(w), y2: height }));
  for (let n = first; n < last; n++) put(n, at);
  at.push(svgNode('rect', { class: 'top', x: -1, y: -1, width: width + 2, height: HEAD }));
  for (const w of near) {
    const label = laneName(w), room = Math.floor((WIDE - 12) / 7.3);
    const g = svgNode('g', { class: 'who', role: 'button', 'aria-label': 'only ' + label, 'data-w': w });
    g.append(svgNode('title', {}, label), svgNode('text', { x: x(w), y: 21 }, label.length > room ? label.slice(0, room - 1) + '…' : label));
    at.push(g);
  }
  at.push(svgNode('text', { class: 'time', x: 6, y: 21 }, 'seconds'));
  view.replaceChildren(...at);
  if (shown.length) {
    pane.setAttribute('aria-activedescendant', 'row' + shown[here]);
    $('status').textContent = about(shown[here]);
  } else {
    pane.removeAttribute('aria-activedescendant');
    $('status').textContent = count ? 'nothing matches' : 'no messages';
  }
};
// Scrolls to the selected row.
const reveal = () => {
  const pane = $('pane'), room = pane.clientHeight - HEAD;
  if (here * ROW < pane.scrollTop) pane.scrollTop = here * ROW;
  else if ((here + 1) * ROW > pane.scrollTop + room) pane.scrollTop = (here + 1) * ROW - room;
  if (shown.length) {
    const at = Math.min(column.get(lane(from(shown[here]))), column.get(lane(to(shown[here])))) * WIDE;
    if (at < pane.scrollLeft || at + WIDE + TIME > pane.scrollLeft + pane.clientWidth) pane.scrollLeft = at;
  }
  draw();
};
const move = n => { here = Math.max(0, Math.min(shown.length - 1, n)); reveal(); };
const restrict = (who, byName) => {
  only = who;
  if (only) only.byName = byName;
  choose();
};
const setMerged = on => {
  merged = $('merge').checked = on;
  choose();
};
// Shows only the two processes of a row. A merged row becomes its single messages between the two names.
const openRow = i => {
  const byName = merged;
  merged = $('merge').checked = false;
  restrict([from(i), to(i)], byName);
};
const all = () => { $('search').value = ''; restrict(null); };

$('view').addEventListener('click', e => {
  const who = e.target.closest('.who'), row = e.target.closest('.row');
  if (who) restrict([Number(who.getAttribute('data-w'))], merged);
  else if (row) move(Number(row.getAttribute('data-n')));
});
let waiting = false;
$('pane').addEventListener('scroll', () => {
  if (!waiting) requestAnimationFrame(() => { waiting = false; draw(); });
  waiting = true;
});
addEventListener('keydown', e => {
  const field = e.target.closest && e.target.closest('input, button'), page = Math.max(1, Math.floor($('pane').clientHeight / ROW) - 2);
  if (e.ctrlKey || e.altKey || e.metaKey) return;
  if (e.key === 'Escape') { all(); $('pane').focus(); }
  else if (e.target.id === 'search') {
    if (e.key !== 'Enter') return;
    $('pane').focus();
  } else if (e.key === '/') $('search').focus();
  else if (field) return;
  else if (e.key === 'Enter' && shown.length) openRow(shown[here]);
  else if (e.key === 'm') setMerged(!merged);
  else if (e.key === 'ArrowDown') move(here + 1);
  else if (e.key === 'ArrowUp') move(here - 1);
  else if (e.key === 'PageDown') move(here + page);
  else if (e.key === 'PageUp') move(here - page);
  else if (e.key === 'Home') move(0);
  else if (e.key === 'End') move(shown.length - 1);
  else return;
  e.preventDefault();
});
$('search').addEventListener('input', choose);
$('regex').addEventListener('change', choose);
$('all').addEventListener('click', all);
addEventListener('resize', draw);
$('merge').addEventListener('change', () => setMerged($('merge').checked));
// Paper has no room for many rows, so they are merged for it.
let before = false;
addEventListener('beforeprint', () => {
  before = merged;
  if (shown.length > PRINTED) setMerged(true);
  printing = true;
  draw();
  $('view').setAttribute('viewBox', `0 0 ${paper().width} ${paper().height}`);
  $('view').setAttribute('data-printed', shown.length);
});
addEventListener('afterprint', () => {
  printing = false;
  $('view').removeAttribute('viewBox');
  if (merged !== before) setMerged(before);
  draw();
});
choose();
$('pane').focus();
$('view').setAttribute('data-ready', 'yes');
