"""The rater's page in a browser: it is finished, every forbidden page is refused and told why, and nothing is lost."""

import dataclasses
import os
import pathlib
import random
import time

import pytest
import rater_pages
import served_study
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from evil_jax.human import form

# Sets the page to these fields, as a rater would: the last click decides.
CHOOSE = """
for (const input of document.querySelectorAll('fieldset input')) {
  const wanted = (arguments[0][input.name] ?? []).includes(input.value);
  if (input.checked !== wanted && (wanted || input.type === 'checkbox')) input.click();
}
"""
# Texts with less contrast than 4.5 to what is behind them.
FAINT = """
const light = (rgb) => {
  const [r, g, b] = rgb.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
const behind = (node) => {
  for (; node; node = node.parentElement) {
    const colour = numbers(getComputedStyle(node).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour.slice(0, 3);
  }
  return [255, 255, 255];
};
const nodes = [...document.body.querySelectorAll('*')].filter((n) => n.checkVisibility() && !n.closest('svg, script') &&
  [...n.childNodes].some((child) => child.nodeType === 3 && child.data.trim()));
const faint = nodes.filter((n) => {
  const [a, b] = [light(numbers(getComputedStyle(n).color).slice(0, 3)), light(behind(n))];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
});
return [nodes.length, faint.map((n) => n.outerHTML.slice(0, 100))];
"""
# Pixels between where the first box of each picture is and where it belongs.
ASIDE = """
return [...document.querySelectorAll('.photo')].flatMap((photo) => {
  const [image, box] = ['img', 'rect:not(.under)'].map((name) => photo.querySelector(name).getBoundingClientRect());
  return [box.left - image.left - 0.1 * image.width, box.bottom - image.top - 0.9 * image.height];
});
"""


@pytest.fixture
def serve(driver):
    servers = []

    def start(study):
        servers.append(rater_pages.Server(study))
        return servers[-1]

    yield start
    _connect(driver, True)
    for server in servers:
        server.close()


@pytest.fixture
def photograph(driver, tmp_path):
    """`photograph(name)` keeps the whole page as a picture: in EVIL_JAX_SCREENSHOTS if that is set."""

    def take(name):
        folder = pathlib.Path(os.environ.get('EVIL_JAX_SCREENSHOTS') or tmp_path)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f'{name}.png'
        assert driver.save_screenshot(str(path)) and path.stat().st_size > 10_000

    return take


def _wait(condition, seconds=10):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, 'it did not happen in time'
        time.sleep(0.02)
    return found


def _window(driver, width=1280, height=900, dark=False):
    size = {'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': width < 600}
    driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', size)
    scheme = {'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}
    driver.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': [scheme]})


def _connect(driver, on):
    driver.set_network_conditions(offline=not on, latency=0, throughput=-1)


def _text(driver, name):
    return driver.find_element(By.ID, name).text


def _fields(driver):
    return driver.execute_script('return sheet.fields()')


def _focused(driver):
    """The group of the form that has the focus, or the id of what has it."""
    return driver.execute_script(
        'const n = document.activeElement; return n.closest("[data-field]")?.dataset.field ?? n.id'
    )


def _told(driver):
    return driver.execute_script('return document.getElementById("told").textContent')


def test_every_forbidden_page_is_refused_and_told_why(driver, serve, photograph):
    server = serve(rater_pages.study())
    _window(driver)
    driver.get(f'{server.url}/page')
    visible = lambda: [e.is_displayed() for e in driver.find_elements(By.CSS_SELECTOR, '.explanations')]
    assert visible() == [False] * 3 and 'Page 1 of 3' in driver.page_source
    send = lambda: driver.find_element(By.ID, 'submitButton').click()
    send()
    message = form.MESSAGES['choice'].format(k=1)
    assert _told(driver) == f'3 things are left to do. {message}' and _focused(driver) == 'c1'
    photograph('empty')
    good = rater_pages.finished(server.study)
    yes = {f'{k}-e{e}': ['yes'] for k in (1, 2, 3) for e in (1, 2)} | {f'{k}-f2': ['3'] for k in (1, 2, 3)}
    cases = [
        ({'2-f2': []}, '2-f2', 'ticks', {'k': 2, 'e': 2}),
        ({'1-f1': ['3', '1']}, '1-f1', 'none', {'k': 1, 'e': 1}),
        ({'2-e2': ['yes']}, '2-f2', 'yes', {'k': 2, 'e': 2}),
        ({'3-e1': ['no']}, '3-f1', 'no', {'k': 3, 'e': 1}),
        ({'3-e2': ['w_no'], '3-f2': ['3']}, '3-f2', 'no', {'k': 3, 'e': 2}),
        (yes, 'problems', 'many_yes', {'yes': 6, 'of': 6, 'limit': 4}),
        ({'c1': ['2'], 'c3': ['0']}, 'problems', 'wrong', {'limit': 1}),  # the server alone knows
    ]
    for changes, place, rule, values in cases:
        driver.execute_script(CHOOSE, good | changes)
        send()
        message = form.MESSAGES[rule].format(**values)
        _wait(lambda message=message: _told(driver) == message)
        assert _focused(driver) == place and message in _text(driver, 'problems') and server.taken is None
        if place != 'problems':
            beside = driver.find_element(By.ID, f'wrong-{place}')
            assert beside.is_displayed() and beside.text.lower() == message.partition(': ')[2].lower()
        photograph(f'refused_{rule}')
    assert _text(driver, 'count') == '3 of 3 done'
    driver.execute_script(CHOOSE, good)
    driver.find_element(By.ID, 'commentbox').send_keys('nice <b>dogs</b>')
    send()
    _wait(lambda: driver.title == 'done')
    assert server.taken == good | {'commentbox': ['nice <b>dogs</b>']}


def test_nothing_is_lost_by_reloading_or_without_connection(driver, serve, photograph):
    server = serve(rater_pages.study())
    _window(driver)
    driver.get(f'{server.url}/page')
    half = {'c1': ['0'], '1-e1': ['w_yes'], '1-f1': ['0', '2'], 'c2': ['2']}
    driver.execute_script(CHOOSE, half)
    driver.refresh()  # at once: before it was saved
    assert _fields(driver) == half
    _wait(lambda: server.fields == half and _text(driver, 'state') == 'All saved')
    # Another browser goes on where this one stopped.
    driver.execute_script('sessionStorage.clear()')
    driver.get('about:blank')
    driver.get(f'{server.url}/page')
    assert _fields(driver) == half and _text(driver, 'count') == '0 of 3 done'
    _connect(driver, False)
    good = rater_pages.finished(server.study)
    driver.execute_script(CHOOSE, good)
    _wait(lambda: _text(driver, 'state').startswith('No connection') and _told(driver) == _text(driver, 'state'))
    driver.find_element(By.ID, 'submitButton').click()
    _wait(lambda: _text(driver, 'sent').startswith('There is no connection. Everything you filled in is kept'))
    photograph('no_connection')
    assert server.fields == half and server.taken is None
    _connect(driver, True)
    _wait(lambda: server.fields == good and _text(driver, 'state') == 'All saved')
    # Of a refusal that trying again cannot heal, the reason is shown.
    server.status = 403
    driver.find_element(By.ID, 'submitButton').click()
    _wait(lambda: _text(driver, 'sent') == 'The page was not taken: this page was given to somebody else')
    server.status = 200
    driver.find_element(By.ID, 'submitButton').click()
    _wait(lambda: driver.title == 'done')
    assert server.taken == good


def test_an_item_by_keyboard_alone(driver, serve):
    server = serve(rater_pages.study(number=1, wrong_limit=0))
    _window(driver)
    driver.get(f'{server.url}/page')
    press = lambda *keys: webdriver.ActionChains(driver).send_keys(*keys).perform()
    for _ in range(12):
        press(Keys.TAB)
        if _focused(driver) == 'c1':
            break
    press(Keys.ENTER)  # sends nothing
    press('3', Keys.ARROW_UP, Keys.ARROW_UP)
    for name, keys in {'1-e1': '2', '1-f1': '13', '1-e2': '4', '1-f2': '2'}.items():
        for _ in range(4):  # boxes are left one by one
            press(Keys.TAB)
            if _focused(driver) == name:
                break
        press(*keys)
    assert _fields(driver) == {'c1': ['0'], '1-e1': ['w_yes'], '1-f1': ['0', '2'], '1-e2': ['no'], '1-f2': ['1']}
    for _ in range(6):
        press(Keys.TAB)
        if _focused(driver) == 'submitButton':
            break
    press(Keys.ENTER)
    _wait(lambda: driver.title == 'done')
    assert server.taken['1-f1'] == ['0', '2']


@pytest.mark.parametrize('kind', ['statement', 'question'])
def test_it_can_be_read_on_a_phone_and_in_the_dark(driver, serve, photograph, kind):
    server = serve(rater_pages.study(kind, number=2, words='w' * 60))
    server.fields = {'c1': ['1'], '1-e1': ['yes'], '1-f1': ['1']}
    windows = ((1280, True), (375, False)) if kind == 'statement' else ((1280, False), (320, True))
    for width, dark in windows:
        _window(driver, width, 900, dark)
        driver.get(f'{server.url}/page')
        driver.execute_script(
            'for (const n of document.querySelectorAll("details")) n.open = true; submitButton.click();'
        )
        total, faint = driver.execute_script(FAINT)
        assert total > 40 and faint == []
        assert driver.execute_script('return document.documentElement.scrollWidth') <= width
        assert kind == 'statement' or max(map(abs, driver.execute_script(ASIDE))) < 1.5
        height = driver.execute_script('return document.documentElement.scrollHeight')
        _window(driver, width, height, dark)
        photograph(f'{kind}_{width}{"_dark" if dark else ""}')
    marked = driver.execute_script(
        'return [...document.querySelectorAll("#item-1 svg text")].map((n) => n.textContent)'
    )
    assert marked == (['person 1', 'dog 2'] if kind == 'question' else [])
    # What cannot be named by what is around it has a name of its own.
    unnamed = (
        'return [...document.querySelectorAll("fieldset")].filter((n) => !n.querySelector("legend").textContent).length'
    )
    assert driver.execute_script(unnamed) == 0


def test_untrusted_text_stays_text(driver, serve):
    attack = '</script><script>document.title="broken"</script><img src=x onerror="document.title=\'broken\'">'
    server = serve(rater_pages.study('question', words=attack))
    driver.get(f'{server.url}/page')
    driver.execute_script(CHOOSE, {'c1': ['0']})
    assert attack in _text(driver, 'says-1-1') and driver.title.startswith('Do these') and driver.title != 'broken'
    driver.get(f'{server.url}/mturk')
    driver.execute_script(CHOOSE, {'c1': ['0']})
    assert attack in _text(driver, 'says-1-1') and driver.title != 'broken'


def test_the_layout_on_mturk(driver, serve, photograph):
    server = serve(rater_pages.study('question'))
    _window(driver)
    driver.get(f'{server.url}/mturk')
    assert driver.execute_script('return document.querySelectorAll("#item-1 svg text").length') == 2
    send = lambda: driver.find_element(By.ID, 'submitButton').click()
    good = rater_pages.finished(server.study)
    for changes, message in (
        ({'1-f1': []}, form.MESSAGES['ticks'].format(k=1, e=1)),
        ({'c1': ['2'], 'c2': ['2']}, form.MESSAGES['wrong'].format(limit=1)),
    ):
        driver.execute_script(CHOOSE, good | changes)
        send()
        assert _told(driver) == message and server.posted is None
    photograph('mturk')
    driver.execute_script(CHOOSE, good)
    send()
    _wait(lambda: server.posted is not None)
    page = server.study.pages[0]
    assert form.check(server.study, page, form.parse(server.posted, **form.shape(server.study, page))) == []
    assert server.posted == good


def test_the_page_finds_what_python_finds(driver, serve):
    server = serve(rater_pages.study('question', yes_limit=3))
    driver.get(f'{server.url}/mturk')
    random.seed(0)
    pages = []
    for _ in range(300):
        fields = rater_pages.finished(server.study)
        for name in random.sample(sorted(fields), random.choice((0, 2, 4, 8))):
            if '-f' in name:
                fields[name] = random.sample('0123', random.randrange(4))
            else:
                fields[name] = [random.choice('012' if name[0] == 'c' else list(form.WORDS))][: random.randrange(5)]
        if random.random() < 0.5:
            fields |= {f'{k}-e{e}': ['yes'] for k in (1, 2, 3) for e in (1, 2)} | {f'{k}-f2': ['3'] for k in (1, 2, 3)}
        pages.append(fields)
    found = driver.execute_script(
        'return arguments[0].map((f) => { sheet.restore(f); return sheet.problems(true); })', pages
    )
    page = server.study.pages[0]
    answers = [form.parse(fields, **form.shape(server.study, page)) for fields in pages]
    assert found == [list(map(dataclasses.asdict, form.check(server.study, page, some))) for some in answers]
    rules = {problem['rule'] for problems in found for problem in problems}
    assert rules == {'filled', 'none', 'yes', 'no', 'many_yes', 'wrong'} and [] in found


def test_a_rater_and_the_server_of_a_study(driver, tmp_path, photograph):
    made = served_study.write(tmp_path, pages=2, raters=1)
    with served_study.running(made, tmp_path) as (port, _, keys):
        _window(driver)
        driver.get(f'http://127.0.0.1:{port}/?PROLIFIC_PID=p1&STUDY_ID=s1&SESSION_ID=e1')
        driver.find_element(By.TAG_NAME, 'button').click()
        for number in range(2):
            _wait(lambda: driver.find_elements(By.ID, 'sheet'))
            page = driver.execute_script('return dom.data.submit_url').split('/')[-2]
            good = served_study.fields(made, page)
            driver.execute_script(CHOOSE, good | {'1-f1': []})
            assert 'made <b>' in driver.find_element(By.TAG_NAME, 'main').text
            driver.refresh()
            assert _fields(driver) == {name: values for name, values in good.items() if name != '1-f1'}
            photograph(f'served_{number}')
            driver.execute_script(CHOOSE, good | {f'c{k}': ['2'] for k in (1, 2, 3)})
            driver.find_element(By.ID, 'submitButton').click()
            _wait(lambda: _told(driver) == form.MESSAGES['wrong'].format(limit=1))
            driver.execute_script(CHOOSE, good)
            driver.find_element(By.ID, 'submitButton').click()
            _wait(lambda page=page: f'/page/{page}/' not in driver.page_source)
        assert _wait(lambda: driver.find_elements(By.ID, 'code'))[0].text == keys.completion_code
        photograph('served_done')
    said = [entry['message'] for entry in driver.get_log('browser') if f':{port}/' in entry['message']]
    assert len(said) == 2 and all('status of 422' in message for message in said)  # no policy was broken
