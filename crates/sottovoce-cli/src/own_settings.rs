//! Changes one of the user's own settings, and keeps the rest of the file with its comments.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;
use sottovoce::Config;

use crate::exit::Failure;

/// Sets a setting, such as `Context.StorageRoot`, in the user's own file, atomically and durably; without a value,
/// takes it out.
pub(crate) fn set(config: &Config, key: &str, value: Option<&Value>) -> Result<PathBuf, Failure> {
    // If the path is a link, change its target.
    let file = config.own_file()?;
    let file = file.canonicalize().unwrap_or(file);
    let wrong = |error: io::Error| {
        Failure::input(
            format!("{}: {error}", file.display()),
            format!("see that this user may write it, or set {key} yourself"),
        )
    };
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => "{}\n".to_owned(),
        Err(error) => return Err(wrong(error)),
    };
    let changed = changed(text.trim_start_matches('\u{feff}'), key, value)
        .ok_or_else(|| wrong(io::ErrorKind::InvalidData.into()))?;
    write(&file, &changed).map_err(wrong)?;
    Ok(file)
}

/// The text with another value; `None` if it is not an object of sections.
fn changed(text: &str, key: &str, value: Option<&Value>) -> Option<String> {
    let (section, name) = key.split_once('.')?;
    let root = CstRootNode::parse(text, &ParseOptions::default()).ok()?;
    let whole = root.object_value_or_create()?;
    let (mut object, mut name) = match (property(&whole, section), value) {
        (Some(found), _) => (found.object_value()?, name),
        (None, Some(_)) => (whole.object_value_or_create(section)?, name),
        (None, None) => return Some(root.to_string()),
    };
    // A section may hold another, as `Context` does `Recall`.
    while let Some((inner, rest)) = name.split_once('.')
        && let Some(found) = property(&object, inner)
    {
        (object, name) = (found.object_value()?, rest);
    }
    let setting = property(&object, name);
    let value = match value {
        None => {
            setting.into_iter().for_each(CstObjectProp::remove);
            return Some(root.to_string());
        }
        Some(Value::Null) => CstInputValue::Null,
        Some(Value::Bool(flag)) => CstInputValue::Bool(*flag),
        Some(Value::Number(number)) => CstInputValue::Number(number.to_string()),
        Some(Value::String(text)) => CstInputValue::String(text.clone()),
        Some(Value::Array(_) | Value::Object(_)) => return None,
    };
    match setting {
        Some(setting) => setting.set_value(value),
        None => drop(object.append(name, value)),
    }
    Some(root.to_string())
}

/// The property of that name, in any letter case.
fn property(object: &CstObject, name: &str) -> Option<CstObjectProp> {
    let is_it = |found: String| found.eq_ignore_ascii_case(name);
    object.properties().into_iter().find(|found| found.decoded_name().is_some_and(is_it))
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let temporary = PathBuf::from(name);
    let written = || {
        let mut options = OpenOptions::new();
        let mut new =
            options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        new.write_all(text.as_bytes())?;
        // Keep the permissions of the file.
        if let Ok(before) = fs::metadata(file) {
            new.set_permissions(before.permissions())?;
        }
        new.sync_all()?;
        fs::rename(&temporary, file)?;
        File::open(folder)?.sync_all()
    };
    let written = written();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_is_changed_and_everything_else_stays_as_it_is() {
        let text = "{\n  // mine\n  \"Context\": {\n    \"LastN\": 3, // few\n  },\n  \"Logging\": {}\n}\n";
        let root = Value::from("/a \"b\"");
        let set = changed(text, "Context.StorageRoot", Some(&root)).unwrap();
        for part in
            ["// mine", "\"LastN\": 3, // few", "\"Logging\": {}", r#""StorageRoot": "/a \"b\"""#]
        {
            assert!(set.contains(part), "{part}: {set}");
        }
        let again = changed(&set, "Context.StorageRoot", Some(&Value::Null)).unwrap();
        assert!(again.contains("\"StorageRoot\": null") && !again.contains("/a"), "{again}");
        let new = changed("{}\n", "LanguageModel.NumCtx", Some(&4096.into())).unwrap();
        let read: Value = serde_json::from_str(&new).unwrap();
        assert_eq!(read["LanguageModel"]["NumCtx"], 4096);
        let spelled = "{\"context\":{\"recall\":{\"tokens\":1}, \"lastN\":2}}";
        let set = changed(spelled, "Context.Recall.Tokens", Some(&5.into())).unwrap();
        assert_eq!(set, spelled.replace('1', "5"));
        let gone = changed(&set, "Context.LastN", None).unwrap();
        assert!(gone.contains("tokens") && !gone.contains("lastN"), "{gone}");
        assert_eq!(changed(text, "Serve.Port", None).unwrap(), text);
        for wrong in ["[]", "{", "{\"Context\": 3}"] {
            assert!(changed(wrong, "Context.LastN", Some(&3.into())).is_none(), "{wrong}");
        }
    }
}
