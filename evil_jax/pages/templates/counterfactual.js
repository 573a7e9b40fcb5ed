'use strict';
// Pictures of the rules' examples, and the browser of edited questions.
(() => {
  const {by, element, drawing, options} = dom;
  const {pictures, records} = dom.data;
  const filters = {family: by('family'), change: by('change'), verdict: by('verdict'), search: by('search')};
  let pair = null; // words that a cell of the map, or answers that a cell of the transitions, stands for

  function picture(number, text) {
    const image = element('img', 'picture');
    image.src = pictures[number];
    image.alt = text;
    return image;
  }

  const marked = ([before, word, after], tag) => [before, word ? element(tag, '', word) : element('span', 'gap', '‸'), after];

  function probabilities(scores) {
    if (!scores.length) return null;
    return element('ul', 'probabilities', ...scores.map(([answer, p]) => {
      const bar = drawing('svg', {class: 'bar', viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true'},
        drawing('rect', {class: 'track', width: 100, height: 8}), drawing('rect', {class: 'fill', width: 100 * Math.max(0, Math.min(1, p)), height: 8}));
      return element('li', '', element('span', '', answer), bar, element('span', 'number', `${Math.round(100 * p)} %`));
    }));
  }

  function side(question, tag, said) {
    const answer = said.answer === null ? element('span', 'none', 'no answer') : said.answer || element('span', 'none', 'empty');
    const right = said.right === null ? null : element('span', said.right >= 0.5 ? 'tag good' : 'tag bad',
      (said.right >= 0.5 ? '✓ as gold' : '✗ not as gold') + (said.right > 0 && said.right < 1 ? ` (${said.right.toFixed(2)})` : ''));
    return element('div', 'side', element('p', 'question', ...marked(question, tag)),
      element('p', 'answer', element('b', '', answer), ' ', right), probabilities(said.scores),
      said.explanation ? element('p', 'because', 'because ' + said.explanation) : null);
  }

  function verdict(record) {
    const tags = [];
    if (record.kept !== null) tags.push(element('span', 'tag plain', record.kept ? 'answer kept' : 'answer changed'));
    if (record.met !== null) {
      const wrong = record.kept ? 'unwarranted stability' : 'unwarranted change';
      tags.push(element('span', record.met ? 'tag good' : 'tag bad', record.met ? '✓ as expected' : '✗ ' + wrong));
    }
    return element('p', 'verdict', ...tags);
  }

  function facts(record) {
    const rows = [];
    const add = (name, ...value) => rows.push(element('dt', '', name), element('dd', '', ...value));
    if (record.gold.length) add('Gold', record.gold.join(', '));
    if (record.expectation) {
      const what = {INV: 'the same answer', CHANGE: 'another answer', FREE: 'either'}[record.expectation] ?? record.expectation;
      add('Expected', what + (record.expected.length ? `: ${record.expected.join(' or ')}` : '') + (record.why ? ` (${record.why})` : ''));
    }
    return rows.length ? element('dl', 'facts', ...rows) : null;
  }

  function card(record) {
    const missing = record.picture === null ? element('p', 'missing', `No picture: ${record.problem}.`) : picture(record.picture, 'Picture of the question');
    const audit = element('details', '', element('summary', '', 'How it was edited'),
      element('dl', 'audit', ...record.audit.flatMap(([name, value]) => [element('dt', '', name), element('dd', '', value)])));
    return element('article', 'example edited', missing, element('div', '', verdict(record),
      side(record.before, 'del', record.said[0]), side(record.after, 'ins', record.said[1]), facts(record), audit,
      element('p', 'identity', `id ${record.id}`)));
  }

  const texts = (record) => [record.id, record.before.join(''), record.after.join(''),
    ...record.said.flatMap((s) => [s.answer ?? '', s.explanation]), ...record.gold, record.source, record.target];

  function match(record) {
    const {family, change, verdict} = filters;
    const [answer, star] = record.compared;
    return (!family.value || record.family === family.value)
      && (!change.value || record.transition === change.value)
      && (!verdict.value || (record.met !== null && verdict.value === (record.met ? 'met' : record.kept ? 'stable' : 'flip')))
      && (!pair || Object.entries(pair.wanted).every(([name, value]) => ({...record, answer, star})[name] === value));
  }

  function pick(wanted, text) {
    for (const control of Object.values(filters)) control.value = '';
    pair = {wanted, text};
    filter();
  }

  function before() {
    by('pair').hidden = pair === null;
    if (pair) by('pair').textContent = `${pair.text} ✕`;
  }

  const spaced = (name) => name.replaceAll('_', ' ');
  options(filters.family, records.map((r) => r.family), spaced);
  options(filters.change, records.map((r) => r.transition).filter(Boolean), spaced);
  by('verdict-label').hidden = records.every((r) => r.met === null);
  for (const place of document.querySelectorAll('[data-picture]')) {
    const number = place.dataset.picture;
    if (pictures[number]) place.prepend(picture(number, ''));
  }
  for (const link of document.querySelectorAll('[data-find]')) {
    link.addEventListener('click', () => {
      const {find, ...wanted} = link.dataset;
      pick(wanted, Object.values(wanted).map((word) => word || 'empty').join(' → '));
    });
  }
  by('pair').addEventListener('click', () => { pair = null; filter(); filters.search.focus(); });
  const none = records.length ? 'None of the questions on this page matches; the file of edits has all of them.' : 'There is no edited question.';
  const filter = dom.browse({records, card, texts, match, none, before, reset: () => { pair = null; }});
  by('filters').addEventListener('input', filter);
})();
