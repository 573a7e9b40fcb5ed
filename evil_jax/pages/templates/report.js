'use strict';
// The browser of examples.
(() => {
  const {by, element, drawing, options} = dom;
  const {pictures, examples} = dom.data;
  const filters = {differ: by('differ'), correct: by('correct'), truth: by('truth'), gold: by('gold'), predicted: by('predicted')};
  const several = examples.some((e) => e.others.length);

  const right = (said) => said.correct !== null && said.correct > 0;
  const systems = (example) => [example, ...example.others];
  const texts = (e) =>
    [e.id, e.text, ...systems(e).flatMap((s) => [s.answer, s.explanation]), ...e.gold.map((g) => g[0]), ...e.choices.map((c) => c.text), ...e.references];

  function picture(example) {
    const [width, height] = example.size;
    const names = example.boxes.length <= 12;
    const shown = example.picture !== null;
    const what = shown ? 'Picture' : 'No picture; an empty frame';
    const svg = drawing('svg', {
      class: 'picture', viewBox: `0 0 ${width} ${height}`, role: 'img',
      'aria-label': `${what} with ${example.boxes.length} regions` + (example.classes.length ? ': ' + example.classes.join(', ') : ''),
    });
    if (shown) svg.append(drawing('image', {href: pictures[example.picture], width, height, preserveAspectRatio: 'none'}));
    else svg.append(drawing('rect', {class: 'frame', x: 1, y: 1, width: width - 2, height: height - 2}));
    const size = Math.max(width, height) / 26;
    const groups = example.boxes.map(([x1, y1, x2, y2], i) => {
      const name = example.classes[i] || `region ${i + 1}`;
      const group = drawing('g', {class: 'box'}, drawing('title', {}, name),
        drawing('rect', {x: x1, y: y1, width: Math.max(0, x2 - x1), height: Math.max(0, y2 - y1)}));
      if (names) {
        const end = x1 > 0.7 * width; // a name at the right edge grows to the left
        group.append(drawing('text', {
          class: 'name', x: end ? x2 : x1, 'text-anchor': end ? 'end' : 'start', y: y1 > size ? y1 - size / 4 : y1 + size, 'font-size': size, 'stroke-width': size / 4,
        }, name));
      }
      svg.append(group);
      return group;
    });
    return [svg, groups];
  }

  function probabilities(example) {
    if (!example.scores.length) return null;
    return element('ul', 'probabilities', ...example.scores.map(([answer, p]) => {
      const share = Math.max(0, Math.min(1, p));
      const bar = drawing('svg', {class: 'bar', viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true'},
        drawing('rect', {class: 'track', width: 100, height: 8}), drawing('rect', {class: 'fill', width: 100 * share, height: 8}));
      const percent = share > 0 && share < 0.005 ? '<1 %' : `${Math.round(100 * share)} %`;
      return element('li', '', element('span', '', answer), bar, element('span', 'number', percent));
    }));
  }

  function regions(example, groups) {
    if (!groups.length) return null;
    const list = element('ul', 'regions', ...groups.map((group, i) => {
      const button = element('button', '', example.classes[i] || `region ${i + 1}`);
      button.type = 'button';
      const mark = (on) => () => group.classList.toggle('on', on);
      button.addEventListener('pointerenter', mark(true));
      button.addEventListener('focus', mark(true));
      button.addEventListener('pointerleave', mark(false));
      button.addEventListener('blur', mark(false));
      return element('li', '', button);
    }));
    return element('details', '', element('summary', '', `${groups.length} regions`), list);
  }

  function choices(example) {
    return element('ol', 'choices', ...example.choices.map(({text, gold, predicted}) => {
      const marks = [gold ? element('span', 'tag good', 'gold') : null, predicted ? element('span', gold ? 'tag good' : 'tag bad', 'predicted') : null];
      return element('li', gold ? 'gold' : '', text + ' ', ...marks);
    }));
  }

  function lines(example) {
    const rows = [];
    const gold = example.gold.map(([answer, score]) => (score === 1 ? answer : `${answer} (${score.toFixed(2).replace(/0$/, '')})`));
    if (example.choices.length) {
      rows.push(element('dt', '', 'Choices'), element('dd', '', choices(example), probabilities(example)));
    } else {
      rows.push(element('dt', '', 'Gold'), element('dd', '', gold.length ? gold.join(', ') : element('span', 'none', 'not known')));
      if (!several) rows.push(element('dt', '', 'Predicted'), element('dd', '', example.answer || element('span', 'none', 'empty'), probabilities(example)));
    }
    if (!several) {
      const because = example.explanation || element('span', 'none', 'none given');
      rows.push(element('dt', '', example.condition === 'gold' ? 'Explains the gold answer' : 'Because'), element('dd', '', because));
    }
    return element('dl', 'facts', ...rows);
  }

  function verdict(said) {
    const tags = [];
    if (said.correct !== null) {
      const part = said.correct > 0 && said.correct < 1 ? ` (${said.correct.toFixed(2).replace(/0$/, '')} of 1)` : '';
      tags.push(element('span', right(said) ? 'tag good' : 'tag bad', (right(said) ? '✓ answer right' : '✗ answer wrong') + part));
    }
    if (said.true !== null) tags.push(element('span', said.true ? 'tag good' : 'tag bad', said.true ? '✓ explanation true' : '✗ explanation false'));
    return element('p', 'verdict', ...tags);
  }

  const words = (text) => text.split(/\s+/).filter(Boolean);
  const bare = (word) => word.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '') || word;

  // Whether each word of `text` is in a longest common subsequence with `base`; of very long texts, whether `base` has it.
  function shared(text, base) {
    const [own, other] = [text.map(bare), base.map(bare)];
    if (own.length * other.length > 250000) {
      const known = new Set(other);
      return own.map((word) => known.has(word));
    }
    const longest = Array.from({length: own.length + 1}, () => new Uint16Array(other.length + 1));
    for (let i = own.length - 1; i >= 0; i--) {
      for (let j = other.length - 1; j >= 0; j--) {
        longest[i][j] = own[i] === other[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
      }
    }
    const found = own.map(() => false);
    for (let i = 0, j = 0; i < own.length && j < other.length;) {
      if (own[i] === other[j]) [found[i], i, j] = [true, i + 1, j + 1];
      else if (longest[i + 1][j] >= longest[i][j + 1]) i++;
      else j++;
    }
    return found;
  }

  function marked(text, base) {
    if (!text) return [element('span', 'none', 'none given')];
    const own = words(text);
    const known = shared(own, words(base));
    const nodes = [];
    own.forEach((word, i) => {
      // Neighbours that are both new share one mark.
      if (!known[i] && i && !known[i - 1]) nodes.at(-1).append(' ' + word);
      else nodes.push(...(i ? [' '] : []), known[i] ? word : element('mark', '', word));
    });
    return nodes;
  }

  function beside(example) {
    if (!example.others.length) return null;
    return element('div', 'beside', ...systems(example).map((said, i) => element('div', 'said',
      element('p', 'system', said.system), verdict(said),
      element('p', '', said.answer || element('span', 'none', 'no answer')),
      element('p', '', ...(i ? marked(said.explanation, example.explanation) : [said.explanation || element('span', 'none', 'none given')])))));
  }

  function disagree(example) {
    const kind = filters.differ.value;
    if (!kind) return true;
    const values = kind === 'correct'
      ? systems(example).filter((s) => s.correct !== null).map(right)
      : systems(example).map((s) => s[kind]);
    return new Set(values).size > 1;
  }

  function card(example) {
    const [svg, groups] = picture(example);
    const references = example.references.length
      ? element('details', '', element('summary', '', example.references.length === 1 ? '1 reference explanation' : `${example.references.length} reference explanations`),
        element('ul', 'lines', ...example.references.map((text) => element('li', '', text))))
      : element('p', 'identity', 'no reference explanation');
    const missing = example.problem === null ? null : element('p', 'missing', `The picture is not shown: ${example.problem}.` + (groups.length ? ' The boxes are drawn on an empty frame.' : ''));
    return element('article', several ? 'example wide' : 'example', svg, missing, element('div', '',
      element('p', 'question', example.text), several ? null : verdict(example), lines(example), beside(example), references, regions(example, groups),
      element('p', 'identity', `id ${example.id}`)));
  }

  function match(example) {
    const {correct, truth, gold, predicted} = filters;
    return (!correct.value || (example.correct !== null && (correct.value === 'right') === right(example)))
      && (!truth.value || String(example.true) === truth.value)
      && (!gold.value || example.gold.some(([answer]) => '=' + answer === gold.value))
      && (!predicted.value || '=' + example.answer === predicted.value)
      && disagree(example);
  }

  function boxes() {
    for (const svg of document.querySelectorAll('.picture')) svg.classList.toggle('plain', !by('boxes').checked);
  }

  const known = (name) => '=' + name; // an answer may be the empty text
  options(filters.gold, examples.flatMap((e) => e.gold.slice(0, 1).map((g) => g[0])), undefined, known);
  options(filters.predicted, examples.map((e) => e.answer), undefined, known);
  // With choices of its own in each example there are no common answers to choose from.
  by('gold-label').hidden = by('predicted-label').hidden = examples.some((e) => e.choices.length);
  by('differ-label').hidden = !several;
  by('cards').classList.toggle('several', several);
  by('truth-label').hidden = examples.every((e) => e.true === null);
  const filter = dom.browse({records: examples, card, texts, match, none: 'No example matches these filters.', after: boxes, key: (key) => {
    if (key === 'b') { by('boxes').checked = !by('boxes').checked; boxes(); }
  }});
  by('filters').addEventListener('input', (event) => (event.target.id === 'boxes' ? boxes() : filter()));
})();
