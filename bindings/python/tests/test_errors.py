import io
import logging
import pickle
import traceback

import pytest

import sottovoce
from sottovoce import ClosedError, ConfigError, InvalidError, NoKeyError, SottovoceError, WrongKeyError

SECRET = "Velvet pangolins sing."


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_wrong_key_is_told_and_neither_hides_nor_deletes_anything(options, tmp_path):
    with sottovoce.Store(**options) as store:
        for n in range(5):
            store.conversation("dm/ann").append("user", f"{SECRET} {n}")
    before = files(options["storage_root"])
    other = tmp_path / "other"
    other.write_text("ab" * 32 + "\n")
    other.chmod(0o600)
    for key in [{"key_file": other}, {"passphrase": "not the right one at all"}, {"encryption_key": "x" * 32}]:
        with pytest.raises(WrongKeyError) as raised:
            sottovoce.Store(storage_root=options["storage_root"], **key)
        assert "nothing was changed" in raised.value.help
    assert files(options["storage_root"]) == before
    with sottovoce.Store(**options) as store:
        assert len(store.conversation("dm/ann").tail()) == 5


def test_a_traceback_names_an_exception_as_programs_import_it():
    for name in sottovoce.__all__:
        thing = getattr(sottovoce, name)
        if isinstance(thing, type) and issubclass(thing, SottovoceError):
            line = traceback.format_exception_only(thing("x"))[0]
            assert line.startswith(f"sottovoce.{name}: x"), line


def test_an_utterance_without_words_is_refused_and_not_stored(options):
    with sottovoce.Store(**options) as store:
        conversation = store.conversation()
        for blank in ["", " \n"]:
            with pytest.raises(InvalidError, match="no words"):
                conversation.hear(blank)
        assert conversation.tail() == []


def test_a_lost_key_file_is_not_replaced(options):
    with sottovoce.Store(**options) as store:
        store.conversation().append("user", "x")
    options["key_file"].unlink()
    with pytest.raises(NoKeyError):
        sottovoce.Store(**options)
    assert not options["key_file"].exists()


def test_no_key_is_made_unasked(options):
    with pytest.raises(NoKeyError, match=str(options["key_file"])):
        sottovoce.Store(**options, create=False)
    assert not options["key_file"].exists() and not options["storage_root"].exists()


def test_whoever_makes_a_key_hears_of_it(options, caplog):
    sottovoce.Store(**options).close()
    assert [(r.name, r.levelno) for r in caplog.records] == [("sottovoce", logging.WARNING)]
    assert str(options["key_file"]) in caplog.text and "back it up" in caplog.text
    caplog.clear()
    sottovoce.Store(**options).close()
    assert caplog.records == []


@pytest.mark.parametrize("scope", ["", "kitchen", "dm/", "dm/a/b", "named/a b", "catalog"])
def test_a_wrong_scope_is_refused(store, scope):
    with pytest.raises(InvalidError) as raised:
        store.conversation(scope)
    assert isinstance(raised.value, ValueError)


def test_a_closed_store_is_told(store, conversation):
    store.close()
    for call in [conversation.tail, store.scopes, store.conversation, lambda: conversation.ask("x")]:
        with pytest.raises(ClosedError):
            call()


def test_no_words_and_no_keys_in_repr_errors_and_logs(options, model, caplog, capfd):
    secret = "a long secret that only this house knows"
    with sottovoce.Store(storage_root=options["storage_root"], encryption_key=secret, base_url=model.url) as store:
        conversation = store.conversation("dm/ann", thread="trip")
        answer = conversation.ask(SECRET, speaker="Zebedee")
        answer.read()
        prompt = conversation.hear(SECRET)
        shown = [store, conversation, answer, prompt, prompt.receipt, prompt.receipt.entries, answer.report]
        shown += [conversation.tail(), conversation.recall("pangolins"), conversation.get(1)]
        texts = [repr(shown), str(shown), caplog.text]
        for call in [
            lambda: conversation.append(SECRET, SECRET),
            lambda: conversation.append("user", SECRET, metadata={"x": "\0" * 2_000_000}),
            lambda: conversation.append("user", SECRET * 100_000),
            lambda: conversation.search(f"before:{SECRET.split()[0]} {SECRET}"),
            lambda: conversation.append("assistant", SECRET, tool_calls=[{"id": SECRET}]),
            lambda: store.conversation(SECRET),
        ]:
            with pytest.raises(SottovoceError) as raised:
                call()
            error = raised.value
            out = io.StringIO()
            # The source lines of this test hold no words of a message.
            traceback.print_exception(error, file=out)
            texts += [str(error), repr(error), error.message, error.help, out.getvalue()]
    captured = capfd.readouterr()
    for text in [*texts, captured.out, captured.err]:
        assert "pangolin" not in text.lower().replace("recall(\"pangolins\")", "") and "Zebedee" not in text and secret not in text


def test_errors_say_what_to_do_and_travel_between_processes():
    error = pickle.loads(pickle.dumps(WrongKeyError("it is closed", "open it")))
    assert (error.message, error.help, str(error)) == ("it is closed", "open it", "it is closed; open it")
    kinds = [kind for kind in vars(sottovoce).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) == 14 and all(issubclass(kind, SottovoceError) and kind.__doc__ for kind in kinds)


def test_a_setting_that_cannot_be_used_names_its_argument(options):
    with pytest.raises(ConfigError) as raised:
        sottovoce.Store(**options, last_n="many")
    assert "argument last_n" in raised.value.message and "Context.LastN" in raised.value.message
    with pytest.raises(TypeError, match="no keyword argument 'lastn'"):
        sottovoce.Store(**options, lastn=3)
    with pytest.raises(ConfigError):
        sottovoce.Store(**options, base_url="nonsense")
