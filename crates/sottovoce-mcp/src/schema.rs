//! JSON Schemas of the tools' input and output: self-contained, every property described, no redundant keywords.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The schema of a tool's input.
pub(crate) fn input<T: JsonSchema>() -> Arc<JsonObject> {
    object::<T>(SchemaSettings::draft2020_12())
}

/// The schema of a tool's output.
pub(crate) fn output<T: JsonSchema>() -> Arc<JsonObject> {
    object::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn object<T: JsonSchema>(settings: SchemaSettings) -> Arc<JsonObject> {
    let whole = |settings: &mut SchemaSettings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    };
    let generator = settings.with(whole).with_transform(Tidy).into_generator();
    let mut schema = match generator.into_root_schema_for::<T>().to_value() {
        Value::Object(schema) => schema,
        // Structs never have such a schema.
        _ => JsonObject::new(),
    };
    schema.remove("description");
    Arc::new(schema)
}

/// Removes redundant keywords: titles that repeat names, number formats, and null for optional properties.
#[derive(Clone)]
struct Tidy;

impl Transform for Tidy {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(schema) = schema.as_object_mut() else { return };
        schema.remove("title");
        let is_number =
            |format: &str| format.contains("int") || matches!(format, "float" | "double");
        if schema.get("format").and_then(Value::as_str).is_some_and(is_number) {
            schema.remove("format");
        }
        if schema.get("default").is_some_and(Value::is_null) {
            schema.remove("default");
        }
        let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
        let nullable =
            properties.iter_mut().filter_map(|(name, of)| without_null(of).then_some(name));
        let nullable: Vec<String> = nullable.cloned().collect();
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.retain(|name| !nullable.iter().any(|nullable| name == nullable));
        }
    }
}

/// Takes null out of what a property may be. Returns whether it was in.
fn without_null(property: &mut Value) -> bool {
    let Some(property) = property.as_object_mut() else { return false };
    let mut was_in = false;
    if let Some(Value::Array(types)) = property.get_mut("type") {
        was_in = types.iter().any(|known| known == "null");
        types.retain(|known| known != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            property.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(values)) = property.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let is_null = |schema: &Value| schema.get("type").is_some_and(|known| known == "null");
    if let Some(Value::Array(any)) = property.get_mut("anyOf") {
        was_in |= any.iter().any(is_null);
        any.retain(|schema| !is_null(schema));
        if let [Value::Object(one)] = any.as_slice() {
            let one = one.clone();
            property.remove("anyOf");
            for (name, value) in one {
                property.entry(name).or_insert(value);
            }
        }
    }
    was_in
}
