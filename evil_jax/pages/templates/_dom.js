'use strict';
// What the scripts of a page share. Texts are anybody's: they enter the page through textContent and setAttribute only.
const dom = (() => {
  const SVG = 'http://www.w3.org/2000/svg';
  const by = (id) => document.getElementById(id);

  function element(tag, className, ...children) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    node.append(...children.filter((child) => child !== null));
    return node;
  }

  function drawing(tag, attributes, ...children) {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  // Options for the names that there are, most frequent first; the count stands beside the name. How many it makes.
  function options(select, names, told = (name) => name, value = (name) => name) {
    const counts = new Map();
    for (const name of names) counts.set(name, (counts.get(name) || 0) + 1);
    for (const [name, count] of [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]))) {
      const option = element('option', '', told(name) + ' (' + count + ')');
      option.value = value(name);
      select.append(option);
    }
    return counts.size;
  }

  // A browser of cards, a page of them at a time, with its buttons, keys and search. Of a record `card` makes the card,
  // `texts` are searched, and `match` says whether the page's own filters let it through; `none` stands there without
  // any. `before` it filters and `after` it shows a page, at a `reset` and at another `key` the page may do more.
  // Returns what filters anew.
  function browse({records, card, texts, match, none, before = () => {}, after = () => {}, reset = () => {}, key = () => {}}) {
    const PER_PAGE = 6;
    const haystack = new Map(records.map((record) => [record, texts(record).join('\n').toLowerCase()]));
    let page = 0;
    let found = records;

    function show() {
      const pages = Math.max(1, Math.ceil(found.length / PER_PAGE));
      page = Math.max(0, Math.min(page, pages - 1));
      const first = page * PER_PAGE;
      const slice = found.slice(first, first + PER_PAGE);
      by('cards').replaceChildren(...(slice.length ? slice.map(card) : [element('p', 'none', none)]));
      const text = slice.length ? (first + 1) + '–' + (first + slice.length) + ' of ' + found.length : '0 found';
      for (const below of ['', '-below']) {
        by('count' + below).textContent = text;
        by('previous' + below).disabled = page === 0;
        by('next' + below).disabled = page >= pages - 1;
      }
      after();
    }

    function filter() {
      before();
      const words = by('search').value.toLowerCase().split(/\s+/);
      found = records.filter((record) => match(record) && words.every((word) => haystack.get(record).includes(word)));
      page = 0;
      show();
    }

    function turn(pages, fromBelow) {
      page += pages;
      show();
      if (fromBelow) by('browser').scrollIntoView();
    }

    by('filters').addEventListener('reset', () => { reset(); setTimeout(filter); });
    by('filters').addEventListener('submit', (event) => event.preventDefault());
    for (const below of ['', '-below']) {
      by('previous' + below).addEventListener('click', () => turn(-1, below !== ''));
      by('next' + below).addEventListener('click', () => turn(1, below !== ''));
    }
    document.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
      if (event.target.classList?.contains('scroll')) return; // arrows scroll a wide table
      if (event.key === 'ArrowLeft') turn(-1, false);
      else if (event.key === 'ArrowRight') turn(1, false);
      else if (event.key === '/') { event.preventDefault(); by('search').focus(); }
      else key(event.key);
    });
    filter();
    return filter;
  }

  return {by, element, drawing, options, browse, data: by('data') ? JSON.parse(by('data').textContent) : {}};
})();
