// Of a page that our server sent: each change is saved there, and what is not saved yet is kept in this tab.
(() => {
  const {draft_url: draftUrl, submit_url: submitUrl, token} = dom.data;
  const [key, state, sent, button] = ['unsaved ' + draftUrl + ' ' + token, dom.by('state'), dom.by('sent'), dom.by('submitButton')];
  const PAUSE = 500, PATIENCE = 20000, LONGEST = 30000; // ms: after a change, of one request, between two tries
  let [changes, saved, wait, timer] = [0, 0, 1000, 0];
  let saving = null; // the request that is under way
  let [sending, over] = [false, false];

  const body = () => JSON.stringify({token, fields: sheet.fields()});
  const request = {method: 'POST', headers: {'Content-Type': 'application/json'}, credentials: 'same-origin'};
  const passing = (status) => status === 0 || status === 429 || status >= 500; // try again
  const say = (text, bad = false) => {
    if (state.textContent === text) return;
    state.textContent = text;
    if (bad) dom.by('told').textContent = text; // good news need not be read out
    state.classList.toggle('bad', bad);
  };

  // Where the storage is full or forbidden, the server alone keeps the answers.
  function storage(action, ...values) {
    try { return sessionStorage[action](key, ...values); } catch { return null; }
  }
  const keep = () => storage('setItem', JSON.stringify(sheet.fields()));
  const kept = () => JSON.parse(storage('getItem'));
  const forget = () => storage('removeItem');

  async function post(url) {
    const control = new AbortController();
    const limit = setTimeout(() => control.abort(), PATIENCE);
    try {
      const response = await fetch(url, {...request, body: body(), signal: control.signal});
      return {status: response.status, answer: await response.json().catch(() => ({}))};
    } catch {
      return {status: 0, answer: {}};
    } finally {
      clearTimeout(limit);
    }
  }

  async function save() {
    clearTimeout(timer);
    if (saving || sending || over || saved === changes) return;
    const version = changes;
    say('Saving …');
    saving = post(draftUrl);
    const {status, answer} = await saving;
    saving = null;
    if (sending || over) return;
    if (status === 200) {
      [wait, saved] = [1000, version];
      if (saved !== changes) return save();
      forget();
      say('All saved');
    } else if (passing(status)) {
      say(status === 0 ? 'No connection: not saved yet, trying again' : 'The server is busy: not saved yet, trying again', true);
      timer = setTimeout(save, wait);
      wait = Math.min(2 * wait, LONGEST);
    } else {
      say('Not saved: ' + (answer.error ?? 'the server refused it'), true);
    }
  }

  function change() {
    changes += 1;
    keep();
    clearTimeout(timer);
    timer = setTimeout(save, PAUSE);
  }

  // The page may be gone before the pause is over.
  function leave() {
    if (!over && saved !== changes) fetch(draftUrl, {...request, body: body(), keepalive: true}).catch(() => {});
  }

  async function send(event) {
    event.preventDefault();
    if (sending || over) return;
    sent.textContent = '';
    if (sheet.refuse(sheet.problems())) return;
    sending = true;
    clearTimeout(timer);
    button.setAttribute('aria-disabled', 'true');
    say('Sending …');
    await saving; // an older draft must not arrive after the page
    const {status, answer} = await post(submitUrl);
    button.removeAttribute('aria-disabled');
    sending = false;
    if (status === 200) {
      over = true;
      forget();
      say('Sent');
      location.replace(answer.next);
      return;
    }
    say(saved === changes ? 'All saved' : '');
    if (status === 422 && answer.problems?.length) sheet.refuse(answer.problems);
    else if (status === 0) sent.textContent = 'There is no connection. Everything you filled in is kept here: please try again in a moment.';
    else if (passing(status)) sent.textContent = 'The server is busy. Everything you filled in is kept here: please try again in a moment.';
    else sent.textContent = 'The page was not taken: ' + (answer.error ?? 'the server refused it');
    save();
  }

  sheet.root.addEventListener('change', change);
  dom.by('commentbox').addEventListener('input', change);
  sheet.root.addEventListener('submit', send);
  addEventListener('online', save);
  document.addEventListener('visibilitychange', save); // a phone may drop a page that it does not show
  addEventListener('pagehide', leave);
  addEventListener('beforeunload', (event) => {
    leave();
    if (!over && state.classList.contains('bad')) event.preventDefault(); // the browser asks
  });
  addEventListener('pageshow', (event) => { if (event.persisted) location.reload(); });
  const unsaved = kept();
  if (unsaved) {
    sheet.restore(unsaved);
    change();
  }
})();
