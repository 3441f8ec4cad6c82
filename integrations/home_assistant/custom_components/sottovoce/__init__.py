"""A conversation agent with an encrypted memory on this machine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import ollama

from homeassistant.config_entries import ConfigEntry
from homeassistant.const import CONF_MODEL, CONF_URL, Platform
from homeassistant.core import HomeAssistant
from homeassistant.exceptions import ConfigEntryNotReady
from homeassistant.helpers import config_validation as cv
from homeassistant.helpers.typing import ConfigType
from homeassistant.util.ssl import get_default_context

from .actions import register_actions
from .const import CONF_FOLDER, CONF_KEY_FILE, DOMAIN, NUM_CTX

if TYPE_CHECKING:
    from sottovoce import Store

CONFIG_SCHEMA = cv.config_entry_only_config_schema(DOMAIN)
PLATFORMS = [Platform.CONVERSATION]

type SottovoceConfigEntry = ConfigEntry[Store]


def open_store(data: dict[str, str], model: str | None = None) -> Store:
    """Opens the store, and makes its key on first use. Reads and writes files."""
    from sottovoce import Store  # noqa: PLC0415 - the package is installed by hand, and may be missing

    return Store(
        storage_root=data[CONF_FOLDER],
        key_file=data[CONF_KEY_FILE],
        base_url=data[CONF_URL],
        model=model,
        num_ctx=NUM_CTX // 2,
    )


def model_client(url: str) -> ollama.AsyncClient:
    """A client of the model server."""
    return ollama.AsyncClient(host=url, verify=get_default_context())


async def async_setup(hass: HomeAssistant, config: ConfigType) -> bool:
    """Registers the actions."""
    register_actions(hass)
    return True


async def async_setup_entry(hass: HomeAssistant, entry: SottovoceConfigEntry) -> bool:
    """Opens the store."""
    open_ = partial(open_store, dict(entry.data), entry.options[CONF_MODEL])
    try:
        entry.runtime_data = await hass.async_add_executor_job(open_)
    except ImportError as error:
        raise ConfigEntryNotReady(translation_domain=DOMAIN, translation_key="no_package") from error
    except Exception as error:
        # Errors of the package say what to do, and never hold words of a conversation.
        raise ConfigEntryNotReady(str(error)) from error
    await hass.config_entries.async_forward_entry_setups(entry, PLATFORMS)
    entry.async_on_unload(entry.add_update_listener(_reload))
    return True


async def _reload(hass: HomeAssistant, entry: SottovoceConfigEntry) -> None:
    await hass.config_entries.async_reload(entry.entry_id)


async def async_unload_entry(hass: HomeAssistant, entry: SottovoceConfigEntry) -> bool:
    """Closes the store."""
    if not await hass.config_entries.async_unload_platforms(entry, PLATFORMS):
        return False
    await entry.runtime_data.close_async()
    return True
