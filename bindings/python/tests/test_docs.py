"""The examples of the documentation run as they stand."""

import doctest
import inspect
import json
import re
import subprocess
import sys

import pytest

import sottovoce
from conftest import ROOT

PAGES = ["docs/python.md", "bindings/python/README.md"]


def documented():
    yield "sottovoce", sottovoce
    for name in sottovoce.__all__:
        thing = getattr(sottovoce, name)
        if not inspect.isclass(thing):
            continue
        yield name, thing
        for member, value in vars(thing).items():
            if not member.startswith("_"):
                yield f"{name}.{member}", value


THINGS = dict(documented())


@pytest.mark.parametrize("name", [name for name in THINGS if ">>>" in (THINGS[name].__doc__ or "")])
def test_an_example(name, store, conversation, model, tmp_path):
    names = {**vars(sottovoce), "conversation": conversation, "json": json}
    names["store"] = store
    names.update(folder=tmp_path / "example", model=model)
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(THINGS[name]), names, name, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    out = []
    runner.run(test, out=out.append)
    assert runner.failures == 0, "".join(out)


@pytest.mark.parametrize("name", list(THINGS))
def test_everything_public_is_documented(name):
    assert THINGS[name].__doc__


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page(page, model, home, monkeypatch, tmp_path):
    monkeypatch.setenv("SOTTOVOCE__LANGUAGEMODEL__BASEURL", model.url)
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S)
    assert blocks
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
