"""The actions `search` and `forget`, for administrators."""

from __future__ import annotations

import probatio

from homeassistant.config_entries import ConfigEntryState
from homeassistant.const import ATTR_CONFIG_ENTRY_ID
from homeassistant.core import HomeAssistant, ServiceCall, ServiceResponse, SupportsResponse
from homeassistant.exceptions import HomeAssistantError, ServiceValidationError
from homeassistant.helpers import config_validation as cv
from homeassistant.helpers.service import async_register_admin_service

from .const import DOMAIN

ATTR_SCOPE, ATTR_WORDS, ATTR_NUMBERS, ATTR_ALL = "scope", "words", "numbers", "all"
# How many messages a search returns.
FOUND = 20

PLACE = {
    probatio.Required(ATTR_CONFIG_ENTRY_ID): cv.string,
    probatio.Required(ATTR_SCOPE): cv.string,
}
SEARCH = probatio.Schema({**PLACE, probatio.Required(ATTR_WORDS): cv.string})
FORGET = probatio.Schema(
    {
        **PLACE,
        probatio.Exclusive(ATTR_NUMBERS, "what"): probatio.All(cv.ensure_list, [cv.positive_int]),
        probatio.Exclusive(ATTR_ALL, "what"): True,
    }
)


def register_actions(hass: HomeAssistant) -> None:
    """Registers both actions."""

    async def conversation(call: ServiceCall):
        entry = hass.config_entries.async_get_entry(call.data[ATTR_CONFIG_ENTRY_ID])
        if entry is None or entry.domain != DOMAIN or entry.state is not ConfigEntryState.LOADED:
            raise ServiceValidationError(translation_domain=DOMAIN, translation_key="no_entry")
        return await entry.runtime_data.conversation_async(call.data[ATTR_SCOPE])

    async def search(call: ServiceCall) -> ServiceResponse:
        from sottovoce import SottovoceError  # noqa: PLC0415

        try:
            found = await (await conversation(call)).search_async(call.data[ATTR_WORDS], FOUND)
        except SottovoceError as error:
            raise HomeAssistantError(str(error)) from error
        messages = [
            {"number": message.seq, "role": message.role, "time": message.time.isoformat(), "text": message.content}
            for message in found
        ]
        return {"messages": messages}

    async def forget(call: ServiceCall) -> ServiceResponse:
        from sottovoce import SottovoceError  # noqa: PLC0415

        numbers = call.data.get(ATTR_NUMBERS)
        if not numbers and not call.data.get(ATTR_ALL):
            raise ServiceValidationError(translation_domain=DOMAIN, translation_key="forget_what")
        try:
            memory = await conversation(call)
            gone = await (memory.forget_async(*numbers) if numbers else memory.forget_all_async())
        except SottovoceError as error:
            raise HomeAssistantError(str(error)) from error
        return {"numbers": gone}

    register = async_register_admin_service
    register(hass, DOMAIN, "search", search, SEARCH, SupportsResponse.ONLY)
    register(hass, DOMAIN, "forget", forget, FORGET, SupportsResponse.OPTIONAL)
