"""Pictures of the views, for the README and for whoever looks at the design."""

import sys
from io import BytesIO
from pathlib import Path

from content import household
from house import Model, Store
from PIL import Image
from playwright.sync_api import sync_playwright

SIZES = {"light": (1200, 860, "light"), "dark": (1200, 860, "dark"), "phone": (390, 780, "light")}


def shoot(browser, folder, only=()):
    with Store() as store, Model(pieces=("Lemon, ", "right before ", "you serve it.")) as model:
        household(store)
        with store.page(model=model) as served:
            context = browser.new_context(viewport={"width": 1200, "height": 860})
            page = context.new_page()
            page.goto(served.link)
            for look, (width, height, scheme) in SIZES.items():
                page.set_viewport_size({"width": width, "height": height})
                page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                for name, go in VIEWS.items():
                    if only and name not in only:
                        continue
                    page.goto(served.origin + go[0])
                    for step in go[1:]:
                        step(page)
                    page.wait_for_timeout(150)
                    picture = Image.open(BytesIO(page.screenshot()))
                    # A page has few colours, so the file is small.
                    picture.convert("RGB").quantize(64).save(folder / f"{name}-{look}.png", optimize=True)
            context.close()


def ask(page):
    page.fill("textarea[name=say]", "What goes into the soup at the end?")
    page.click("text=Show the prompt")
    page.wait_for_selector("ol.prompt")


def open_panel(page):
    page.locator(".said.assistant a.when").last.click()
    page.wait_for_selector("#panel h1")


def pick(page):
    page.goto(page.url.replace("/forget/", "/timeline/"))
    for number in (1, 2):
        page.locator(f"#m{number} .pick").check()
    page.click("text=Forget what is selected")
    page.wait_for_selector(".confirm")


VIEWS = {
    "conversations": ("/",),
    "timeline": ("/timeline/named/kitchen",),
    "message": ("/timeline/named/kitchen", open_panel),
    "search": ("/search?q=lemon",),
    "sees": ("/sees/named/kitchen", ask),
    "forget": ("/forget/named/kitchen", pick),
    "settings": ("/settings/dm/anna",),
    "numbers": ("/numbers/named/lights",),
    "data": ("/data",),
    "health": ("/health",),
}

if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        shoot(browser, target, sys.argv[2:])
        browser.close()
