// Of a page on MTurk, which puts its own form around it: nothing is sent while there is something to say against it.
(() => {
  const check = (event) => {
    if (!sheet.refuse(sheet.problems(true))) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  dom.by('submitButton').addEventListener('click', check);
  sheet.root.closest('form')?.addEventListener('submit', check);
})();
