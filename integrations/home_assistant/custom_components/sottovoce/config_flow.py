"""The forms: where the model and the store are, and how the agent answers."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import httpx2
import ollama
import probatio

from homeassistant.config_entries import ConfigEntry, ConfigFlow, ConfigFlowResult, OptionsFlow
from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_PROMPT, CONF_URL
from homeassistant.core import HomeAssistant, callback
from homeassistant.helpers import config_validation as cv, llm
from homeassistant.helpers.selector import (
    SelectOptionDict,
    SelectSelector,
    SelectSelectorConfig,
    SelectSelectorMode,
    TemplateSelector,
    TextSelector,
    TextSelectorConfig,
    TextSelectorType,
)

from . import model_client, open_store
from .const import CONF_FOLDER, CONF_KEY_FILE, CONF_SCOPE, DOMAIN, SCOPE_AREA, SCOPES, TIMEOUT

_LOGGER = logging.getLogger(__name__)

URL = TextSelector(TextSelectorConfig(type=TextSelectorType.URL))


class Refused(Exception):
    """An address that cannot be used: the form's error, and what completes its sentence."""

    def __init__(self, error: str, why: str = "") -> None:
        super().__init__(error)
        self.error, self.why = error, why


async def _models(url: str) -> list[str]:
    """The models of the server."""
    try:
        async with asyncio.timeout(TIMEOUT):
            listed = await model_client(cv.url(url)).list()
        return sorted(model["model"] for model in listed["models"])
    except probatio.Invalid as error:
        raise Refused("invalid_url") from error
    except (TimeoutError, ConnectionError, httpx2.HTTPError) as error:
        raise Refused("cannot_connect") from error
    except ollama.ResponseError as error:
        raise Refused("model_failed", str(error.status_code)) from error
    except (ValueError, TypeError) as error:
        raise Refused("not_ollama") from error


def _check_store(data: dict[str, str]) -> None:
    """Opens the store for a moment, which makes its key."""
    Path(data[CONF_FOLDER]).mkdir(mode=0o700, parents=True, exist_ok=True)
    open_store(data).close()


def _answering(hass: HomeAssistant, models: list[str]) -> probatio.Schema:
    """The form for how the agent answers."""
    apis = [SelectOptionDict(value=api.id, label=api.name) for api in llm.async_get_apis(hass)]
    scopes = SelectSelectorConfig(options=list(SCOPES), translation_key=CONF_SCOPE, mode=SelectSelectorMode.LIST)
    return probatio.Schema(
        {
            probatio.Required(CONF_MODEL): SelectSelector(SelectSelectorConfig(options=models, custom_value=True)),
            probatio.Required(CONF_SCOPE, default=SCOPE_AREA): SelectSelector(scopes),
            probatio.Optional(CONF_LLM_HASS_API, default=[llm.LLM_API_ASSIST]): SelectSelector(
                SelectSelectorConfig(options=apis, multiple=True)
            ),
            probatio.Optional(CONF_PROMPT): TemplateSelector(),
        }
    )


class SottovoceConfigFlow(ConfigFlow, domain=DOMAIN):
    """Adds an agent."""

    def __init__(self) -> None:
        self._data: dict[str, str] = {}
        self._models: list[str] = []

    async def async_step_user(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Asks where the model and the store are."""
        errors, placeholders = {}, {"why": ""}
        folder = self.hass.config.path(DOMAIN)
        suggested = {CONF_URL: "http://127.0.0.1:11434", CONF_FOLDER: f"{folder}/store", CONF_KEY_FILE: f"{folder}/key"}
        if user_input is not None:
            suggested = user_input = {name: value.strip() for name, value in user_input.items()}
            self._async_abort_entries_match({CONF_FOLDER: user_input[CONF_FOLDER]})
            try:
                self._models = await _models(user_input[CONF_URL])
                await self.hass.async_add_executor_job(_check_store, user_input)
            except ImportError:
                return self.async_abort(reason="no_package")
            except Refused as refused:
                errors[CONF_URL], placeholders["why"] = refused.error, refused.why
            except Exception as error:
                # The package's own errors say what to do, and never hold words of a conversation.
                _LOGGER.warning("The store cannot be opened: %s", error)
                errors["base"], placeholders["why"] = "cannot_open", str(error)
            else:
                self._data = user_input
                return await self.async_step_answering()
        schema = probatio.Schema(
            {
                probatio.Required(CONF_URL): URL,
                probatio.Required(CONF_FOLDER): TextSelector(),
                probatio.Required(CONF_KEY_FILE): TextSelector(),
            }
        )
        form = self.add_suggested_values_to_schema(schema, suggested)
        return self.async_show_form(
            step_id="user", data_schema=form, errors=errors, description_placeholders=placeholders
        )

    async def async_step_answering(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Asks how the agent answers."""
        if user_input is not None:
            return self.async_create_entry(title="Sottovoce", data=self._data, options=user_input)
        form = self.add_suggested_values_to_schema(
            _answering(self.hass, self._models), {CONF_MODEL: next(iter(self._models), None)}
        )
        return self.async_show_form(step_id="answering", data_schema=form)

    @staticmethod
    @callback
    def async_get_options_flow(config_entry: ConfigEntry) -> OptionsFlow:
        """The form to change how the agent answers."""
        return SottovoceOptionsFlow()


class SottovoceOptionsFlow(OptionsFlow):
    """Changes how the agent answers."""

    async def async_step_init(self, user_input: dict[str, Any] | None = None) -> ConfigFlowResult:
        """Asks how the agent answers."""
        if user_input is not None:
            return self.async_create_entry(data=user_input)
        try:
            models = await _models(self.config_entry.data[CONF_URL])
        except Refused:
            models = [self.config_entry.options[CONF_MODEL]]
        form = self.add_suggested_values_to_schema(_answering(self.hass, models), self.config_entry.options)
        return self.async_show_form(step_id="init", data_schema=form)
