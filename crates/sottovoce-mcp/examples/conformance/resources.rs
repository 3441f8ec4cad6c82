//! The resources that the suite reads.

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use super::tools::PICTURE;

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";
const WATCHED: &str = "test://watched-resource";
const BEFORE_ID: &str = "test://template/";
const AFTER_ID: &str = "/data";

pub(super) fn list() -> Vec<Resource> {
    let of = |uri: &str, name: &str, about: &str, mime: &str| {
        Resource::new(uri, name).with_description(about).with_mime_type(mime)
    };
    vec![
        of(TEXT, "static-text", "A text that is always the same", "text/plain"),
        of(BINARY, "static-binary", "A picture that is always the same", "image/png"),
        of(WATCHED, "watched-resource", "Something that can be subscribed to", "text/plain"),
    ]
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    let uri = format!("{BEFORE_ID}{{id}}{AFTER_ID}");
    vec![
        ResourceTemplate::new(uri, "template")
            .with_description("Data of any id")
            .with_mime_type("application/json"),
    ]
}

pub(super) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let text = |text: &str, mime: &str| ResourceContents::text(text, uri).with_mime_type(mime);
    let id = uri.strip_prefix(BEFORE_ID).and_then(|rest| rest.strip_suffix(AFTER_ID));
    let contents = match (uri, id) {
        (TEXT, _) => text("This is the content of the static text resource.", "text/plain"),
        (BINARY, _) => ResourceContents::blob(PICTURE, uri).with_mime_type("image/png"),
        (WATCHED, _) => text("It never changes.", "text/plain"),
        (_, Some(id)) => {
            let data =
                json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            text(&data.to_string(), "application/json")
        }
        _ => {
            let asked = Some(json!({ "uri": uri }));
            return Err(ErrorData::resource_not_found("there is no such resource", asked));
        }
    };
    Ok(ReadResourceResult::new(vec![contents]))
}
