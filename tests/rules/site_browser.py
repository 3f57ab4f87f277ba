#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A browser that follows the links of every page of the site finds each, its headings and pictures, and no error; the
search finds words of pages and names of both interfaces. Usage: site_browser.py SOURCE_ROOT [FOLDER of a built site]"""
import functools
import http.server
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import unquote, urldefrag

import rule

try:
    from selenium import webdriver
except ImportError:
    webdriver = None

LINKS = "return [...document.querySelectorAll('a[href]')].map(a => a.href)"
IDS = "return [...document.querySelectorAll('[id], a[name]')].map(e => e.id || e.name)"
PICTURES = "return [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
FOUND = "return [...document.querySelectorAll('#search-results li')].map(e => e.innerText).join('\\n')"
SEARCHES = {"cgls": ["gridlops.solving.solvers.cgls", "(C++"], "bidiagonalisation": ["Solvers"], "scatter_array": ["gridlops.spaces.Space.scatter_array"]}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def browser():
    options = webdriver.ChromeOptions()
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.chrome.service.Service("/usr/bin/chromedriver"))


def visit(driver, start, folder):
    """Failures of all pages that links reach. Doxygen's own pages, of which there are hundreds, must only be there."""
    base = start.rpartition("/")[0] + "/"
    waiting, ids, wanted = [start], {}, []
    while waiting:
        page = waiting.pop()
        if page in ids:
            continue
        ids[page] = None
        file = folder / unquote(page.removeprefix(base))
        if not file.exists():
            continue
        if file.suffix != ".html" or ("/cpp/" in page and not page.endswith("/cpp/index.html")):
            continue
        driver.get(page)
        time.sleep(0.3 if page == start else 0)  # the first page leads on
        ids[page] = set(driver.execute_script(IDS))
        for picture in driver.execute_script(PICTURES):
            yield f"{page}: no picture {picture}"
        for entry in driver.get_log("browser"):
            if entry["level"] in ("SEVERE", "WARNING") and "favicon.ico" not in entry["message"]:
                yield f"{page}: {entry['message']}"
        for link in driver.execute_script(LINKS):
            if link.startswith(base):
                wanted.append((page, *urldefrag(link)))
                waiting.append(urldefrag(link)[0])
    print(f"{sum(each is not None for each in ids.values())} pages, {len(wanted)} links")
    for page, link, anchor in wanted:
        if not (folder / unquote(link.removeprefix(base))).exists():
            yield f"{page}: {link} leads nowhere"
        elif anchor and ids[link] is not None and unquote(anchor) not in ids[link]:
            yield f"{page}: {link} has no heading #{anchor}"


def search(driver, start):
    """Failures of the search."""
    driver.get(start)
    time.sleep(0.3)
    home = driver.current_url.rpartition("/")[0]
    for word, expected in SEARCHES.items():
        driver.get(f"{home}/search.html?q={word}")
        for _ in range(100):
            found = driver.execute_script(FOUND)
            if all(each in found for each in expected):
                break
            time.sleep(0.1)
        else:
            yield f"a search for {word} does not find {expected}, but {found!r}"


def check(folder):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        driver = browser()
        try:
            start = f"http://127.0.0.1:{server.server_port}/index.html"
            return [*visit(driver, start, Path(folder)), *search(driver, start)]
        finally:
            driver.quit()
            server.shutdown()


if __name__ == "__main__":
    if not webdriver or not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("no chromium with chromium-driver and python3-selenium here")
        sys.exit(rule.SKIPPED)
    with tempfile.TemporaryDirectory() as made:
        if len(sys.argv) < 3:
            subprocess.run([Path(sys.argv[1]) / "scripts/docs", made], check=True)
        failures = check(sys.argv[2] if len(sys.argv) > 2 else made)
    print(*failures or ["nothing to report"], sep="\n")
    sys.exit(1 if failures else 0)
