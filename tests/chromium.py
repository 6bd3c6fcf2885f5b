"A headless Chromium for tests that look at pages; skipped with a reason where there is none."

import json
import shutil

import pytest

CHROMIUM, DRIVER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome"),
    shutil.which("chromedriver"),
)
PATIENCE = 600  # seconds for what comes at once, or never
needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="needs chromium and chromedriver, for instance from the distribution's packages",
)


def open_browser(profile):
    "A browser that asks nothing of the network by itself; `profile` is a folder of its own."
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    flags = (
        "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run "
        "--disable-background-networking --disable-component-update --disable-sync"
    )
    for flag in [*flags.split(), f"--user-data-dir={profile}", "--window-size=1300,900"]:
        options.add_argument(flag)
    options.add_experimental_option("perfLoggingPrefs", {"enablePage": False})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))


def requests(browser):
    "Addresses that the pages asked for since the last call."
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            yield message["params"]["request"]["url"]
