'use strict';
const $ = id => document.getElementById(id);
const svgNode = (tag, attributes, text) => {
  const n = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const k in attributes) n.setAttribute(k, attributes[k]);
  if (text !== undefined) n.textContent = text;
  return n;
};
// Prints numbers with the units that the command line uses.
const duration = ns => {
  for (const [unit, size] of [['s', 1e9], ['ms', 1e6], ['us', 1e3]])
    if (ns >= size) return Number((ns / size).toPrecision(3)) + unit;
  return Math.round(ns) + 'ns';
};
const plural = (n, one) => n.toLocaleString('en') + ' ' + one + (n === 1 ? '' : 's');
// Returns a function that tests a text for the search. null: no search, or a malformed pattern.
const searched = () => {
  const field = $('search'), text = field.value;
  field.setAttribute('aria-invalid', 'false');
  if (!text) return null;
  try {
    const re = new RegExp($('regex').checked ? text : text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'i');
    return t => re.test(t);
  } catch (e) {
    field.setAttribute('aria-invalid', 'true');
    return null;
  }
};
$('heading').textContent = data.title || 'etrace';
if (data.missing.length) {
  $('missing').hidden = false;
  $('missing').textContent = 'Missing: ' + data.missing.join(', ');
}
