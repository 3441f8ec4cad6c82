"""The page in a real browser: every view, what is done by clicks, what another program does meanwhile, and locks.

`checks.py [NAME…]` runs the checks whose names hold one of these."""

import os
import re
import sys
import time
from pathlib import Path

from content import FIXTURES, MARKUP, fixture, hostile, household
from house import Model, Store
from looked import Looked, expect
from playwright.sync_api import sync_playwright
from shots import shoot

KITCHEN = "/named/kitchen"
STRANGE = "/dm/" + "%3Cb%3Eeve%3C%252fb%3E%3Fx%23y%26z"


def views(of):
    return [f"/timeline{of}", f"/timeline{of}?at=2", f"/message{of}?n=1", f"/sees{of}", f"/numbers{of}", f"/settings{of}", f"/snapshots{of}", f"/forget{of}"]


EVERYWHERE = ["/", "/?q=zzz", "/search", "/search?q=soup", "/search?q=what+goes+into+soups", "/numbers", "/health", "/data", "/knows", "/settings"]


def check_every_view_of_a_household(browser):
    with Store() as store, Model() as model:
        household(store)
        with store.page(model=model) as served, Looked(browser, served) as looked:
            for path in [*EVERYWHERE, *views(KITCHEN), "/numbers/named/lights", "/timeline/named/lights?before=400"]:
                looked.go(path)
                looked.axe()
                looked.fits()
            page = looked.go(f"/timeline{KITCHEN}")
            page.locator(".said a.when").last.click()
            expect(page.locator("#panel")).to_contain_text("AES-256-GCM")
            looked.axe()
            looked.fits()
            page = looked.go(f"/sees{KITCHEN}")
            page.fill("textarea", "What goes into the soup?")
            page.click("text=Show the prompt")
            expect(page.locator("ol.prompt").first).to_contain_text("lemon")
            looked.axe()
            looked.fits()
            page = looked.go("/data")
            expect(page.locator("main")).to_contain_text("sealed with AES-256-GCM")
            looked.allowed += ["404", "400"]
            for wrong in ("/nowhere", "/message/dm/anna"):
                looked.go(wrong)
                looked.axe()
            return f"{looked.views} looks with axe-core, the largest page {looked.largest[0]:,} bytes"


def check_every_view_of_a_hostile_store(browser):
    with Store() as store, Model() as model:
        hostile(store)
        with store.page(model=model) as served, Looked(browser, served) as looked:
            message = [f"/message/named/hostile?n={number}" for number in range(1, 8)]
            found = [f"/search?q={word}" for word in ("bold", "tool", "%3Cscript%3E")]
            for path in [*EVERYWHERE, *views("/named/hostile"), *views(STRANGE), *message, *found]:
                page = looked.go(path)
                looked.axe()
                looked.fits()
                assert "owned" not in page.title(), path
                assert page.locator("main script, main img, main style, main em, main u").count() == 0, path
            page = looked.go("/sees/named/hostile")
            page.fill("textarea", MARKUP)
            page.click("text=Show the prompt")
            expect(page.locator("ol.prompt:not(.out) li.user .words").last).to_have_text(re.compile("<script>"))
            looked.axe()
            page = looked.go("/forget/named/hostile")
            page.click("button[value=whole]")
            looked.axe()
            looked.fits()
            return f"{looked.views} looks with axe-core, the largest page {looked.largest[0]:,} bytes"


def check_every_view_of_stores_of_earlier_versions(browser):
    looks = 0
    for name in FIXTURES:
        with Store() as store, Model() as model:
            scopes, newest = fixture(store, name)
            with store.page(model=model) as served, Looked(browser, served) as looked:
                of = [path for scope in scopes for path in views(f"/{scope}") if not path.startswith("/message")]
                messages = [f"/message/{scope}?n={number}" for scope in scopes for number in store.numbers(scope)[::4]]
                for path in [*EVERYWHERE, *of, *messages]:
                    page = looked.go(path)
                    assert page.locator("main .failure").count() == 0, (name, path, page.locator("main .failure").first.text_content())
                    looked.axe()
                    looked.fits()
                page = looked.go(f"/timeline/{scopes[-1]}")
                expect(page.locator(".said .words").last).to_have_text(newest)
                page = looked.go(f"/sees/{scopes[-1]}")
                page.fill("textarea", "What was that?")
                page.click("text=Show the prompt")
                expect(page.locator("ol.prompt").first).to_contain_text(newest)
                looked.axe()
                page = looked.go("/health")
                page.click("text=Check every file")
                expect(page.locator("main")).to_contain_text("Last checked")
                expect(page.locator("main")).not_to_contain_text("not sound")
                looked.axe()
                page = looked.go(f"/forget/{scopes[-1]}")
                page.click("button[value=whole]")
                expect(page.locator("ul.plan")).to_be_visible()
                looked.axe()
                page.check("text=I have read this")
                page.click("text=Forget for ever")
                expect(page.locator("h1")).to_have_text("Gone")
                looked.axe()
                looks += looked.views
    return f"{looks} looks with axe-core at {len(FIXTURES)} stores"


def check_damaged_stores_of_earlier_versions(browser):
    def cut(path):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    damages = [("store-v1", "head"), ("store-v1", "20250824T163625123Z_0001_user.json"), ("store-v1-packs", "packs/*.1-3.3.pack"),
               ("store-v1-packs", "packs/*.16-18.3.pack"), ("store-v1-settings", "profile"), ("store-v1-settings", "snapshots/*"),
               ("store-v1-contexts", "profile"), ("store-v1-contexts", "conversations/context-mwrcmi5y-82azq8/profile")]
    for name, what in damages:
        with Store() as store:
            scopes, _ = fixture(store, name)
            found = [path for path in (store.folder / "store").glob(what) if path.is_file()]
            assert found, what
            for path in found:
                cut(path)
            with store.page() as served, Looked(browser, served, ["500"]) as looked:
                told = []
                for path in ["/", f"/timeline/{scopes[-1]}", f"/settings/{scopes[-1]}"]:
                    page = looked.go(path)
                    told += page.locator(".failure").all_text_contents()
                    looked.axe()
                    looked.fits()
                page = looked.go("/health")
                looked.axe()
                if page.locator("text=Check every file").count():
                    page.click("text=Check every file")
                    expect(page.locator("main")).to_contain_text("Last checked")
                    looked.axe()
                told += page.locator(".bad, .failure, .warn").all_text_contents()
                assert told, (name, what, "nobody says so")
    with Store() as store:
        fixture(store, "store-v1")
        cut(store.folder / "store/vault")
        assert "it is not a vault" in store.refusal()


def check_stores_of_earlier_versions_with_another_key(browser):
    for name in FIXTURES:
        with Store() as store:
            _, newest = fixture(store, name, key="another key, not the right one")
            told = store.refusal()
            assert "not under the given key" in told and newest not in told, told


def check_forgetting_by_clicks(browser):
    with Store() as store:
        household(store)
        with store.page() as served, Looked(browser, served) as looked:
            page = looked.go(f"/timeline{KITCHEN}")
            assert not page.locator("#pick button").is_visible()
            page.locator("#m3 .pick").check()
            page.locator("#m4 .pick").check()
            page.click("#pick button")
            expect(page.locator("ul.plan")).to_contain_text("2 messages")
            looked.axe()
            with page.expect_download() as download:
                page.click("text=Export everything")
            assert "squeeze of lemon" in Path(download.value.path()).read_text()
            page.click("text=Forget for ever")
            assert "/forgotten/" not in page.url, "the box must be ticked first"
            page.check("text=I have read this")
            page.click("text=Forget for ever")
            expect(page.locator("h1")).to_have_text("Gone")
            expect(page.locator("dl.facts")).to_contain_text("3–4")
            looked.axe()
            page = looked.go(f"/timeline{KITCHEN}?at=2")
            expect(page.locator("#timeline")).to_contain_text("2 messages forgotten")
            for select, text in (("button[value=day]", "2026-11-20"), ("button[value=person]", None), ("button[value=found]", "oats"),
                                 ("button[value=numbers]", "1-2")):
                page = looked.go(f"/forget{KITCHEN}")
                form = page.locator("form", has=page.locator(select))
                if text:
                    form.locator("input:not([type=hidden])").fill(text)
                page.click(select)
                expect(page.locator("ul.plan")).to_be_visible()
                answers = page.locator("input[name=answers]")
                if answers.count():
                    expect(answers).to_be_checked()
                    answers.uncheck()
                page.check("text=I have read this")
                page.click("text=Forget for ever")
                expect(page.locator("h1")).to_have_text("Gone")
            page = looked.go("/search?q=weather")
            page = looked.go("/search?q=lemon")
            page.get_by_role("button", name=re.compile("Forget these 1 message")).click()
            page.check("text=I have read this")
            page.click("text=Forget for ever")
            page = looked.go(f"/forget{KITCHEN}")
            page.click("button[value=whole]")
            page.check("text=I have read this")
            page.click("text=Forget for ever")
            expect(page.locator("main")).to_contain_text("folder is gone")
        assert "kitchen" not in store.run("scopes")
        assert "sound" in store.run("verify", "--all")


def check_settings_by_clicks(browser):
    with Store() as store:
        household(store)
        with store.page() as served, Looked(browser, served) as looked:
            page = looked.go("/settings/named/lights")
            page.fill("input[name=title]", "Lights & <b>switches</b>")
            page.fill("input[name=tags]", "house, energy")
            page.click("button[value=name]")
            expect(page.locator(".conversation .title")).to_have_text("Lights & <b>switches</b>")
            page.fill("input[name=most]", "100")
            page.click("button[value=limits]")
            expect(page.locator("ul.plan")).to_contain_text("740 messages")
            looked.axe()
            page.click("text=Change the limits")
            assert "/limits/" in page.url
            page.check("text=I have read this")
            page.click("text=Change the limits")
            page.wait_for_url("**/settings/**")
            expect(page.locator("form", has=page.locator("input[name=most]"))).to_contain_text("This conversation's own")
            page.fill("input[name=most]", "")
            page.click("button[value=limits]")
            looked.axe()
            page.check("text=show it again")
            page.click("text=Change the limits")
            page.wait_for_url("**/settings/**")
            page.check("text=what was said within a time")
            page.fill("input[name=ttl] >> nth=1", "3")
            page.select_option("select[name=unit] >> nth=1", "3600")
            page.click("button[value=window]")
            expect(page.locator("input[name=rolls][value=yes]")).to_be_checked()
            page.select_option("select[name=preset]", label="Calm Counselor")
            page.click("text=Give it this persona")
            expect(page.locator("textarea[name=system]")).to_have_value(re.compile("counselor", re.IGNORECASE))
            looked.axe()
            looked.fits()
            page.fill("textarea[name=personality]", "Brief and dry.")
            page.click("button[value=persona]")
            expect(page.locator("textarea[name=personality]")).to_have_value("Brief and dry.")
            assert "Brief and dry." in store.run("context", "show", "lights", "--json")
            page.click("text=Take it away")
            expect(page.locator("select[name=preset]")).to_be_visible()
        shown = store.run("--scope", "named/lights", "settings", "--json")
        assert '"windowSeconds":10800' in shown and '"maxMessages":null' in shown, shown


def check_talking_stopping_retrying(browser):
    with Store() as store, Model(pieces=("It is going to ", "rain ", "all ", "day."), stall_after=2) as model:
        store.say("named/kitchen", ("user", "Hello."), ("assistant", "Hello!"))
        with store.page(model=model) as served, Looked(browser, served) as looked:
            page = looked.go(f"/timeline{KITCHEN}")
            page.fill("#talk textarea", "What's the weather?")
            page.press("#talk textarea", "Enter")
            expect(page.locator("article.draft.assistant .words")).to_have_text("It is going to rain ")
            looked.axe()
            assert page.locator("article.draft.assistant .words").get_attribute("role") == "log"
            page.click("#stop")
            model.go_on.set()
            expect(page.locator(".said.assistant").last).to_contain_text("interrupted")
            expect(page.locator(".said.assistant .words").last).to_have_text(re.compile("^It is going to rain ?$"))
            assert page.locator("article.draft").count() == 0
            model.stall_after = None
            page.click("text=Retry")
            expect(page.locator(".said.assistant .words").last).to_have_text("It is going to rain all day.")
            expect(page.locator("#status")).to_have_text("The answer has ended.")
            before = len(store.said("named/kitchen"))
            page.check("text=off the record")
            page.fill("#talk textarea", "A secret.")
            page.click("button[value=say]")
            expect(page.locator("article.draft .mark").last).to_have_text("off the record")
            assert len(store.said("named/kitchen")) == before
            page = looked.go(f"/sees{KITCHEN}")
            assert page.locator("details.turn").count() == 3
            page.locator("details.turn summary").first.click()
            looked.axe()
            looked.fits()


def check_what_another_program_does_appears(browser):
    with Store() as store:
        store.say("named/kitchen", *[("user", f"words {number}") for number in range(60)])
        with store.page() as served, Looked(browser, served) as looked:
            page = looked.go(f"/timeline{KITCHEN}")
            page.evaluate("() => { window.same = true; }")
            store.say("named/kitchen", ("user", "said elsewhere"), ("assistant", "and answered"))
            expect(page.locator(".said").last).to_contain_text("and answered")
            assert page.evaluate("() => window.same"), "without loading the page again"
            store.run("--scope", "named/kitchen", "forget", "61", "--only", "--yes")
            expect(page.locator("#timeline")).not_to_contain_text("said elsewhere")
            expect(page.locator("#timeline")).to_contain_text("1 message forgotten")
            page.fill("#talk textarea", "half a sentence")
            page.locator("#m59 .pick").check()
            page.click("text=Older")
            expect(page.locator("#m1")).to_be_attached()
            store.run("--scope", "named/kitchen", "forget", "62", "3", "--yes")
            expect(page.locator("#timeline")).not_to_contain_text("and answered")
            expect(page.locator("#m3")).to_have_count(0)
            expect(page.locator("#m1")).to_be_attached()
            expect(page.locator("#m59 .pick")).to_be_checked()
            expect(page.locator("#talk textarea")).to_have_value("half a sentence")
            assert page.evaluate("() => window.same"), "without loading the page again"


def check_older_messages_come_above_what_is_read(browser):
    with Store() as store:
        household(store)
        with store.page() as served, Looked(browser, served) as looked:
            for width, height in ((1200, 860), (390, 780)):
                looked.page.set_viewport_size({"width": width, "height": height})
                page = looked.go("/timeline/named/lights")
                for part in (".conversation .title", ".conversation nav a[aria-current]", ".top .mark"):
                    expect(page.locator(part)).to_be_in_viewport()
                first = page.locator(".said").first.get_attribute("id")
                page.evaluate("() => scrollTo({ top: 0, behavior: 'instant' })")
                before = page.locator(f"#{first}").bounding_box()["y"]
                page.click("text=Older")
                expect(page.locator(".said").first).not_to_have_attribute("id", first)
                assert abs(page.locator(f"#{first}").bounding_box()["y"] - before) < 40, "it stays in its place"
                days = page.locator(".day").all_text_contents()
                assert len(days) == len(set(days)), days
                assert page.locator(".said").count() == 80
                looked.axe()


def check_snapshots_and_beginnings_by_clicks(browser):
    with Store() as store, Model() as model:
        store.say("named/kitchen", ("user", "Leek soup, please."), ("assistant", "With pleasure."))
        with store.page(model=model) as served, Looked(browser, served) as looked:
            page = looked.go(f"/snapshots{KITCHEN}")
            page.fill("input[name=description]", "the soup")
            page.click("text=Save a snapshot")
            expect(page.locator("ul.conversations")).to_contain_text("the soup")
            looked.axe()
            looked.fits()
            page.click("text=Clear the context")
            expect(page.locator("main")).to_contain_text("The context was cleared")
            page.click("button[value=restore]")
            expect(page.locator("#timeline")).to_contain_text("restored from a snapshot")
            page = looked.go("/")
            page.fill("input[name=name]", "Ideas")
            page.click("text=New conversation")
            page.fill("#talk textarea", "A first thought.")
            page.press("#talk textarea", "Enter")
            expect(page.locator(".said.assistant .words").last).to_have_text("It is fine.")
            expect(looked.go("/").locator("#conversations")).to_contain_text("Ideas")
        assert "named/Ideas" in store.run("scopes")


def check_finding_while_typing_and_the_keyboard_alone(browser):
    with Store() as store:
        household(store)
        with store.page() as served, Looked(browser, served) as looked:
            page = looked.go("/")
            page.locator("#find").press_sequentially("kítch")
            expect(page.locator("#conversations > li:visible")).to_have_count(1)
            page.locator("#find").fill("zzz")
            expect(page.locator("#none")).to_be_visible()
            page = looked.go(f"/timeline{KITCHEN}")
            page.keyboard.press("Tab")
            assert page.evaluate("() => document.activeElement.className") == "skip"
            page.keyboard.press("Enter")
            assert page.evaluate("() => document.activeElement.id") == "main"
            page.locator("#m5 a.when").focus()
            page.keyboard.press("Enter")
            expect(page.locator("#panel")).to_contain_text("Message 5")
            assert page.evaluate("() => document.activeElement.className").endswith("close")
            page.keyboard.press("Escape")
            expect(page.locator("#panel")).to_be_hidden()
            assert page.evaluate("() => document.activeElement.closest('article').id") == "m5"


def check_without_scripts(browser):
    with Store() as store, Model() as model:
        store.say("named/kitchen", ("user", "Leek soup, please."), ("assistant", "With pleasure."))
        with store.page(model=model) as served, Looked(browser, served, java_script_enabled=False) as looked:
            page = looked.go(f"/timeline{KITCHEN}")
            page.fill("#talk textarea", "And now?")
            page.click("button[value=say]")
            expect(page.locator(".said").last).to_contain_text("It is fine.")
            page.locator("#m1 a.when").click()
            expect(page.locator("h1")).to_have_text("Message 1")
            page = looked.go("/search")
            page.fill("input[name=q]", "leek")
            page.click("main button.primary")
            expect(page.locator(".hit")).to_have_count(1)
            page = looked.go(f"/timeline{KITCHEN}")
            page.locator("#m1 .pick").check()
            page.click("#pick button")
            page.check("text=I have read this")
            page.click("text=Forget for ever")
            expect(page.locator("h1")).to_have_text("Gone")
            page = looked.go("/health")
            page.click("text=Check every file")
            time.sleep(1)
            expect(looked.go("/health").locator(".verified")).to_contain_text("sound")


def check_health_of_a_damaged_store(browser):
    for what in ["*_user.json", "packs/*.pack"]:
        with Store() as store:
            household(store)
            store.say("named/kitchen", ("user", "And salt."))
            [damaged] = (store.folder / "store/conversations/kitchen").glob(what)
            damaged.write_text("damage")
            with store.page() as served, Looked(browser, served) as looked:
                page = looked.go("/health")
                page.click("text=Check every file")
                expect(page.locator("main")).to_contain_text("Last checked")
                expect(page.locator("main")).to_contain_text("not sound")
                expect(page.locator(".verified .advice", has_text="backup").first).to_be_visible()
                looked.axe()
                looked.fits()
                page = looked.go(f"/timeline{KITCHEN}")
                expect(page.locator(".failure")).to_contain_text("cannot be read")
                looked.axe()


def check_locks(browser):
    with Store() as store:
        household(store)
        with store.page(SOTTOVOCE__PAGE__LOCKAFTERSECONDS="3") as served, Looked(browser, served, ["401"]) as looked:
            page = looked.go(f"/timeline{KITCHEN}")
            expect(page.locator("h1")).to_have_text("Locked", timeout=20_000)
            assert "lemon" not in page.content()
            looked.axe()
            page.goto(served.link)
            expect(page.locator("main")).to_contain_text("used already")
            looked.axe()
            page.goto(served.next_link())
            expect(page.locator("h1")).to_have_text("Conversations")


def check_passphrases(browser):
    with Store() as store:
        del store.environment["SOTTOVOCE__CONTEXT__KEYFILE"]
        with_key = Store(SOTTOVOCE__CONTEXT__PASSPHRASE="correct horse battery staple")
        with with_key as keyed:
            del keyed.environment["SOTTOVOCE__CONTEXT__KEYFILE"]
            keyed.environment.update({key: store.environment[key] for key in ("HOME", "SOTTOVOCE__CONTEXT__STORAGEROOT")})
            keyed.say("named/kitchen", ("user", "canary words"))
        with store.page() as served, Looked(browser, served, ["401"]) as looked:
            page = looked.go(f"/timeline{KITCHEN}")
            looked.axe()
            page.fill("input[name=passphrase]", "wrong")
            page.click("text=Unlock")
            expect(page.locator(".failure")).to_contain_text("does not open")
            looked.axe()
            page.fill("input[name=passphrase]", "correct horse battery staple")
            page.click("text=Unlock")
            expect(page.locator("#conversations")).to_contain_text("kitchen")
            expect(looked.go(f"/timeline{KITCHEN}").locator(".said")).to_contain_text("canary words")
            page.click("text=Lock")
            expect(page.locator("h1")).to_have_text("Locked")


def check_another_key(browser):
    with Store() as store:
        household(store)
        (store.folder / "config/key").unlink()
        with Store() as other:
            other.run("init")
            (store.folder / "config/key").write_bytes((other.folder / "config/key").read_bytes())
        (store.folder / "config/key").chmod(0o600)
        assert "not under the given key" in store.refusal()


def check_pictures(browser):
    target = Path(os.environ["PICTURES"])
    target.mkdir(parents=True, exist_ok=True)
    shoot(browser, target)
    return f"in {target}"


def main(names):
    checks = [(name, check) for name, check in globals().items() if name.startswith("check_")]
    checks = [(name, check) for name, check in checks if not names or any(part in name for part in names)]
    failed = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for name, check in checks:
            begun = time.monotonic()
            try:
                told = check(browser) or ""
                print(f"ok    {name} ({time.monotonic() - begun:.1f}s) {told}", flush=True)
            except Exception as error:
                failed += 1
                print(f"FAIL  {name} ({time.monotonic() - begun:.1f}s)\n{type(error).__name__}: {error}", flush=True)
        browser.close()
    sys.exit(1 if failed or not checks else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
