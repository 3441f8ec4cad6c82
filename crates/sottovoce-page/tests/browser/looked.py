"""A browser that notes what a page must not do, and axe-core on what it shows."""

import json
from pathlib import Path

import axe_playwright_python
from playwright.sync_api import expect  # noqa: F401

AXE = next(Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")).read_text()
SCHEMES = ("light", "dark")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


class Looked:
    """A page of a browser, and everything wrong that it did: errors, violations of its policy, requests to elsewhere."""

    def __init__(self, browser, served, allowed=(), **options):
        self.origin = served.origin
        self.context = browser.new_context(viewport={"width": 1200, "height": 860}, **options)
        self.context.set_default_timeout(10_000)
        self.wrong, self.views, self.largest = [], 0, (0, "")
        self.page = self.context.new_page()
        self.page.on("console", lambda said: said.type in ("error", "warning") and self._note(said.text))
        self.page.on("pageerror", lambda error: self._note(str(error)))
        self.page.on("request", lambda request: request.url.startswith(self.origin) or self._note(f"asked for {request.url}"))
        self.page.on("response", self._measure)
        self.allowed = list(allowed)
        self.page.goto(served.link)
        assert "key=" not in self.page.url, self.page.url

    def _note(self, what):
        if not any(part in what for part in self.allowed):
            self.wrong.append(what)

    def _measure(self, response):
        if "text/html" in response.headers.get("content-type", "") and response.status == 200:
            size = int(response.headers.get("content-length", 0))
            self.largest = max(self.largest, (size, response.url.removeprefix(self.origin)))

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        self.context.close()
        if not failed:
            assert not self.wrong, self.wrong
            assert self.largest[0] < 100_000, self.largest

    def go(self, path):
        self.page.goto(self.origin + path)
        return self.page

    def axe(self):
        """Fails for anything that axe-core finds, in light and in dark."""
        for scheme in SCHEMES:
            self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            self.page.evaluate(AXE)
            found = self.page.evaluate("rules => axe.run(document, {resultTypes: ['violations'], runOnly: rules})", RULES)["violations"]
            places = [(one["id"], node["html"][:160], node.get("failureSummary", "")[:200]) for one in found for node in one["nodes"][:3]]
            assert not places, (self.page.url, scheme, json.dumps(places, indent=1))
            self.views += 1

    def fits(self):
        """Fails if something is wider than the window, from the smallest to the largest."""
        for width, height in ((320, 640), (3840, 2160), (1200, 860)):
            self.page.set_viewport_size({"width": width, "height": height})
            over = self.page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
            assert over <= 0, (self.page.url, width, over)
