"""A headless Chromium for the tests: where it is, how it starts, and a small hand to drive it with."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

WIDE = (1440, 1000)
NARROW = (390, 844)
PATIENCE = 90.0
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--force-color-profile=srgb",
    "--hide-scrollbars", "--no-proxy-server", "--lang=en-US",
)  # fmt: skip
Found = TypeVar("Found")


def chromium_commands() -> tuple[str, str] | None:
    """Where Chromium and its driver are (Debian: chromium, chromium-driver); None where one of them is missing."""
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    driver = os.environ.get("CHROMEDRIVER") or shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


class Page:
    """One window. Every look waits for what it looks for; what never comes fails with the text of the page."""

    def __init__(self, driver: Any, *, origin: str = "") -> None:
        self.driver = driver
        self.origin = origin

    def open(self, path: str) -> None:
        """Load an address below the server, afresh."""
        self.driver.get("about:blank")
        self.driver.get(self.origin + path)

    def size(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, scheme: str) -> None:
        """What the system prefers: "light" or "dark"."""
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    def wait(self, look: Callable[[], Found | None], what: str, seconds: float = PATIENCE) -> Found:
        """Look until there is something."""
        end = time.monotonic() + seconds
        while True:
            found = self._looked(look)
            if found:
                return found
            if time.monotonic() > end:
                raise AssertionError(f"waited {seconds:.0f} s for {what}; the page says:\n{self.text()[:3000]}")
            time.sleep(0.03)

    def _looked(self, look: Callable[[], Found | None]) -> Found | None:
        from selenium.common.exceptions import StaleElementReferenceException

        try:
            return look()
        except StaleElementReferenceException:
            return None

    def all(self, css: str) -> list[Any]:
        """What is there now."""
        return list(self.driver.find_elements("css selector", css))

    def see(self, css: str, seconds: float = PATIENCE) -> Any:
        """The first visible element."""
        return self.wait(lambda: next((item for item in self.all(css) if item.is_displayed()), None), css, seconds)

    def read(self, words: str, css: str = "body", seconds: float = PATIENCE) -> None:
        """Wait until the words stand in an element."""
        self.wait(lambda: any(words in item.text for item in self.all(css)), f"{words!r} in {css}", seconds)

    def gone(self, css: str, seconds: float = PATIENCE) -> None:
        self.wait(lambda: not [item for item in self.all(css) if item.is_displayed()], f"{css} to go", seconds)

    def click(self, css: str) -> None:
        """Click as a user does, after scrolling there."""
        item = self.see(css)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", item)
        item.click()

    def type(self, css: str, text: str) -> None:
        """Replace what a field holds, key by key."""
        from selenium.webdriver import Keys

        self.see(css).send_keys(Keys.CONTROL, "a", Keys.NULL, Keys.DELETE, text)

    def keys(self, *keys: str) -> None:
        """Press keys wherever the focus is."""
        from selenium.webdriver import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def text(self, css: str = "body") -> str:
        return str(self.driver.find_element("css selector", css).text)

    def script(self, code: str, *arguments: object) -> Any:
        return self.driver.execute_script(code, *arguments)

    def refusal(self, css: str) -> str | None:
        """Why a button cannot be pressed; None when it can."""
        item = self.see(css)
        return str(item.get_attribute("title")) if item.get_attribute("aria-disabled") == "true" else None

    def complaints(self) -> list[str]:
        """What the page wrote into the console as an error since the last look, loads that failed included."""
        return [str(line["message"]) for line in self.driver.get_log("browser") if line["level"] == "SEVERE"]

    def picture(self, path: Path, *, full: bool = True) -> None:
        """A PNG of the window, or of the page from top to bottom."""
        if full:
            width, height = self.script("return [innerWidth, document.documentElement.scrollHeight]")
            self.size(width, min(int(height), 4000))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.driver.get_screenshot_as_png())

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.script("return document.documentElement.scrollWidth - innerWidth"))


def start(folder: Path) -> Any:
    """A driver with an empty profile in `folder`; the caller quits it."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    found = chromium_commands()
    assert found is not None
    options = webdriver.ChromeOptions()
    options.binary_location = found[0]
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}", f"--window-size={WIDE[0]},{WIDE[1]}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = Service(found[1], log_output=str(folder / "chromedriver.log"))
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_page_load_timeout(150)
    driver.set_script_timeout(60)
    return driver
