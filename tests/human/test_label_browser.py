"""The labelling page in a browser: rules are told beside their fields, all goes by keyboard, nothing is lost."""

import labelling_study
import served_study
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from evil_jax.human import collected, label_form
from evil_jax.human.labelling import Asked


def test_a_page_is_labelled(driver, tmp_path):
    known = [Asked('k', 'k', 'Two dogs are running - fast!', 'neutral')]
    study = labelling_study.make(
        tmp_path, number=1, texts=('Two dogs are running - fast!',), trusted=known, page_items=2
    )
    with served_study.running(study, tmp_path) as (port, store, _):
        _label(driver, f'http://127.0.0.1:{port}')
        rows = collected.rows(study, store)
    assert [(row.label, row.words, row.explanation) for row in rows] == [
        ('neutral', ('dogs', 'running'), 'The dog <b>stands</b> there.'),
        ('neutral', ('dogs', 'running'), 'A dog may run, or not.'),
    ]


def _label(driver, address):
    size = {'width': 320, 'height': 800, 'deviceScaleFactor': 1, 'mobile': True}
    driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', size)
    wait = lambda condition: WebDriverWait(driver, 10, 0.05).until(lambda _: condition())
    text = lambda name: driver.find_element(By.ID, name).text
    focused = lambda: driver.execute_script('return document.activeElement.closest("[data-field]")?.dataset.field')
    press = lambda *keys: webdriver.ActionChains(driver).send_keys(*keys).perform()
    send = lambda: driver.execute_script('submitButton.click()')
    told = lambda: driver.execute_script('return document.getElementById("told").textContent')
    driver.get(address)
    driver.find_element(By.CSS_SELECTOR, 'button').click()
    wait(lambda: driver.find_elements(By.ID, 'x-1'))
    assert driver.execute_script('return document.documentElement.scrollWidth') <= 320
    assert [label.text for label in driver.find_elements(By.CSS_SELECTOR, '#item-1 .chips label')] == [
        'Two', 'dogs', 'are', 'running', 'fast!',
    ]  # fmt: skip
    send()
    assert told().startswith('6 things are left to do.') and focused() == 'c1'
    # By keyboard: a digit chooses, the space bar highlights a word, Enter sends nothing, digits are text in a text.
    press('2', Keys.ENTER, Keys.TAB, Keys.TAB, Keys.SPACE, Keys.TAB, Keys.TAB, Keys.SPACE, Keys.TAB, Keys.TAB)
    assert focused() == '1-x'
    press('The 2 cats')
    assert text('used-1') == '0 of 2 highlighted words used, 1 needed'
    for name in ('c2', '2-w', '2-x'):
        values = {'c2': ['1'], '2-w': ['1', '3'], '2-x': []}[name]
        for value in values:
            driver.execute_script('document.querySelector(arguments[0]).click()', f'[name="{name}"][value="{value}"]')
    driver.find_element(By.ID, 'x-2').send_keys('A dog may run, or not.')
    assert text('used-2') == '2 of 2 highlighted words used, 1 needed'
    send()
    half = label_form.MESSAGES['half'].format(k=1, used=0, of=2, wanted=1)
    assert told() == half and focused() == '1-x' and half in text('problems')
    assert text('wrong-1-x').lower() == half.partition(': ')[2].lower()
    driver.find_element(By.ID, 'x-1').clear()
    driver.find_element(By.ID, 'x-1').send_keys('Two dogs are running fast')
    send()
    assert told() == label_form.MESSAGES['again'].format(k=1)
    driver.find_element(By.ID, 'x-1').clear()
    driver.find_element(By.ID, 'x-1').send_keys('The dog <b>stands</b> there.')
    driver.refresh()  # at once: before it was saved
    wait(lambda: text('state') == 'All saved')
    assert driver.find_element(By.ID, 'x-1').get_property('value') == 'The dog <b>stands</b> there.'
    assert text('count') == '2 of 2 done'
    unnamed = driver.execute_script(
        'return [...document.querySelectorAll("input, textarea, button")]'
        '.filter((n) => !n.labels?.length && !n.textContent.trim()).length'
    )
    assert unnamed == 0
    send()
    wait(lambda: driver.title == 'The end')
