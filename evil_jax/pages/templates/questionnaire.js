// What the pages of all studies have in common. The rules of a form, which its file in evil_jax/human/ has too, are in a
// part of its own: `rules.problems`, and `rules.changed`, which is called with each item. What sends the page is another
// part. MTurk takes a dollar and a brace for its own: none here.
const makeSheet = (rules) => {
  const {messages} = dom.data;
  const root = dom.by('sheet');
  const items = [...root.querySelectorAll('.item')];
  let attempted = false; // before that, what is empty is not complained about

  const group = (field) => root.querySelector('[data-field="' + field + '"]');
  const ticked = (field) => [...group(field).querySelectorAll('input:checked')].map((input) => input.value);
  const written = (field) => group(field).querySelector('textarea').value.trim();
  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

  function fields() {
    const found = {};
    for (const input of root.querySelectorAll('input:checked')) (found[input.name] ??= []).push(input.value);
    for (const area of root.querySelectorAll('textarea')) {
      const text = area.value.trim();
      if (text) found[area.name] = [text.toWellFormed?.() ?? text]; // a length limit may have cut a sign in two
    }
    return found;
  }

  function restore(values) {
    for (const input of root.querySelectorAll('fieldset input')) input.checked = (values[input.name] ?? []).includes(input.value);
    for (const area of root.querySelectorAll('textarea')) area.value = (values[area.name] ?? [''])[0];
    changed();
  }

  // Why the page cannot be sent: [{field, item, rule, message}]. `golds` = the right answers are here.
  const tools = {messages, ticked, written, fill};
  const problems = (golds) => rules.problems(items, tools, golds);

  // Each problem beside what it is about, and all of them beside the button. Hidden explanations wait for their question.
  function show(found) {
    const seen = found.filter(({field}) => !group(field || 'c1').closest('[hidden]'));
    const first = new Map(seen.filter(({field}) => field).reverse().map((problem) => [problem.field, problem.message]));
    for (const node of root.querySelectorAll('[data-field]')) {
      const field = node.dataset.field;
      const said = dom.by('wrong-' + field);
      const message = (first.get(field) ?? '').replace(/^[^:]*: ./, (start) => start.slice(-1).toUpperCase());
      node.classList.toggle('broken', message !== '');
      if (message) node.setAttribute('aria-describedby', said.id); else node.removeAttribute('aria-describedby');
      if (said.textContent !== message) said.textContent = message;
      said.hidden = !message;
    }
    return seen;
  }

  function list(seen) {
    const box = dom.by('problems');
    box.hidden = !seen.length;
    if (!seen.length) return box.replaceChildren();
    const parts = [dom.element('h2', '', seen.length === 1 ? 'One thing is left to do' : seen.length + ' things are left to do')];
    const lines = seen.slice(0, 5).map(({field, message}) => {
      if (!field) return dom.element('li', '', message);
      const link = dom.element('a', '', message);
      link.href = '#item-' + group(field).closest('.item').dataset.item;
      link.addEventListener('click', (event) => { event.preventDefault(); focus(field); });
      return dom.element('li', '', link);
    });
    parts.push(dom.element('ul', '', ...lines));
    if (seen.length > 5) parts.push(dom.element('p', '', 'and ' + (seen.length - 5) + ' more'));
    box.replaceChildren(...parts);
  }

  function focus(field) {
    const node = field ? group(field) : dom.by('problems');
    const target = field ? node.querySelector('input:checked') ?? node.querySelector('input, textarea') : node;
    target.focus({preventScroll: true});
    node.scrollIntoView({block: 'center'});
  }

  // Whether there is something to say against the page; it is said, and the first place is gone to.
  function refuse(found) {
    attempted = true;
    const seen = show(found);
    list(seen);
    dom.by('told').textContent = seen.length ? (seen.length > 1 ? seen.length + ' things are left to do. ' : '') + seen[0].message : '';
    if (seen.length) focus(seen[0].field);
    return seen.length > 0;
  }

  function changed() {
    let done = 0;
    for (const item of items) rules.changed(item, tools);
    const found = problems();
    const open = new Set(found.map((problem) => problem.item));
    for (const item of items) {
      const ready = !open.has(Number(item.dataset.item));
      item.querySelector('.done').hidden = !ready;
      done += ready;
    }
    dom.by('count').textContent = done + ' of ' + items.length + ' done';
    dom.by('meter').setAttribute('width', 100 * done / items.length);
    const seen = show(attempted ? found : found.filter((problem) => problem.rule !== 'filled'));
    if (attempted) list(seen);
  }

  // [[name, x1, y1, x2, y2], ...] in shares of the picture.
  function draw(photo) {
    let boxes = [];
    try { boxes = JSON.parse(photo.dataset.boxes || '[]'); } catch { photo.dataset.boxes = ''; }
    if (!boxes.length) return;
    const share = (value) => (100 * value).toFixed(2) + '%';
    const svg = dom.drawing('svg', {role: 'img', 'aria-label': 'Marked: ' + boxes.map(([name]) => name).join(', ')});
    boxes.forEach(([name, x1, y1, x2, y2], index) => {
      const place = {x: share(x1), y: share(y1), width: share(x2 - x1), height: share(y2 - y1), rx: 3};
      const right = x1 > 0.7; // a name at the right edge grows to the left, one at the lower edge stands above
      const words = {x: share(right ? x2 : x1), y: share(y1), dx: right ? -6 : 6, dy: y1 > 0.9 ? -6 : 17, 'text-anchor': right ? 'end' : 'start'};
      const parts = [dom.drawing('rect', {...place, class: 'under'}), dom.drawing('rect', place), dom.drawing('text', words, name)];
      svg.append(dom.drawing('g', {class: 'b' + index % 6}, ...parts));
    });
    photo.append(svg);
  }

  for (const photo of root.querySelectorAll('.photo')) {
    const picture = photo.querySelector('img');
    const lost = () => { picture.hidden = true; photo.querySelector('.missing').hidden = false; photo.classList.add('bare'); };
    if (picture?.complete && !picture.naturalWidth) lost();
    picture?.addEventListener('error', lost);
    draw(photo);
  }
  root.addEventListener('change', changed);
  root.addEventListener('input', ({target}) => { if (target.matches('.item textarea')) root.dispatchEvent(new Event('change')); });
  root.addEventListener('keydown', (event) => {
    const node = event.target.closest?.('fieldset');
    if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Enter') event.preventDefault(); // it would send the page
    const input = /^[1-9]$/.test(event.key) ? node.querySelectorAll('input')[event.key - 1] : null;
    if (!input) return;
    input.focus();
    input.click();
  });
  changed();
  return {root, fields, restore, problems, refuse};
};
