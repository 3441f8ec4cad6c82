//! A page of a store in a temporary folder, and a browser of it that keeps its cookie.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::header::{
    CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue, ORIGIN, SET_COOKIE,
};
use reqwest::{Client, Method, redirect};
use sottovoce::http::client_builder;
use sottovoce::{
    ChatMessage, ChatRole, Config, ConversationStore, FileConversationStore, Scope, SystemClock,
};
use sottovoce_page::Page;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::ollama::OllamaStub;

pub(crate) struct Served {
    pub(crate) stub: OllamaStub,
    pub(crate) root: tempfile::TempDir,
    pub(crate) config: Config,
    pub(crate) origin: String,
    pub(crate) link: String,
    /// The links that were announced since.
    pub(crate) links: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

/// What a browser gets.
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The value of a field in the first form that has it.
    pub(crate) fn field(&self, name: &str) -> String {
        let (_, rest) = self.text.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    }
}

pub(crate) fn named(id: &str) -> Scope {
    Scope::Named { id: id.into() }
}

pub(crate) fn config(root: &Path, settings: &[(&str, &str)]) -> Config {
    let file = root.join("settings.json");
    std::fs::write(&file, "{}").unwrap();
    let mut environment = vec![
        ("SOTTOVOCE__CONTEXT__STORAGEROOT".into(), root.join("store").into()),
        ("SOTTOVOCE__CONTEXT__KEYFILE".into(), root.join("config/key").into()),
    ];
    for (name, value) in settings {
        let name: std::ffi::OsString = format!("SOTTOVOCE__{name}").into();
        environment.retain(|(known, _)| *known != name);
        environment.push((name, (*value).into()));
    }
    Config::load_with(Some(&file), environment).unwrap()
}

impl Served {
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    pub(crate) async fn with(settings: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let stub = OllamaStub::start();
        let url = stub.url();
        let settings: Vec<_> = [("LANGUAGEMODEL__BASEURL", url.as_str())]
            .into_iter()
            .chain(settings.iter().copied())
            .collect();
        let config = config(root.path(), &settings);
        config.make_key_file().unwrap();
        let links = Arc::<Mutex<Vec<String>>>::default();
        let announced = Arc::clone(&links);
        let page = Page::new(config.clone(), Arc::new(SystemClock))
            .announce(move |link| announced.lock().unwrap().push(link));
        let listening = page.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let origin = format!("http://{}", listening.address());
        let link = listening.link().unwrap();
        let stop = CancellationToken::new();
        let serving = Some(tokio::spawn(listening.serve(stop.clone())));
        Self { stub, root, config, origin, link, links, stop, serving }
    }

    pub(crate) async fn store(&self, scope: Scope) -> FileConversationStore {
        self.config.open_store(scope, Arc::new(SystemClock)).await.unwrap()
    }

    /// Appends messages of the user and the assistant in turn.
    pub(crate) async fn say(&self, scope: Scope, words: &[&str]) -> FileConversationStore {
        let store = self.store(scope).await;
        let start: jiff::Timestamp = "2025-08-24T16:00:00Z".parse().unwrap();
        for (at, words) in words.iter().enumerate() {
            let role = if at % 2 == 0 { ChatRole::User } else { ChatRole::Assistant };
            let time = start + Duration::from_secs(at as u64 * 60);
            store.append_message(ChatMessage::at(role, *words, time)).await.unwrap();
        }
        store
    }

    pub(crate) async fn enter(&self) -> Browser {
        Browser::new(&self.origin).enter(&self.link).await
    }

    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        self.serving.take().unwrap().await.unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[derive(Clone)]
pub(crate) struct Browser {
    client: Client,
    pub(crate) origin: String,
    pub(crate) cookie: String,
    pub(crate) csrf: String,
}

impl Browser {
    pub(crate) fn new(origin: &str) -> Self {
        let client = client_builder(false)
            .unwrap()
            .redirect(redirect::Policy::none())
            .timeout(Duration::from_secs(60))
            .build()
            .unwrap();
        Self { client, origin: origin.to_owned(), cookie: String::new(), csrf: String::new() }
    }

    pub(crate) async fn enter(mut self, link: &str) -> Self {
        let got = self.ask(Method::GET, link, &[], None).await;
        assert_eq!((got.status, got.header("location")), (303, "/"));
        self.cookie = got.header(SET_COOKIE.as_str()).split(';').next().unwrap().to_owned();
        self.csrf = self.get("/").await.field("csrf");
        self
    }

    pub(crate) async fn get(&self, path: &str) -> Got {
        self.ask(Method::GET, &format!("{}{path}", self.origin), &[], None).await
    }

    /// Sends a form of this browser's own page.
    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Got {
        self.send(path, &[(ORIGIN, &self.origin)], &self.form(fields)).await
    }

    pub(crate) fn form(&self, fields: &[(&str, &str)]) -> String {
        let fields = fields.iter().copied().chain([("csrf", self.csrf.as_str())]);
        form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
    }

    pub(crate) async fn send(&self, path: &str, headers: &[(HeaderName, &str)], body: &str) -> Got {
        self.ask(Method::POST, &format!("{}{path}", self.origin), headers, Some(body.to_owned()))
            .await
    }

    pub(crate) async fn ask(
        &self,
        method: Method,
        url: &str,
        headers: &[(HeaderName, &str)],
        body: Option<String>,
    ) -> Got {
        let mut request = self.client.request(method, url);
        if !self.cookie.is_empty() {
            request = request.header(COOKIE, &self.cookie);
        }
        for (name, value) in headers {
            request = request.header(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body);
        }
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Got { status, headers, text: response.text().await.unwrap() }
    }
}
