// Of pages where people label, highlight words and explain: the rules of evil_jax/human/label_form.py.
const sheet = (() => {
  const {least} = dom.data;
  const pieces = (text) => text.normalize('NFKC').toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const letters = (piece) => [...piece].length;
  const start = (piece, number) => [...piece].slice(0, number).join('');
  const longest = (word) => pieces(word).reduce((best, piece) => letters(piece) > letters(best) ? piece : best);

  // Whether two pieces are one word, or forms of one: lenient on purpose.
  function alike(a, b) {
    const shorter = Math.min(letters(a), letters(b));
    const same = shorter < 5 ? 3 : 4;
    return a === b || (shorter >= 3 && start(a, same) === start(b, same));
  }

  const marked = (item) => [...item.querySelectorAll('.chips input:checked')].map((input) => longest(input.parentElement.textContent));

  function counted(item, {written}) {
    const words = marked(item);
    const there = pieces(written(item.dataset.item + '-x'));
    const used = words.filter((word) => there.some((other) => alike(word, other))).length;
    return {used, of: words.length, wanted: Math.ceil(words.length / 2)};
  }

  // As label_form.check finds it; golds are not needed: no answer of these is known to be wrong.
  function problems(items, tools) {
    const {messages, ticked, written, fill} = tools;
    const filled = [], poor = [];
    for (const item of items) {
      const k = item.dataset.item;
      const add = (list, field, rule, message, values) => list.push({field, item: Number(k), rule, message: fill(messages[message], {k, ...values})});
      const words = counted(item, tools);
      const said = pieces(written(k + '-x'));
      if (!ticked('c' + k).length) add(filled, 'c' + k, 'filled', 'choice');
      if (!words.of && item.querySelector('.chips input')) add(filled, k + '-w', 'filled', 'words');
      if (said.length < least) add(filled, k + '-x', 'filled', 'explanation');
      else if (words.used < words.wanted) add(poor, k + '-x', 'half', 'half', words);
      else if (said.join(' ') === pieces(item.querySelector('.statement').textContent).join(' ')) add(poor, k + '-x', 'again', 'again');
    }
    return filled.length ? filled : poor;
  }

  function changed(item, tools) {
    const {used, of, wanted} = counted(item, tools);
    item.querySelector('.used').textContent = of ? used + ' of ' + of + ' highlighted words used, ' + wanted + ' needed' : 'No words highlighted yet';
  }

  return makeSheet({problems, changed});
})();
