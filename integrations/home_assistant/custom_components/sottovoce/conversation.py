"""The agent: each utterance is stored before the model sees it, and answered with what was said before."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator
import json
import logging
import re
from typing import TYPE_CHECKING, Any, Literal

import httpx2
import ollama
import probatio

from homeassistant.components import conversation
from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_PROMPT, CONF_URL, MATCH_ALL
from homeassistant.core import HomeAssistant
from homeassistant.helpers import device_registry as dr, entity_registry as er, intent, llm
from homeassistant.helpers.entity_platform import AddConfigEntryEntitiesCallback
from homeassistant.helpers.json import json_dumps
from homeassistant.helpers.translation import async_get_translations

from . import SottovoceConfigEntry, model_client
from .const import CONF_SCOPE, DOMAIN, NUM_CTX, SCOPE_AREA, SCOPE_USER

if TYPE_CHECKING:
    from sottovoce import Conversation

_LOGGER = logging.getLogger(__name__)

# How often a model may call functions for one answer.
MOST_CALLS = 10
# A line of Home Assistant's instructions, which changes every turn. Each utterance carries its own time.
TIME = re.compile(r"^Current time is .*\n?", re.MULTILINE)


async def async_setup_entry(
    hass: HomeAssistant, entry: SottovoceConfigEntry, async_add_entities: AddConfigEntryEntitiesCallback
) -> None:
    """Adds the agent."""
    async_add_entities([SottovoceAgent(entry)])


class SottovoceAgent(conversation.ConversationEntity):
    """A conversation agent with a memory."""

    _attr_has_entity_name = True
    _attr_name = None
    _attr_supports_streaming = True

    def __init__(self, entry: SottovoceConfigEntry) -> None:
        self._entry = entry
        self._store = entry.runtime_data
        self._client = model_client(entry.data[CONF_URL])
        # An answer belongs to what was heard last, so turns of one conversation wait for each other.
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._attr_unique_id = entry.entry_id
        self._attr_device_info = dr.DeviceInfo(
            identifiers={(DOMAIN, entry.entry_id)},
            name=entry.title,
            model=entry.options[CONF_MODEL],
            entry_type=dr.DeviceEntryType.SERVICE,
        )
        if entry.options.get(CONF_LLM_HASS_API):
            self._attr_supported_features = conversation.ConversationEntityFeature.CONTROL

    @property
    def supported_languages(self) -> list[str] | Literal["*"]:
        """Those of the model, which nobody can tell."""
        return MATCH_ALL

    async def _async_handle_message(
        self, user_input: conversation.ConversationInput, chat_log: conversation.ChatLog
    ) -> conversation.ConversationResult:
        from sottovoce import SottovoceError  # noqa: PLC0415 - it may be missing, which the setup reports

        options = self._entry.options
        try:
            await chat_log.async_provide_llm_data(
                user_input.as_llm_context(DOMAIN),
                options.get(CONF_LLM_HASS_API),
                options.get(CONF_PROMPT),
                user_input.extra_system_prompt,
            )
        except conversation.ConverseError as error:
            return error.as_conversation_result()
        scope = self._scope(user_input)
        metadata = {"lang": user_input.language}
        if user_input.device_id:
            metadata["device"] = user_input.device_id
        try:
            async with self._turns[scope]:
                memory = await self._store.conversation_async(scope)
                prompt = await memory.hear_async(user_input.text.strip(), metadata=metadata)
                await self._answer(memory, chat_log, list(prompt.messages))
        except SottovoceError as error:
            _LOGGER.error("What was said cannot be stored: %s", error)
            return await self._excuse(user_input, chat_log, "not_stored")
        except (ollama.RequestError, ollama.ResponseError, httpx2.HTTPError, ConnectionError) as error:
            # The server's own words may quote what was said.
            status = getattr(error, "status_code", None)
            _LOGGER.error("The model gave no whole answer: %s, status %s", type(error).__name__, status)
            return await self._excuse(user_input, chat_log, "no_answer")
        return conversation.async_get_result_from_chat_log(user_input, chat_log)

    async def _excuse(
        self, user_input: conversation.ConversationInput, chat_log: conversation.ChatLog, why: str
    ) -> conversation.ConversationResult:
        """Says why there is no answer, in the language of the turn."""
        language = user_input.language.partition("-")[0]
        texts = await async_get_translations(self.hass, language, "exceptions", [DOMAIN])
        response = intent.IntentResponse(language=user_input.language)
        words = texts[f"component.{DOMAIN}.exceptions.{why}.message"]
        response.async_set_error(intent.IntentResponseErrorCode.UNKNOWN, words)
        return conversation.ConversationResult(response=response, conversation_id=chat_log.conversation_id)

    def _scope(self, user_input: conversation.ConversationInput) -> str:
        """The conversation that this utterance belongs to. What belongs to no area or user is in the default one."""
        kind = self._entry.options[CONF_SCOPE]
        if kind == SCOPE_USER and user_input.context.user_id:
            return f"dm/{user_input.context.user_id}"
        if kind == SCOPE_AREA and (area := self._area(user_input)):
            return f"named/{area}"
        return "default"

    def _area(self, user_input: conversation.ConversationInput) -> str | None:
        """The id of the area where this was said."""
        satellite = er.async_get(self.hass).async_get(user_input.satellite_id or "")
        if satellite and satellite.area_id:
            return satellite.area_id
        of_satellite = satellite.device_id if satellite else None
        device = dr.async_get(self.hass).async_get(user_input.device_id or of_satellite or "")
        return device.area_id if device else None

    async def _answer(
        self, memory: Conversation, chat_log: conversation.ChatLog, messages: list[dict[str, Any]]
    ) -> None:
        """Asks the model, has Home Assistant do what it calls for, and stores the answer, or what came of it."""
        api = chat_log.llm_api
        tools = [_tool(tool, api) for tool in api.tools] if api else None
        instructions = TIME.sub("", chat_log.content[0].content)
        if messages[0]["role"] != "system":
            messages.insert(0, {"role": "system", "content": ""})
        messages[0] = {**messages[0], "content": f"{instructions}\n\n{messages[0]['content']}".strip()}
        said: list[str] = []
        is_whole = False
        try:
            for _ in range(MOST_CALLS):
                said.clear()
                stream = await self._client.chat(
                    model=self._entry.options[CONF_MODEL],
                    messages=messages,
                    tools=tools,
                    stream=True,
                    think=False,
                    keep_alive=-1,
                    options={"num_ctx": NUM_CTX},
                )
                deltas = chat_log.async_add_delta_content_stream(self.entity_id, _deltas(stream, said))
                contents = [content async for content in deltas]
                messages.extend(_message(content) for content in contents)
                if not chat_log.unresponded_tool_results:
                    is_whole = True
                    break
                await _record(memory, contents)
        finally:
            if answer := "".join(said):
                # If the turn was cancelled, what was spoken is stored all the same.
                await asyncio.shield(memory.keep_async(answer, interrupted=not is_whole))


async def _deltas(
    stream: AsyncIterator[ollama.ChatResponse], said: list[str]
) -> AsyncGenerator[conversation.AssistantContentDeltaDict]:
    """Passes the pieces of an answer on, and notes its words."""
    is_first = True
    async for piece in stream:
        delta: conversation.AssistantContentDeltaDict = {}
        if is_first:
            delta["role"], is_first = "assistant", False
        if calls := piece.message.tool_calls:
            delta["tool_calls"] = [
                llm.ToolInput(tool_name=call.function.name, tool_args=_arguments(call.function.arguments))
                for call in calls
            ]
        if piece.message.content:
            delta["content"] = piece.message.content
            said.append(piece.message.content)
        if delta:
            yield delta


def _arguments(arguments: Any) -> dict[str, Any]:
    """The arguments of a call. Small models fill in what they need not."""
    return {name: value for name, value in arguments.items() if value not in (None, "")}


def _tool(tool: llm.Tool, api: llm.APIInstance) -> dict[str, Any]:
    """A function of Home Assistant as Ollama takes it."""
    parameters = probatio.to_openapi(
        tool.parameters, custom_serializer=api.custom_serializer, openapi_version="3.1.0"
    )
    function = {"name": tool.name, "description": tool.description or "", "parameters": parameters}
    return {"type": "function", "function": function}


def _message(content: conversation.Content) -> dict[str, Any]:
    """What was added to the chat log as Ollama takes it."""
    if isinstance(content, conversation.ToolResultContent):
        return {"role": "tool", "tool_name": content.tool_name, "content": _result(content)}
    calls = [{"function": {"name": call.tool_name, "arguments": call.tool_args}} for call in content.tool_calls or ()]
    return {"role": "assistant", "content": content.content or "", **({"tool_calls": calls} if calls else {})}


def _result(content: conversation.ToolResultContent) -> str:
    return json_dumps({"data": content.result.data, "error": content.result.error})


async def _record(memory: Conversation, contents: list[conversation.Content]) -> None:
    """Stores the calls of functions and their results."""
    for content in contents:
        if isinstance(content, conversation.ToolResultContent):
            await memory.append_async(
                "tool", _result(content), tool_call_id=content.tool_call_id, metadata={"tool": content.tool_name}
            )
            continue
        calls = [
            {"id": call.id, "name": call.tool_name, "arguments": json.loads(json_dumps(call.tool_args))}
            for call in content.tool_calls or ()
        ]
        await memory.append_async("assistant", content.content or "", tool_calls=calls)
