'use strict';
// A method that is pointed at, focused or pressed stands out among the curves.
(() => {
  const pressed = new Set();
  const nodes = [...document.querySelectorAll('[data-method]')];

  function show(pointed) {
    const chosen = pointed === null ? pressed : new Set([...pressed, pointed]);
    document.body.classList.toggle('chosen', chosen.size > 0);
    for (const node of nodes) node.classList.toggle('on', chosen.has(node.dataset.method));
  }

  for (const node of nodes) {
    const method = node.dataset.method;
    node.addEventListener('pointerenter', () => show(method));
    node.addEventListener('pointerleave', () => show(null));
    node.addEventListener('focusin', () => show(method));
    node.addEventListener('focusout', () => show(null));
    if (node.tagName !== 'BUTTON') continue;
    node.addEventListener('click', () => {
      const on = !pressed.delete(method);
      if (on) pressed.add(method);
      node.setAttribute('aria-pressed', on);
      show(on ? method : null);
    });
  }
})();
