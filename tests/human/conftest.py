"""Helper modules of this folder are imported by their names; `driver` is a browser."""

import pathlib
import shutil
import sys

import pytest
from selenium import webdriver

sys.path.insert(0, str(pathlib.Path(__file__).parent))


@pytest.fixture(scope='module')
def driver():
    browser = next(filter(None, map(shutil.which, ('chromium', 'chromium-browser', 'google-chrome', 'chrome'))), None)
    if not browser or not shutil.which('chromedriver'):
        pytest.skip('no Chromium with chromedriver on this machine: pages are not tried in a browser')
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ('--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars'):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which('chromedriver')))
    yield driver
    driver.quit()
