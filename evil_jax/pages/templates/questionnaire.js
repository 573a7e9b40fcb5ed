// A rater's page: explanations appear after the task question; the rules of evil_jax/human/form.py are held here too, in
// the same words. What sends the page is in a part of its own. MTurk takes a dollar and a brace for its own: none here.
const sheet = (() => {
  const {messages, yes_limit: yesLimit, wrong_limit: wrongLimit} = dom.data;
  const root = dom.by('sheet');
  const items = [...root.querySelectorAll('.item')];
  const NONE = '3'; // the tick that says that nothing is wrong
  let attempted = false; // before that, what is empty is not complained about

  const group = (field) => root.querySelector('[data-field="' + field + '"]');
  const ticked = (field) => [...group(field).querySelectorAll('input:checked')].map((input) => input.value);
  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

  function fields() {
    const found = {};
    for (const input of root.querySelectorAll('input:checked')) (found[input.name] ??= []).push(input.value);
    const comment = dom.by('commentbox').value.trim();
    if (comment) found.commentbox = [comment.toWellFormed?.() ?? comment]; // a length limit may have cut a sign in two
    return found;
  }

  function restore(values) {
    for (const input of root.querySelectorAll('fieldset input')) input.checked = (values[input.name] ?? []).includes(input.value);
    dom.by('commentbox').value = (values.commentbox ?? [''])[0];
    changed();
  }

  // Why the page cannot be sent: [{field, item, rule, message}], as form.problems finds it. `golds` = the right answers are here.
  function problems(golds) {
    const filled = [], none = [], yes = [], no = [];
    let [ratedYes, of, wrong] = [0, 0, 0];
    for (const item of items) {
      const k = item.dataset.item;
      const add = (list, field, rule, message, e) => list.push({field, item: Number(k), rule, message: fill(messages[message], {k, e})});
      const [choice] = ticked('c' + k);
      if (choice === undefined) add(filled, 'c' + k, 'filled', 'choice');
      if (golds && choice !== item.dataset.gold) wrong += 1;
      item.querySelectorAll('.explanation').forEach((_, index) => {
        const e = index + 1;
        const [rating, ticks] = [k + '-e' + e, k + '-f' + e];
        const [said] = ticked(rating);
        const shortcomings = ticked(ticks);
        of += 1;
        if (said === 'yes') ratedYes += 1;
        if (said === undefined) add(filled, rating, 'filled', 'rating', e);
        if (!shortcomings.length) add(filled, ticks, 'filled', 'ticks', e);
        else if (shortcomings.length > 1 && shortcomings.includes(NONE)) add(none, ticks, 'none', 'none', e);
        else if (said === 'yes' && !shortcomings.includes(NONE)) add(yes, ticks, 'yes', 'yes', e);
        else if ((said === 'w_no' || said === 'no') && shortcomings.includes(NONE)) add(no, ticks, 'no', 'no', e);
      });
    }
    const found = [...filled, ...none, ...yes, ...no];
    if (found.length) return found;
    const page = (rule, message) => [{field: '', item: 0, rule, message: fill(messages[message], {yes: ratedYes, of, limit: rule === 'wrong' ? wrongLimit : yesLimit})}];
    if (ratedYes > yesLimit) return page('many_yes', 'many_yes');
    if (golds && wrong > wrongLimit) return page('wrong', wrongLimit ? 'wrong' : 'any_wrong');
    return [];
  }

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
    const target = field ? node.querySelector('input:checked') ?? node.querySelector('input') : node;
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
    for (const item of items) {
      const answered = ticked('c' + item.dataset.item).length > 0;
      item.querySelector('.explanations').hidden = !answered;
      item.querySelector('.wait').hidden = answered;
    }
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
})();
