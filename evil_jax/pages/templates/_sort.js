'use strict';
// Boards that sort by any column.
(() => {
  // Rows move within their own part of a table: published numbers never stand among ours.
  for (const button of document.querySelectorAll('.board thead button')) {
    button.addEventListener('click', () => {
      const head = button.closest('th');
      const table = head.closest('table');
      const column = [...head.parentNode.children].indexOf(head);
      const up = head.getAttribute('aria-sort') === 'descending';
      for (const other of head.parentNode.children) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      for (const body of table.tBodies) {
        const rows = [...body.rows].filter((row) => row.dataset.row !== undefined);
        const value = (row) => (row.cells[column]?.dataset.value ? Number(row.cells[column].dataset.value) : null);
        rows.sort((a, b) => {
          const [x, y] = [value(a), value(b)];
          return x === null || y === null ? (x === null) - (y === null) : up ? x - y : y - x;
        });
        body.append(...rows);
      }
    });
  }
})();
