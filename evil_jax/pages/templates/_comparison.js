'use strict';
// The scatter of scores.
(() => {
  const {by, element, drawing, data} = dom;

  const scatter = data.scatter;
  const svg = by('scatter-plot');
  if (!scatter || !svg || !scatter.clouds.length) return;
  const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [560, 380, 60, 28, 14, 46];
  const [cloudOf, xOf, yOf] = [by('scatter-cloud'), by('scatter-x'), by('scatter-y')];
  let points = [];
  let chosen = -1;

  function ticks(low, high) {
    const rough = (high - low || Math.abs(high) || 1) / 4;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * (1 - 1e-9));
    const found = [];
    for (let i = Math.floor(low / step + 1e-9); i <= Math.ceil(high / step - 1e-9) || found.length < 2; i++) found.push(Number((i * step).toPrecision(12)));
    return found;
  }

  function fill(select, names, wanted) {
    const kept = select.value || wanted;
    select.replaceChildren(...names.map((name) => {
      const option = element('option', '', scatter.names[name] ?? name);
      option.value = name;
      return option;
    }));
    select.value = names.includes(kept) ? kept : names.includes(wanted) ? wanted : names[0];
  }

  function choose(i) {
    chosen = i;
    [...svg.querySelectorAll('.point')].forEach((node, k) => node.classList.toggle('on', k === i));
    const point = points[i];
    by('scatter-told').textContent = point
      ? `${point.label}: ${scatter.names[xOf.value]} ${point.x}, ${scatter.names[yOf.value]} ${point.y} (${i + 1} of ${points.length})`
      : `${points.length} points. Choose one with the pointer or, when the picture has the focus, with ← and →.`;
  }

  function draw() {
    const cloud = scatter.clouds[Number(cloudOf.value)];
    const names = Object.keys(scatter.names).filter((name) => cloud.values[name]?.some((v) => v !== null));
    const firstText = names.find((name) => !/^(s_|accuracy|vqa_)/.test(name)) ?? names[0];
    fill(xOf, names, names[0]);
    fill(yOf, names, firstText);
    const [xs, ys] = [cloud.values[xOf.value] ?? [], cloud.values[yOf.value] ?? []];
    points = cloud.labels.map((label, i) => ({label, x: xs[i], y: ys[i]})).filter((p) => p.x != null && p.y != null);
    points.sort((a, b) => a.x - b.x || a.y - b.y);
    const span = (values) => ticks(values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), -Infinity));
    const children = [drawing('title', {}, `${scatter.names[yOf.value]} against ${scatter.names[xOf.value]}, ${cloud.name}`)];
    if (points.length) {
      const [xt, yt] = [span(points.map((p) => p.x)), span(points.map((p) => p.y))];
      const place = (v, t, from, to) => from + ((v - t[0]) / (t.at(-1) - t[0] || 1)) * (to - from);
      const px = (v) => place(v, xt, LEFT, WIDTH - RIGHT).toFixed(1);
      const py = (v) => place(v, yt, HEIGHT - BOTTOM, TOP).toFixed(1);
      for (const t of yt) children.push(drawing('line', {class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: py(t), y2: py(t)}), drawing('text', {class: 'tick', x: LEFT - 6, y: Number(py(t)) + 5, 'text-anchor': 'end'}, String(t)));
      for (const t of xt) children.push(drawing('line', {class: 'grid', y1: TOP, y2: HEIGHT - BOTTOM, x1: px(t), x2: px(t)}), drawing('text', {class: 'tick', x: px(t), y: HEIGHT - BOTTOM + 18, 'text-anchor': 'middle'}, String(t)));
      children.push(drawing('text', {class: 'tick', x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, 'text-anchor': 'middle'}, scatter.names[xOf.value]));
      const few = points.length <= 12;
      points.forEach((p, i) => {
        const dot = drawing('circle', {class: `point dot c${few ? i % 6 : 0}`, cx: px(p.x), cy: py(p.y), r: few ? 6 : 3}, drawing('title', {}, `${p.label}: ${p.x}, ${p.y}`));
        dot.addEventListener('pointerenter', () => choose(i));
        children.push(dot);
        if (few) {
          const end = px(p.x) > 0.7 * WIDTH;
          const name = p.label.length > 24 ? p.label.slice(0, 23) + '…' : p.label;
          children.push(drawing('text', {class: 'tick', x: Number(px(p.x)) + (end ? -10 : 10), y: Number(py(p.y)) + 5, 'text-anchor': end ? 'end' : 'start'}, name));
        }
      });
    }
    svg.setAttribute('viewBox', `0 0 ${WIDTH} ${HEIGHT}`);
    svg.setAttribute('aria-label', children[0].textContent + ': arrow keys go from point to point');
    svg.replaceChildren(...children);
    by('scatter-height').textContent = `upwards: ${scatter.names[yOf.value]}`;
    choose(-1);
  }

  cloudOf.replaceChildren(...scatter.clouds.map((cloud, i) => {
    const option = element('option', '', cloud.name);
    option.value = String(i);
    return option;
  }));
  for (const select of [cloudOf, xOf, yOf]) select.addEventListener('input', draw);
  svg.addEventListener('keydown', (event) => {
    const to = {ArrowRight: chosen + 1, ArrowLeft: chosen - 1, Home: 0, End: points.length - 1}[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    choose(Math.max(0, Math.min(points.length - 1, to)));
  });
  draw();
})();
