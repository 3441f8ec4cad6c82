//! The two prompts: for making up a personality, and for summing up a context.

use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

pub(crate) const CREATOR: &str = "personality-creator";
pub(crate) const SUMMARY: &str = "context-summary";

/// The most bytes of an argument.
const LONGEST: usize = 4096;

pub(crate) fn list() -> Vec<Prompt> {
    let argument = |name: &str, about: &str| {
        PromptArgument::new(name).with_description(about).with_required(true)
    };
    vec![
        Prompt::new(
            SUMMARY,
            Some("Sum up what was said in a context"),
            Some(vec![
                argument("contextName", "What the context is called"),
                argument("personality", "How the model behaves in it"),
                argument("interactionCount", "How many exchanges there were"),
                argument("timeSpan", "Over which time, such as: the last week"),
            ]),
        )
        .with_title("Sum up a context"),
        Prompt::new(
            CREATOR,
            Some("Make up a personality for a context"),
            Some(vec![
                argument("role", "Who the model is to be, such as: a patient teacher"),
                argument("traits", "How it is to behave, such as: warm, brief, curious"),
                argument("scenario", "What it is for, such as: homework in the evening"),
            ]),
        )
        .with_title("Make up a personality"),
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
            let reason = format!("the argument {wanted} has over {LONGEST} bytes");
            return Err(ErrorData::invalid_params(reason, None));
        }
        Ok(given)
    };
    let (text, about) = match name {
        CREATOR => {
            let (role, traits) = (argument("role")?, argument("traits")?);
            let scenario = argument("scenario")?;
            let text = format!(
                "Make up a personality for an assistant.\n\nRole: {role}\nTraits: {traits}\nMainly for: {scenario}\n\n\
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
                "Sum up the conversation in the context \"{name}\", in which the assistant is: {personality}. It has \
{count} exchanges, over this time: {span}.\n\nRead it first, with the tool conversation-manage or the context's resource. \
Then tell, briefly and without making anything up:\n1. what was talked about;\n2. what the user wants, likes and has \
decided;\n3. what is still open;\n4. whether the assistant kept to its personality, with an example where it did not."
            );
            (text, "Summing up a context")
        }
        _ => {
            let reason = format!("there is no such prompt; there are {CREATOR} and {SUMMARY}");
            return Err(ErrorData::invalid_params(reason, None));
        }
    };
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(about))
}
