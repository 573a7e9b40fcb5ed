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

  return {by, element, drawing, data: by('data') ? JSON.parse(by('data').textContent) : {}};
})();
