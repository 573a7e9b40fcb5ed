'use strict';
// Shows what was relevant for the target that is pointed at, focused or tapped. The first one stands in the page.
(() => {
  const {tables, items} = dom.data;
  const colours = tables.map((hex) => hex.match(/../g).map((byte) => parseInt(byte, 16)));
  const number = (value) => String(Number(value.toPrecision(3)));

  // The next four are heat.py's `scaled`, `levels`, `upsample` and `of_boxes`.
  function scaled(values, signed) {
    let [low, high] = [Infinity, -Infinity];
    for (const v of values) [low, high] = [Math.min(low, v), Math.max(high, v)];
    const [from, span] = signed ? [0, Math.max(-low, high)] : [low, high - low];
    return values.map((v) => (span > 0 ? (v - from) / span : 0));
  }

  const level = (heat, signed) => Math.floor((signed ? 128 + 127 * heat : 255 * heat) + 0.5);

  function upsample(values, [h, w], [width, height]) {
    const field = new Float64Array(width * height);
    const place = (i, n, wanted) => Math.max(0, Math.min(n - 1, (i + 0.5) * n / wanted - 0.5));
    for (let y = 0; y < height; y++) {
      const down = place(y, h, height);
      const [top, bottom] = [Math.floor(down), Math.min(Math.floor(down) + 1, h - 1)];
      for (let x = 0; x < width; x++) {
        const across = place(x, w, width);
        const [left, right] = [Math.floor(across), Math.min(Math.floor(across) + 1, w - 1)];
        const row = (i) => values[i * w + left] * (1 - across + left) + values[i * w + right] * (across - left);
        field[y * width + x] = row(top) * (1 - down + top) + row(bottom) * (down - top);
      }
    }
    return field;
  }

  function ofBoxes(heat, boxes, [width, height]) {
    const field = new Float64Array(width * height);
    const covered = (low, high, n) => {
      let [first, end] = [Math.ceil(low - 0.5), Math.ceil(high - 0.5)];
      if (end === first) [first, end] = [Math.floor(low), Math.floor(low) + 1];
      return [Math.min(Math.max(first, 0), n), Math.min(Math.max(end, 0), n)];
    };
    const order = heat.map((_, i) => i).sort((a, b) => Math.abs(heat[a]) - Math.abs(heat[b]));
    for (const i of order) {
      const [x1, y1, x2, y2] = boxes[i];
      const [[left, right], [top, bottom]] = [covered(x1, x2, width), covered(y1, y2, height)];
      for (let y = top; y < bottom; y++) field.fill(heat[i], y * width + left, y * width + right);
    }
    return field;
  }

  function painted({signed, size, boxes}, {regions, patches, shape}) {
    if (!patches && !regions) return null;
    const field = patches ? scaled(upsample(patches, shape, size), signed) : ofBoxes(scaled(regions, signed), boxes, size);
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = size;
    const context = canvas.getContext('2d');
    const image = context.createImageData(...size);
    const table = colours[signed];
    field.forEach((heat, i) => {
      const from = 4 * level(heat, signed);
      for (let c = 0; c < 4; c++) image.data[4 * i + c] = table[from + c];
    });
    context.putImageData(image, 0, 0);
    return canvas.toDataURL();
  }

  function warm(node, heat) {
    const step = Math.sign(heat) * Math.floor(10 * Math.abs(heat) + 0.5);
    if (step) node.dataset.h = step;
    else delete node.dataset.h;
  }

  function arm(card) {
    const item = items[card.dataset.item];
    const one = (selector) => card.querySelector(selector);
    const [picture, told, reading] = ['image.heat', '.told', '.reading'].map(one);
    const rows = [...card.querySelectorAll('.words')].map((row) => [...row.querySelectorAll('.w')]);
    const regions = [...card.querySelectorAll('.region')];
    const buttons = [...card.querySelectorAll('[data-target]')];
    const pictures = new Map(picture ? [[0, picture.getAttribute('href')]] : []);
    let [shown, pinned] = [0, 0];

    function show(target) {
      if (target === shown) return;
      shown = target;
      const now = item.targets[target];
      told.textContent = now.told;
      rows.forEach((words, r) => {
        const values = now.words[r];
        const heat = values && scaled(values, item.signed);
        words.forEach((word, i) => {
          warm(word, values ? heat[i] : 0);
          word.title = values ? number(values[i]) : '';
        });
      });
      for (const button of buttons) button.classList.toggle('now', Number(button.dataset.target) === target && target !== pinned);
      if (!picture) return;
      if (!pictures.has(target)) pictures.set(target, painted(item, now));
      const uri = pictures.get(target);
      if (uri) picture.setAttribute('href', uri);
      else picture.removeAttribute('href');
      const heat = now.regions && scaled(now.regions, item.signed);
      const order = heat ? heat.map((_, i) => i).sort((a, b) => Math.abs(heat[b]) - Math.abs(heat[a])).slice(0, 3) : [];
      for (const region of regions) {
        const i = Number(region.dataset.region);
        warm(region, heat ? heat[i] : 0);
        region.classList.toggle('top', order.includes(i) && heat[i] !== 0);
        region.firstChild.textContent = item.names[i] + (heat ? `: ${number(now.regions[i])}` : '');
      }
    }

    function read(event) {
      const {regions: values, patches, shape} = item.targets[shown];
      const region = event.target.closest('.region');
      let text = '\u00a0';
      if (region) {
        const i = Number(region.dataset.region);
        text = item.names[i] + (values ? `: ${number(values[i])}` : '');
      } else if (patches) {
        const {left, top, width, height} = picture.getBoundingClientRect();
        const at = (position, n) => Math.max(0, Math.min(n - 1, Math.floor(position * n)));
        const [row, column] = [at((event.clientY - top) / height, shape[0]), at((event.clientX - left) / width, shape[1])];
        text = `row ${row + 1}, column ${column + 1}: ${number(patches[row * shape[1] + column])}`;
      }
      reading.textContent = text;
    }

    const pointed = (event) => {
      const button = event.target.closest('[data-target]');
      show(button ? Number(button.dataset.target) : pinned);
    };
    card.addEventListener('pointerover', pointed);
    card.addEventListener('pointerleave', () => show(pinned));
    card.addEventListener('focusin', pointed);
    card.addEventListener('focusout', () => show(pinned));
    card.addEventListener('click', (event) => {
      const button = event.target.closest('[data-target]');
      if (!button) return;
      pinned = Number(button.dataset.target);
      show(pinned);
      for (const other of buttons) {
        other.setAttribute('aria-pressed', other === button);
        other.classList.remove('now');
      }
    });
    if (picture && item.targets.length) {
      card.querySelector('.view').addEventListener('pointermove', read);
      card.querySelector('.view').addEventListener('pointerleave', () => { reading.textContent = '\u00a0'; });
    }
  }

  document.querySelectorAll('[data-item]').forEach(arm);
})();
