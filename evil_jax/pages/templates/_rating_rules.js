// Of pages where explanations are judged: they appear after the task question; the rules of evil_jax/human/form.py.
const sheet = (() => {
  const {yes_limit: yesLimit, wrong_limit: wrongLimit} = dom.data;
  const NONE = '3'; // the tick that says that nothing is wrong

  // As form.problems finds it.
  function problems(items, {messages, ticked, fill}, golds) {
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

  function changed(item, {ticked}) {
    const answered = ticked('c' + item.dataset.item).length > 0;
    item.querySelector('.explanations').hidden = !answered;
    item.querySelector('.wait').hidden = answered;
  }

  return makeSheet({problems, changed});
})();
