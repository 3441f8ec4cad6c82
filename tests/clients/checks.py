"""Finds the checks: the coroutines of files named check_*.py."""

import importlib
import inspect


def checks(folder, names):
    """The name of the file and the function of each check, of the files of these names or, without any, of all in the folder."""
    for name in names or sorted(path.stem.removeprefix("check_") for path in folder.glob("check_*.py")):
        module = importlib.import_module(f"check_{name}")
        for function in list(vars(module).values()):
            is_own = inspect.iscoroutinefunction(function) and function.__module__ == module.__name__
            if is_own and not function.__name__.startswith("_"):
                yield name, function
