'use strict';
// The browser of explanations that raters disagree about.
(() => {
  const {by, element, drawing, options} = dom;
  const {pictures, records} = dom.data;
  if (!records.length) return;
  const WHY = {spread: 'raters disagree', better: 'liked better than gold'};
  const filters = {why: by('why'), system: by('system'), dataset: by('dataset')};

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

  options(filters.why, records.map((r) => r.why), (why) => WHY[why] ?? why);
  options(filters.system, records.map((r) => r.system));
  by('dataset-label').hidden = options(filters.dataset, records.map((r) => r.dataset)) < 2;
  const filter = dom.browse({
    records,
    card,
    texts: (record) => [record.id, record.question, record.answer, ...record.texts],
    match: (record) => Object.entries(filters).every(([name, {value}]) => !value || record[name] === value),
    none: 'None of the explanations on this page matches.',
  });
  by('filters').addEventListener('input', filter);
})();
