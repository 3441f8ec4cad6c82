//! The server's two prompts: creating a personality, and summarizing a context.

use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

pub(crate) const CREATOR: &str = "personality-creator";
pub(crate) const SUMMARY: &str = "context-summary";

/// The longest argument in bytes.
const LONGEST: usize = 4096;

pub(crate) fn list() -> Vec<Prompt> {
    let argument = |name: &str, about: &str| {
        PromptArgument::new(name).with_description(about).with_required(true)
    };
    vec![
        Prompt::new(
            SUMMARY,
            Some("Summarize what was said in a context"),
            Some(vec![
                argument("contextName", "The context's name"),
                argument("personality", "The model's behaviour in it"),
                argument("interactionCount", "The number of exchanges"),
                argument("timeSpan", "The time to cover, such as: the last week"),
            ]),
        )
        .with_title("Summarize a context"),
        Prompt::new(
            CREATOR,
            Some("Create a personality for a context"),
            Some(vec![
                argument("role", "The model's role, such as: a patient teacher"),
                argument("traits", "Its behaviour, such as: warm, brief, curious"),
                argument("scenario", "Its purpose, such as: homework in the evening"),
            ]),
        )
        .with_title("Create a personality"),
    ]
}

pub(crate) fn get(
    name: &str,
    arguments: Option<&JsonObject>,
) -> Result<GetPromptResult, ErrorData> {
    let argument = |wanted: &'static str| -> Result<&str, ErrorData> {
        let given = arguments.and_then(|given| given.get(wanted)).and_then(Value::as_str);
        let given = given.map(str::trim).filter(|given| !given.is_empty()).ok_or_else(|| {
            ErrorData::invalid_params(format!("the prompt needs the argument {wanted}"), None)
        })?;
        if given.len() > LONGEST {
            let reason = format!("the argument {wanted} may have at most {LONGEST} bytes");
            return Err(ErrorData::invalid_params(reason, None));
        }
        Ok(given)
    };
    let (text, about) = match name {
        CREATOR => {
            let (role, traits) = (argument("role")?, argument("traits")?);
            let scenario = argument("scenario")?;
            let text = format!(
                "Create a personality for an assistant.\n\nRole: {role}\nTraits: {traits}\nMainly for: {scenario}\n\n\
Answer with these, each on a line of its own:\n1. a name of two or three words;\n2. a description of one sentence;\n\
3. a system prompt that addresses the assistant as \"you\", says what it does and what it leaves alone, and has it stay \
the same when the user is upset, in a hurry or joking;\n4. a personality in one line;\n5. a temperature from 0 to 1, \
lower where facts matter more than ideas.\n\nThen offer to make a preset of it with the tool \
personality-preset-manage."
            );
            (text, "Making up a personality")
        }
        SUMMARY => {
            let (name, personality) = (argument("contextName")?, argument("personality")?);
            let (count, span) = (argument("interactionCount")?, argument("timeSpan")?);
            let text = format!(
                "Summarize the conversation in the context \"{name}\", in which the assistant is: {personality}. It has \
{count} exchanges, over this time: {span}.\n\nRead it first, with the tool conversation-manage or the context's resource. \
Then tell, briefly and without making anything up:\n1. what was talked about;\n2. what the user wants, likes and has \
decided;\n3. what is still open;\n4. whether the assistant kept to its personality, with an example where it did not."
            );
            (text, "Summarizing a context")
        }
        _ => {
            let reason = format!("there is no such prompt; there are {CREATOR} and {SUMMARY}");
            return Err(ErrorData::invalid_params(reason, None));
        }
    };
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(about))
}
