"""What Home Assistant's `hassfest` and HACS's validation ask of the custom integration, as far as it concerns this one. Needs nothing
but Python: `python rules.py`."""

import json
import re
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
REPOSITORY = ROOT / "integrations/home_assistant"
FOLDER = REPOSITORY / "custom_components/sottovoce"
LANGUAGES = {"de", "en", "es", "fr", "it"}
# The keys of the manifest of an integration that is not part of Home Assistant.
MANIFEST = {"domain", "name", "after_dependencies", "codeowners", "config_flow", "dependencies", "documentation", "integration_type",
            "iot_class", "issue_tracker", "loggers", "quality_scale", "requirements", "single_config_entry", "version"}
IOT_CLASSES = {"assumed_state", "calculated", "cloud_polling", "cloud_push", "local_polling", "local_push"}
HACS = {"name", "content_in_root", "country", "filename", "hacs", "hide_default_branch", "homeassistant", "persistent_directory",
        "render_readme", "zip_release"}
# Texts may hold no address, for translators would have to keep it; an example in words does as well.
ADDRESS = re.compile(r"(?:\w+://|www\.)[a-z0-9]+(?:[-.][a-z0-9]+)*\.[a-z]{2,5}", re.I)


def read(name):
    return json.loads((FOLDER / name).read_text())


def texts(value, at=""):
    """The texts of a file by their places."""
    return {at: value} if isinstance(value, str) else {
        place: text for key in value for place, text in texts(value[key], f"{at}/{key}").items()}


def placeholders(text):
    return sorted(re.findall(r"{(\w+)}", text))


def code():
    return {file.name: file.read_text() for file in sorted(FOLDER.glob("*.py"))}


def the_manifest_is_complete_and_in_order():
    manifest = read("manifest.json")
    keys = list(manifest)
    assert keys[:2] == ["domain", "name"] and keys[2:] == sorted(keys[2:]), keys
    assert set(keys) <= MANIFEST, set(keys) - MANIFEST
    assert manifest["domain"] == FOLDER.name and isinstance(manifest["codeowners"], list), manifest
    for address in ("documentation", "issue_tracker"):
        assert re.match(r"https://[\w.-]+\.\w+/", manifest[address]), manifest[address]
    assert manifest["iot_class"] in IOT_CLASSES and manifest["integration_type"] == "service", manifest
    assert all("==" in wanted for wanted in manifest["requirements"]), manifest["requirements"]
    assert manifest["config_flow"] is (FOLDER / "config_flow.py").exists()
    version = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.M)[1]
    assert manifest["version"] == version, (manifest["version"], version)
    assert "CONFIG_SCHEMA = " in code()["__init__.py"], "there is async_setup, and no word on the file of settings"


def hacs_finds_one_integration():
    hacs = json.loads((REPOSITORY / "hacs.json").read_text())
    assert set(hacs) <= HACS and hacs["name"], hacs
    pinned = re.search(r"^homeassistant==(\S+)$", (Path(__file__).parent / "requirements.txt").read_text(), re.M)[1]
    assert hacs["homeassistant"] == pinned, (hacs, pinned)
    assert (REPOSITORY / "README.md").exists()
    found = [path.name for path in (REPOSITORY / "custom_components").iterdir() if path.is_dir()]
    assert found == [FOLDER.name], found


def every_language_says_the_same():
    strings = read("strings.json")
    assert strings == read("translations/en.json")
    english = texts(strings)
    found = {file.stem for file in (FOLDER / "translations").glob("*.json")}
    assert found == LANGUAGES, found
    for language in found:
        other = texts(read(f"translations/{language}.json"))
        assert other.keys() == english.keys(), (language, other.keys() ^ english.keys())
        for place, text in other.items():
            assert placeholders(text) == placeholders(english[place]), (language, place)
            assert text and text == text.strip() and not re.search(r"<[a-z/]|'{\w+}'", text) and not ADDRESS.search(text), (language, text)
            # A sentence that is the same in two languages was left untranslated.
            assert language == "en" or " " not in text or text != english[place], (language, text)


def every_error_and_action_has_its_text():
    strings, python = read("strings.json"), code()
    flow = python["config_flow.py"]
    assert set(re.findall(r'Refused\("(\w+)"|errors\["base"\][^=]*= "(\w+)"', flow)) == {
        (error, "") if f'Refused("{error}"' in flow else ("", error) for error in strings["config"]["error"]}
    aborted = set(re.findall(r'async_abort\(reason="(\w+)"', flow))
    # Home Assistant itself aborts with this one.
    assert aborted | {"already_configured"} == set(strings["config"]["abort"])
    assert set(re.findall(r"async_step_(\w+)\(\s*self, user", flow)) == {*strings["config"]["step"], *strings["options"]["step"]}
    for step in (*strings["config"]["step"].values(), *strings["options"]["step"].values()):
        assert step["data_description"].keys() <= step["data"].keys(), step
    raised = set(re.findall(r'translation_key="(\w+)"\)|_excuse\(user_input, chat_log, "(\w+)"\)', "".join(python.values())))
    assert {first or second for first, second in raised} == set(strings["exceptions"]), raised
    lines = (FOLDER / "services.yaml").read_text().splitlines()
    actions, action = {}, None
    for line in lines:
        if found := re.match(r"(\w+):$", line):
            action = actions.setdefault(found[1], set())
        elif found := re.match(r"    (\w+):$", line):
            action.add(found[1])
    assert actions == {name: set(told["fields"]) for name, told in strings["services"].items()}, actions
    assert set(read("icons.json")["services"]) == set(actions)


def pictures_have_the_sizes_that_home_assistant_shows():
    sizes = {}
    for file in (FOLDER / "brand").glob("*.png"):
        head = file.read_bytes()[:24]
        assert head[:8] == b"\x89PNG\r\n\x1a\n" and file.stat().st_size < 50_000, file
        sizes[file.name] = struct.unpack(">II", head[16:])
    assert sizes["icon.png"] == (256, 256) and sizes["icon@2x.png"] == (512, 512), sizes
    for logo in ("logo.png", "dark_logo.png"):
        assert 128 <= min(sizes[logo]) <= 256, sizes


RULES = (the_manifest_is_complete_and_in_order, hacs_finds_one_integration, every_language_says_the_same,
         every_error_and_action_has_its_text, pictures_have_the_sizes_that_home_assistant_shows)

if __name__ == "__main__":
    for rule in RULES:
        rule()
        print(f"ok      {rule.__name__.replace('_', ' ')}", file=sys.stderr)
