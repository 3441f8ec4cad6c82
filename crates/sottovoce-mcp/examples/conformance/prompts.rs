//! The prompts that the suite requests.

use rmcp::ErrorData;
use rmcp::model::{
    ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Prompt,
    PromptArgument, PromptMessage, Role,
};
use serde_json::Value;

use super::rounds::{Asked, ask};
use super::tools::PICTURE;
use super::{Context, forms};

pub(super) fn list() -> Vec<Prompt> {
    let of = |name: &str, about: &str, arguments: &[&str]| {
        let arguments = arguments.iter().map(|name| {
            PromptArgument::new(*name).with_description("Some text").with_required(true)
        });
        Prompt::new(name, Some(about), Some(arguments.collect()))
    };
    vec![
        of("test_simple_prompt", "Only text", &[]),
        of("test_prompt_with_arguments", "Text with what was given", &["arg1", "arg2"]),
        of("test_prompt_with_embedded_resource", "A resource within", &["resourceUri"]),
        of("test_prompt_with_image", "A picture within", &[]),
        of("test_input_required_result_prompt", "Asks the user first", &[]),
    ]
}

pub(super) async fn get(
    request: GetPromptRequestParams,
    context: &Context,
) -> Result<GetPromptResponse, ErrorData> {
    let given = |name: &str| {
        let value = request.arguments.as_ref().and_then(|given| given.get(name));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    let text = |text: String| PromptMessage::new_text(Role::User, text);
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.".to_owned())],
        "test_prompt_with_arguments" => {
            let (first, second) = (given("arg1"), given("arg2"));
            vec![text(format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let words = "Embedded resource content for testing.";
            let resource = ContentBlock::embedded_text(given("resourceUri"), words);
            vec![
                PromptMessage::new(Role::User, resource),
                text("Please process the embedded resource above.".to_owned()),
            ]
        }
        "test_prompt_with_image" => vec![
            PromptMessage::new(Role::User, ContentBlock::image(PICTURE, "image/png")),
            text("Please analyze the image above.".to_owned()),
        ],
        "test_input_required_result_prompt" => {
            let wanted =
                forms::wanted("What context should the prompt use?", forms::words(&["context"]));
            let responses = request.input_responses.as_ref();
            match ask(context, responses, "user_context", wanted).await? {
                Asked::Round(round) => return Ok(round.into()),
                Asked::Answered(answer) => vec![text(format!("It is about {}", answer["content"]))],
            }
        }
        _ => return Err(ErrorData::invalid_params("there is no such prompt", None)),
    };
    Ok(GetPromptResult::new(messages).into())
}
