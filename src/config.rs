//! The configuration: `appsettings.json`, overridden by the environment.
//!
//! If a file is named, only that file is read. Otherwise the program reads the user's own file in the configuration
//! folder, then `appsettings.json` in the current folder. Another person may have written the latter, so it cannot
//! set where words and keys go; see [`Config::left_out`]. `SOTTOVOCE__CONTEXT__LASTN=9` overrides `Context.LastN`, in
//! any letter case.
//!
//! A file may hold comments, trailing commas and the sections of other programs. In Sottovoce's sections, an unknown
//! key or a value of the wrong type is an error.

mod assemble;
mod comments;
mod key;
mod layer;
mod open_conversations;
mod sections;
mod setting;
mod source;

pub use open_conversations::OpenConversations;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use layer::Layer;
use sections::keys;
use source::Sources;

pub use sections::{
    ContextConfig, LanguageModelConfig, McpConfig, ModelKind, PageConfig, PersonasConfig,
    RecallConfig, Sampling, ServeConfig, SyncConfig, UpConfig, WyomingConfig,
};
pub use setting::{ConfiguredKey, Secret, Setting};
pub use source::read_fd;

/// The configuration file's name.
const FILE_NAME: &str = "appsettings.json";

/// All settings with their origins.
#[derive(Debug, Clone)]
pub struct Config {
    /// The section `Context`.
    pub context: ContextConfig,
    /// The section `LanguageModel`.
    pub language_model: LanguageModelConfig,
    /// The section `Personas`.
    pub personas: PersonasConfig,
    /// The section `Mcp`.
    pub mcp: McpConfig,
    /// The section `Serve`.
    pub serve: ServeConfig,
    /// The section `Page`.
    pub page: PageConfig,
    /// The section `Wyoming`.
    pub wyoming: WyomingConfig,
    /// The section `Sync`.
    pub sync: SyncConfig,
    /// The section `Up`.
    pub up: UpConfig,
    /// A key given by the configuration itself rather than by a file. No other field holds any part of it.
    pub key: ConfiguredKey,
    /// The named file, or the user's own file if there is one.
    pub file: Option<PathBuf>,
    /// The file of the current folder, if it was read too.
    pub local_file: Option<PathBuf>,
    api_key: Option<Secret>,
    settings: Vec<Setting>,
    left_out: Vec<Setting>,
    /// Where the store's witness is.
    witness: Option<PathBuf>,
}

impl Config {
    /// Reads the configuration from `file`, or from its default places, and from the process's environment.
    ///
    /// # Errors
    /// [`Error::Config`] names the key and its place, or two places if both give a key; [`Error::EmptyKey`] for an
    /// empty key string, [`Error::EmptyPassphrase`] for an empty passphrase.
    pub fn load(file: Option<&Path>) -> Result<Self> {
        Ok(Self::load_with(file, std::env::vars_os())?.witnessed())
    }

    /// This configuration with the store's [witness](crate::StoreOptions::witness) in the user's state folder.
    #[must_use]
    pub fn witnessed(self) -> Self {
        let folder = |folders: directories::ProjectDirs| {
            folders.state_dir().unwrap_or_else(|| folders.data_local_dir()).join("witness")
        };
        Self { witness: folders().ok().map(folder), ..self }
    }

    /// [`load`](Self::load) with a given environment, and not [witnessed](Self::witnessed).
    pub fn load_with(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (std::ffi::OsString, std::ffi::OsString)>,
    ) -> Result<Self> {
        let environment: Vec<_> = environment.into_iter().collect();
        let credentials_folder = environment
            .iter()
            .find(|(name, value)| name == "CREDENTIALS_DIRECTORY" && !value.is_empty())
            .map(|(_, value)| value.clone());
        let (file, local_file) = match file {
            Some(file) => (Some(file.to_owned()), None),
            None => usual_files(),
        };
        let mut layers = vec![Layer::defaults()?];
        if let Some(file) = &file {
            layers.push(Layer::from_file(file)?);
        }
        let variables = Layer::from_environment(environment)?;
        let mut left_out = Vec::new();
        if let Some(local_file) = &local_file {
            let mut local = Layer::from_local_file(local_file)?;
            left_out = local.leave_out(&layers, &variables);
            layers.push(local);
        }
        layers.extend(variables);
        // The default of the key setting is the placeholder too, but nobody has configured it.
        let mut secret =
            |path| layers.iter_mut().skip(1).rev().find_map(|l| l.secrets.remove(path));
        let tokens =
            ["Mcp.Token", "Serve.Token", "Page.Token"].map(|path| (path, secret(path).flatten()));
        let api_key = secret("LanguageModel.ApiKey").flatten();
        let (secret, passphrase) = (secret("Context.EncryptionKey"), secret("Context.Passphrase"));
        let settings: Vec<Setting> = keys().map(|key| layer::setting(key, &layers)).collect();
        let merged = layers
            .into_iter()
            .fold(config::Config::builder(), |builder, layer| builder.add_source(layer));
        let merged = merged.build().map_err(|error| unusable(&error))?;
        let origin = |key: &str| {
            let setting = settings.iter().find(|setting| setting.key == key);
            setting.map(|setting| setting.origin.clone()).unwrap_or_default()
        };
        let context: ContextConfig = section(&merged, "Context")?;
        let mut mcp: McpConfig = section(&merged, "Mcp")?;
        let mut serve: ServeConfig = section(&merged, "Serve")?;
        let mut page: PageConfig = section(&merged, "Page")?;
        let fields = [&mut mcp.token, &mut serve.token, &mut page.token];
        for ((path, token), field) in tokens.into_iter().zip(fields) {
            if token.as_ref().is_some_and(|Secret(token)| token.trim().is_empty()) {
                let reason = format!("{path} is empty; give it a long secret, or null for none");
                return Err(Error::Config { place: origin(path), reason });
            }
            *field = token;
        }
        let key = Sources {
            secret: secret.flatten().map(|Secret(text)| (text, origin("Context.EncryptionKey"))),
            passphrase: passphrase
                .flatten()
                .map(|Secret(text)| (text, origin("Context.Passphrase"))),
            fd: context.key_fd.map(|fd| (fd, origin("Context.KeyFd"))),
            credential: context
                .key_credential
                .as_ref()
                .map(|name| (name.clone(), origin("Context.KeyCredential"))),
            file: context.key_file.as_ref().map(|_| origin("Context.KeyFile")),
            credentials_folder,
        }
        .resolve()?;
        Ok(Self {
            context,
            language_model: section(&merged, "LanguageModel")?,
            personas: section(&merged, "Personas")?,
            mcp,
            serve,
            page,
            wyoming: section(&merged, "Wyoming")?,
            sync: section(&merged, "Sync")?,
            up: section(&merged, "Up")?,
            key,
            file,
            local_file,
            api_key,
            settings,
            left_out,
            witness: None,
        })
    }

    /// Every setting with its origin, in the order of the documentation.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// The settings of the file in the current folder that were ignored and would have changed something: those that
    /// decide where words and keys go, what is deleted, or what is masked. They only count in the user's own file, a
    /// named file and the environment.
    pub fn left_out(&self) -> &[Setting] {
        &self.left_out
    }

    /// The path of the user's settings file, whether or not it exists.
    ///
    /// # Errors
    /// [`Error::Config`] if no file was read and the platform names no home folder.
    pub fn own_file(&self) -> Result<PathBuf> {
        match &self.file {
            Some(file) => Ok(file.clone()),
            None => Ok(config_folder()?.join(FILE_NAME)),
        }
    }

    /// The API key for the model server: from the environment, or from the file `LanguageModel.ApiKeyFile`.
    ///
    /// # Errors
    /// [`Error::Config`] if both are given, or the file cannot be read or is not text.
    pub fn api_key(&self) -> Result<Option<Zeroizing<String>>> {
        let wrong =
            |reason: String| Error::Config { place: "LanguageModel.ApiKeyFile".into(), reason };
        match (&self.api_key, &self.language_model.api_key_file) {
            (Some(_), Some(_)) => Err(wrong(
                "LanguageModel.ApiKey gives a key, and so does this; keep one of them".into(),
            )),
            (Some(Secret(key)), None) => Ok(Some(key.clone())),
            (None, Some(file)) => {
                let text = source::read(file)
                    .map_err(|reason| wrong(format!("{}: {reason}", file.display())))?;
                Ok(Some(Zeroizing::new(text.trim().to_owned())))
            }
            (None, None) => Ok(None),
        }
    }

    /// The folder of the store.
    ///
    /// # Errors
    /// [`Error::Config`] if none is configured and the platform names no home folder.
    pub fn storage_root(&self) -> Result<PathBuf> {
        match &self.context.storage_root {
            Some(root) => Ok(root.clone()),
            None => usual_storage_root(),
        }
    }

    /// The path of the key file, whether or not it exists.
    ///
    /// # Errors
    /// [`Error::Config`] if none is configured and the platform names no home folder.
    pub fn key_file(&self) -> Result<PathBuf> {
        match &self.context.key_file {
            Some(file) => Ok(file.clone()),
            None => Ok(config_folder()?.join("key")),
        }
    }

    /// The path of the new key file during a change of keys, whether or not it exists.
    ///
    /// # Errors
    /// Those of [`key_file`](Self::key_file).
    pub fn next_key_file(&self) -> Result<PathBuf> {
        let mut file = self.key_file()?.into_os_string();
        file.push(".new");
        Ok(file.into())
    }

    /// The folder for copies of a passphrase's salt: that of the key file.
    ///
    /// # Errors
    /// Those of [`key_file`](Self::key_file).
    pub fn salt_folder(&self) -> Result<PathBuf> {
        let mut folder = std::path::absolute(self.key_file()?).map_err(|error| Error::Config {
            place: "Context.KeyFile".to_owned(),
            reason: format!("its folder is not known: {error}"),
        })?;
        folder.pop();
        Ok(folder)
    }
}

/// The names of all settings, such as `Context.LastN`, in the order of the documentation.
pub fn setting_names() -> impl Iterator<Item = &'static str> {
    keys().map(|key| key.path)
}

/// A setting that somebody gives as text, such as `Context.LastN` and `9`, under its full name.
///
/// # Errors
/// [`Error::Config`] for an unknown name, a value of the wrong type, and a secret.
pub fn parse_setting(key: &str, text: &str) -> Result<Setting> {
    Layer::checked(key, text)
}

/// The default folder of the store, in the platform's cache folder.
///
/// # Errors
/// [`Error::Config`] if the platform names no home folder.
pub fn usual_storage_root() -> Result<PathBuf> {
    Ok(folders()?.cache_dir().join("Conversation"))
}

/// The user's configuration folder for this program.
///
/// # Errors
/// [`Error::Config`] if the platform names no home folder.
pub fn config_folder() -> Result<PathBuf> {
    Ok(folders()?.config_dir().to_owned())
}

fn folders() -> Result<directories::ProjectDirs> {
    directories::ProjectDirs::from("", "", "sottovoce").ok_or_else(|| Error::Config {
        place: "the environment".to_owned(),
        reason: "there is no home folder; set Context.StorageRoot and Context.KeyFile".to_owned(),
    })
}

/// The user's own file and that of the current folder, if they exist.
fn usual_files() -> (Option<PathBuf>, Option<PathBuf>) {
    let own = config_folder().ok().map(|folder| folder.join(FILE_NAME));
    let own = own.filter(|file| !is_absent(file));
    let local = Some(PathBuf::from(FILE_NAME)).filter(|file| !is_absent(file));
    // If the current folder is the configuration folder, both are the same file.
    let real = |file: &Option<PathBuf>| file.as_ref().and_then(|file| file.canonicalize().ok());
    let is_one = real(&own).is_some_and(|own| real(&local) == Some(own));
    (own, local.filter(|_| !is_one))
}

/// Whether a file does not exist. A file that cannot be examined counts as existing; reading it reports the error.
fn is_absent(file: &Path) -> bool {
    file.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

fn section<T: DeserializeOwned>(merged: &config::Config, name: &str) -> Result<T> {
    merged.get(name).map_err(|error| unusable(&error))
}

fn unusable(error: &dyn fmt::Display) -> Error {
    Error::Config { place: "the configuration".to_owned(), reason: error.to_string() }
}
