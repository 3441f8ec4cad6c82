//! Completion of arguments while a user types them.

use rmcp::ErrorData;
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference};
use sottovoce::persona::PersonaConversation;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::{prompts, resources};

/// The most completions that the protocol allows in one answer.
const MOST: usize = 100;

pub(crate) async fn complete(
    hub: &Hub,
    request: CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let argument = request.argument.name.as_str();
    let known = match &request.r#ref {
        Reference::Resource(template) => {
            template.uri == resources::CONTEXT || template.uri == resources::PRESET
        }
        Reference::Prompt(prompt) => prompts::list().iter().any(|known| known.name == prompt.name),
        _ => false,
    };
    if !known {
        return Err(ErrorData::invalid_params("there is no prompt or resource of that name", None));
    }
    let offered = offered(hub, &request.r#ref, argument).await;
    let offered =
        offered.map_err(|fault| ErrorData::internal_error(fault.reason().to_owned(), None))?;
    let typed = request.argument.value.to_lowercase();
    // Values that start with the text come first, then those that contain it.
    let mut fitting: Vec<(bool, String)> = offered
        .into_iter()
        .filter(|value| value.to_lowercase().contains(&typed))
        .map(|value| (!value.to_lowercase().starts_with(&typed), value))
        .collect();
    fitting.sort_by_key(|(is_inside, _)| *is_inside);
    let total = u32::try_from(fitting.len()).unwrap_or(u32::MAX);
    let values: Vec<String> = fitting.into_iter().map(|(_, value)| value).take(MOST).collect();
    let has_more = total as usize > values.len();
    let info = CompletionInfo::with_pagination(values, Some(total), has_more)
        .map_err(|error| ErrorData::internal_error(error, None))?;
    Ok(CompleteResult::new(info))
}

/// All distinct values that an argument may have.
async fn offered(hub: &Hub, of: &Reference, argument: &str) -> Result<Vec<String>, Fault> {
    if !hub.access.contexts {
        return Ok(Vec::new());
    }
    let open = async || -> Result<Vec<PersonaConversation>, Fault> {
        let listed = hub.registry.list().await?.contexts;
        Ok(listed.into_iter().filter(PersonaConversation::is_open).collect())
    };
    let mut values: Vec<String> = match (of, argument) {
        (Reference::Resource(_), "contextId") => {
            open().await?.into_iter().map(|context| context.id).collect()
        }
        (Reference::Resource(_), "presetId") => {
            hub.registry.presets().await?.into_iter().map(|preset| preset.id).collect()
        }
        (Reference::Prompt(_), "contextName") => {
            open().await?.into_iter().map(|context| context.name).collect()
        }
        (Reference::Prompt(_), "personality" | "traits") => {
            let presets = hub.registry.presets().await?;
            presets.into_iter().map(|preset| preset.persona.personality.clone()).collect()
        }
        _ => Vec::new(),
    };
    let mut seen = std::collections::HashSet::new();
    values.retain(|value| !value.is_empty() && seen.insert(value.clone()));
    Ok(values)
}
