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

  // Buttons, keys and filters of a browser of cards, which shows a page of them at a time.
  function steer({turn, filter, reset = () => {}, key = () => {}}) {
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
  }

  return {by, element, drawing, steer, data: by('data') ? JSON.parse(by('data').textContent) : {}};
})();
