'use strict';
// The browser of explanations that raters disagree about.
(() => {
  const PER_PAGE = 6;
  const {by, element, drawing} = dom;
  const {pictures, records} = dom.data;
  if (!records.length) return;
  const WHY = {spread: 'raters disagree', better: 'liked better than gold'};
  const filters = {why: by('why'), system: by('system'), dataset: by('dataset'), search: by('search')};
  let page = 0;
  let found = records;

  const haystack = records.map((r) => [r.id, r.question, r.answer, ...r.texts].join('\n').toLowerCase());

  // Most frequent first; the count stands beside the name.
  function options(select, names, told = (name) => name) {
    const counts = new Map();
    for (const name of names) counts.set(name, (counts.get(name) || 0) + 1);
    for (const [name, count] of [...counts].sort((a, b) => b[1] - a[1])) {
      const option = element('option', '', `${told(name)} (${count})`);
      option.value = name;
      select.append(option);
    }
    return counts.size;
  }

  function picture(record) {
    if (record.picture === null) return element('p', 'missing', `No picture: ${record.problem}.`);
    const image = element('img', '');
    image.src = pictures[record.picture];
    image.alt = 'Picture of the question';
    const places = record.boxes.map(([name, x1, y1, x2, y2]) =>
      drawing('rect', {x: x1, y: y1, width: Math.max(0, x2 - x1), height: Math.max(0, y2 - y1)}, drawing('title', {}, name)));
    const boxes = drawing('svg', {class: 'places', viewBox: '0 0 1 1', preserveAspectRatio: 'none', 'aria-hidden': 'true'}, ...places);
    return element('div', 'scene', element('div', 'frame', image, boxes));
  }

  function explanation(record, which, name) {
    const mean = record.means[which];
    const text = record.texts[which] || element('span', 'none', 'no text is known');
    return element('div', 'said', element('p', 'system', element('span', '', name),
      mean === null ? null : element('span', '', `mean ${mean.toFixed(2)}`)), element('p', '', text));
  }

  function ratings(record) {
    const gold = record.ratings.some((r) => r.said[1]);
    const head = ['rater', record.system, ...(gold ? ['gold'] : [])].map((name) => {
      const cell = element('th', '', name);
      cell.scope = 'col';
      return cell;
    });
    const rows = record.ratings.map((r) => element('tr', '', element('td', '', element('code', '', r.rater || 'not known')),
      ...(gold ? [0, 1] : [0]).map((which) => element('td', '', r.said[which] || element('span', 'none', 'not rated'),
        r.wanting[which].length ? element('small', '', r.wanting[which].join(', ')) : null))));
    return element('table', 'fine', element('thead', '', element('tr', '', ...head)), element('tbody', '', ...rows));
  }

  function card(record) {
    const names = [...new Set(record.boxes.map(([name]) => name))];
    return element('article', 'example rated', picture(record), element('div', '',
      element('p', 'verdict', element('span', 'tag plain', WHY[record.why] ?? record.why), element('span', 'tag plain', record.dataset)),
      names.length ? element('p', 'regions', `Boxes: ${names.join(', ')}`) : null,
      record.question ? element('p', 'question', record.question) : null,
      record.answer ? element('p', '', 'Answer: ', element('b', '', record.answer)) : null,
      explanation(record, 0, record.system), record.texts[1] ? explanation(record, 1, 'gold') : null, ratings(record),
      element('p', 'identity', `id ${record.id}`)));
  }

  const match = (record, i) => ['why', 'system', 'dataset'].every((name) => !filters[name].value || record[name] === filters[name].value)
    && filters.search.value.toLowerCase().split(/\s+/).every((word) => haystack[i].includes(word));

  function show() {
    const pages = Math.max(1, Math.ceil(found.length / PER_PAGE));
    page = Math.max(0, Math.min(page, pages - 1));
    const slice = found.slice(page * PER_PAGE, (page + 1) * PER_PAGE);
    by('cards').replaceChildren(...(slice.length ? slice.map(card) : [element('p', 'none', 'None of the explanations on this page matches.')]));
    const text = slice.length ? `${page * PER_PAGE + 1}–${page * PER_PAGE + slice.length} of ${found.length}` : '0 found';
    for (const below of ['', '-below']) {
      by('count' + below).textContent = text;
      by('previous' + below).disabled = page === 0;
      by('next' + below).disabled = page >= pages - 1;
    }
  }

  function filter() {
    found = records.filter(match);
    page = 0;
    show();
  }

  function turn(pages, fromBelow) {
    page += pages;
    show();
    if (fromBelow) by('browser').scrollIntoView();
  }

  options(filters.why, records.map((r) => r.why), (why) => WHY[why] ?? why);
  options(filters.system, records.map((r) => r.system));
  by('dataset-label').hidden = options(filters.dataset, records.map((r) => r.dataset)) < 2;
  by('filters').addEventListener('input', filter);
  dom.steer({turn, filter});
  filter();
})();
