"""Having the client's own model answer."""

import anyio
import mcp_types as T

from model import Model
from sottovoce import WAYS, Store, client, done, make_context, refused

PREFERRED = {"SOTTOVOCE__MCP__PREFERSAMPLING": "always"}


class _Sampling:
    """A client's model."""

    def __init__(self, says="From the client's model"):
        self.says, self.asked = says, []

    async def __call__(self, _, params):
        self.asked.append(params)
        if self.says is None:
            return T.ErrorData(code=-1, message="the user said no")
        return T.CreateMessageResult(role="assistant", content=T.TextContent(text=self.says), model="own", stop_reason="endTurn")


async def the_clients_model_is_told_the_personality_first_and_the_figures_of_the_context():
    for era, transport in WAYS:
        sampling = _Sampling()
        with Store(**PREFERRED) as store:
            async with client(store, era, transport, sampling_callback=sampling) as c:
                context = await make_context(c)
                answer = await done(c, "context-chat", contextId=context, message="Good morning")
                assert answer["response"] == sampling.says
                await done(c, "context-chat", contextId=context, message="Still there?")
            first, second = sampling.asked
            assert first.system_prompt.startswith("You are Mira.") and "Warm and brief" in first.system_prompt
            assert (round(first.temperature, 3), first.max_tokens) == (0.25, 77)
            assert "Good morning" in first.messages[-1].content.text and first.messages[-1].role == "user"
            assert [message.role for message in second.messages] == ["user", "assistant", "user"]
            said = [("user", "Good morning"), ("assistant", sampling.says)]
            assert store.messages(context) == [*said, ("user", "Still there?"), ("assistant", sampling.says)]
            store.is_sound()


async def a_client_that_refuses_leaves_what_was_said():
    for era, transport in WAYS:
        with Store(**PREFERRED) as store:
            async with client(store, era, transport, sampling_callback=_Sampling(says=None)) as c:
                context = await make_context(c)
                said = {"contextId": context, "message": "Good morning"}
                if era == "legacy":
                    reason = await refused(c, "context-chat", **said)
                    assert "refused to ask its model: the user said no" in reason, reason
                else:
                    # Who is to ask and does not, does not call again: the SDK itself says why.
                    try:
                        await c.call_tool("context-chat", said)
                    except Exception as error:
                        assert "the user said no" in str(error), error
                    else:
                        raise AssertionError("nobody refused")
            assert store.messages(context) == [("user", "Good morning")]


async def a_client_without_a_model_is_answered_by_the_servers():
    for era, transport in WAYS:
        with Model() as model, Store(**PREFERRED, **model.environment()) as store:
            async with client(store, era, transport) as c:
                context = await make_context(c)
                assert (await done(c, "context-chat", contextId=context, message="Hello"))["response"] == "It is fine."


async def a_client_with_a_model_is_not_asked_unless_that_is_preferred():
    for era, transport in WAYS:
        sampling = _Sampling()
        with Model() as model, Store(**model.environment()) as store:
            async with client(store, era, transport, sampling_callback=sampling) as c:
                context = await make_context(c)
                assert (await done(c, "context-chat", contextId=context, message="Hello"))["response"] == "It is fine."
        assert not sampling.asked


async def an_answer_of_nothing_is_an_error():
    for era, transport in WAYS:
        with Store(**PREFERRED) as store:
            async with client(store, era, transport, sampling_callback=_Sampling(says=" ")) as c:
                context = await make_context(c)
                assert "gave no answer" in await refused(c, "context-chat", contextId=context, message="Hello")


async def a_round_that_was_changed_is_not_gone_on_with():
    for transport in ("stdio", "http"):
        sampling = _Sampling()
        with Store(**PREFERRED) as store:
            async with client(store, "auto", transport, sampling_callback=sampling) as c:
                context = await make_context(c)
                said = {"contextId": context, "message": "Good morning"}
                asked = await c.session.call_tool("context-chat", said, allow_input_required=True)
                assert isinstance(asked, T.InputRequiredResult), asked
                key = next(iter(asked.input_requests))
                answer = T.CreateMessageResult(role="assistant", content=T.TextContent(text="Fine"), model="own")
                state = asked.request_state
                for given, state_given in ((said, state[:-3] + "AAA"), ({**said, "message": "Good night"}, state), (said, None)):
                    try:
                        await c.session.call_tool("context-chat", given, input_responses={key: answer},
                                                  request_state=state_given, allow_input_required=True)
                    except Exception as error:
                        assert "requestState" in str(error), error
                    else:
                        raise AssertionError((given, state_given))
                for _ in range(2):  # Whoever does not know whether it came through may send it again.
                    result = await c.session.call_tool("context-chat", said, input_responses={key: answer},
                                                       request_state=state, allow_input_required=True)
                    assert result.structured_content["response"] == "Fine"
            assert store.messages(context) == [("user", "Good morning"), ("assistant", "Fine")]


async def the_clients_model_answers_where_no_server_does_and_what_was_said_is_kept_once():
    for era, transport in WAYS:
        refuses, answers = _Sampling(says=None), _Sampling()
        with Store() as store:
            async with client(store, era, transport, sampling_callback=refuses) as c:
                context = await make_context(c)
                try:
                    await c.call_tool("context-chat", {"contextId": context, "message": "Good morning"})
                except Exception:
                    pass  # The eras differ in how a refusal is told.
            async with client(store, era, transport, sampling_callback=answers) as c:
                answer = await done(c, "context-chat", contextId=context, message="Good morning")
                assert answer["response"] == answers.says
            assert refuses.asked and answers.asked
            assert store.messages(context) == [("user", "Good morning"), ("assistant", answers.says)]


async def a_cancelled_question_leaves_what_was_said():
    for transport in ("stdio", "http"):
        asked = anyio.Event()

        async def sampling(_, params):
            asked.set()
            await anyio.sleep(60)

        with Store(**PREFERRED) as store:
            async with client(store, "legacy", transport, sampling_callback=sampling) as c:
                context = await make_context(c)
                async with anyio.create_task_group() as group:
                    group.start_soon(c.call_tool, "context-chat", {"contextId": context, "message": "Good morning"})
                    with anyio.fail_after(10):
                        await asked.wait()
                    group.cancel_scope.cancel()
                assert (await done(c, "context-manage", action="get", contextId=context))["context"]["messageCount"] == 1
