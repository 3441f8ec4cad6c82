//! An Ollama server that does what a test tells it to.
//!
//! It listens on a port of its own, on threads of its own, so that any test and any child process can speak to it, with
//! or without a runtime. What it is not told it answers plausibly: it has one model that can use tools, was trained on
//! 8,192 tokens, loads it with the `num_ctx` it is asked for (or 4,096), and says `Fine.`
//!
//! ```ignore
//! let stub = OllamaStub::start();
//! stub.next(Answer::saying(&["Sun", "ny."]).split_every(1));   // the next reply
//! stub.next(Answer::saying(&["It "]).hold().text("rains."));    // the one after: waits for stub.release()
//! stub.next_to(Ask::Show, Answer::refusal(404, "model 'x' not found"));
//! stub.always_to(Ask::Show, Answer::json(json!({ "capabilities": ["completion", "thinking"] })));
//! // … speak to stub.url() …
//! assert_eq!(stub.seen(Ask::Reply).len(), 2);
//! ```
//!
//! It speaks OpenAI's chat completions as well: the same script is then sent as events, and the one model is listed as
//! llama.cpp's server lists it.
//!
//! Requests are told apart by what they want ([`Ask`]): a request without words only loads the model, and one for a
//! single whole token only warms it up; neither uses up what is scripted for replies. Calls that wait
//! (`wait_until_closed_early`, `wait_for`) block their thread: an async test that uses them needs the flavour
//! `multi_thread`.
#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ask {
    /// A reply, from `/api/chat` or `/api/generate`.
    Reply,
    /// A whole answer of one token, which makes the model read the prompt.
    WarmUp,
    /// Loading the model.
    Load,
    Show,
    Running,
    Tags,
    Version,
    Embed,
    /// OpenAI's list of models.
    Models,
    /// llama.cpp's `/props`.
    Props,
    /// LM Studio's own list.
    Listed,
    Other,
}

/// A received request.
#[derive(Debug, Clone)]
pub struct Seen {
    pub ask: Ask,
    pub method: String,
    pub path: String,
    /// By lower-case name.
    pub headers: BTreeMap<String, String>,
    pub body: String,
    /// Whether the client disconnected before the end of the answer.
    pub closed_early: bool,
}

impl Seen {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

#[derive(Debug, Clone)]
enum Step {
    Text(String),
    Thinking(String),
    Tools(Value),
    Error(String),
    Line(Value),
    Raw(Vec<u8>),
    Forever(Vec<u8>, Duration),
    Wait(Duration),
    Hold,
    Cut,
    Silence,
}

/// A scripted answer. Each method adds to the previous parts.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    /// A fixed body instead of a model's answer.
    fixed: Option<String>,
    late: Duration,
    no_head: bool,
    hangs_up: bool,
    steps: Vec<Step>,
    ends: bool,
    done: Value,
    remote: Option<String>,
    split: Option<usize>,
}

impl Answer {
    /// A model's answer in these pieces, or whole if the request asks for that.
    pub fn saying(pieces: &[&str]) -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            fixed: None,
            late: Duration::ZERO,
            no_head: false,
            hangs_up: false,
            steps: pieces.iter().map(|piece| Step::Text((*piece).to_owned())).collect(),
            ends: true,
            done: json!({}),
            remote: None,
            split: None,
        }
    }

    /// A fixed body.
    pub fn body(status: u16, body: &str) -> Self {
        Self { status, fixed: Some(body.to_owned()), ..Self::saying(&[]) }
    }

    pub fn json(body: Value) -> Self {
        Self::body(200, &body.to_string())
    }

    /// `{"error": …}` with a status.
    pub fn refusal(status: u16, error: &str) -> Self {
        Self::body(status, &json!({ "error": error }).to_string())
    }

    /// A redirect to another address.
    pub fn redirect(to: &str) -> Self {
        Self::body(307, "").header("location", to)
    }

    /// No answer, for ever.
    pub fn silent() -> Self {
        Self { no_head: true, ..Self::saying(&[]) }
    }

    /// Closes the connection instead of answering.
    pub fn hanging_up() -> Self {
        Self { hangs_up: true, ..Self::saying(&[]) }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts the answer after a delay.
    pub fn late(mut self, by: Duration) -> Self {
        self.late = by;
        self
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    pub fn text(self, text: &str) -> Self {
        self.step(Step::Text(text.to_owned()))
    }

    pub fn thinking(self, text: &str) -> Self {
        self.step(Step::Thinking(text.to_owned()))
    }

    /// Tool calls in Ollama's format: `[{"function": {"name": …, "arguments": {…}}}]`.
    pub fn tools(self, calls: Value) -> Self {
        self.step(Step::Tools(calls))
    }

    /// A custom line.
    pub fn line(self, line: Value) -> Self {
        self.step(Step::Line(line))
    }

    /// Custom bytes.
    pub fn raw(self, bytes: &[u8]) -> Self {
        self.step(Step::Raw(bytes.to_vec()))
    }

    /// Repeats custom bytes until the client disconnects.
    pub fn forever(self, bytes: &[u8], pause: Duration) -> Self {
        self.step(Step::Forever(bytes.to_vec(), pause))
    }

    /// Pauses.
    pub fn wait(self, pause: Duration) -> Self {
        self.step(Step::Wait(pause))
    }

    /// Pauses until the test calls [`OllamaStub::release`], which ends one such pause.
    pub fn hold(self) -> Self {
        self.step(Step::Hold)
    }

    /// An error line, which ends the answer.
    pub fn error(self, error: &str) -> Self {
        self.step(Step::Error(error.to_owned())).unfinished()
    }

    /// Cuts the connection.
    pub fn cut(self) -> Self {
        self.step(Step::Cut)
    }

    /// Sends nothing more, but keeps the connection open.
    pub fn silence(self) -> Self {
        self.step(Step::Silence)
    }

    /// Ends as if complete, but without the last line.
    pub fn unfinished(mut self) -> Self {
        self.ends = false;
        self
    }

    /// Fields of the last line, such as counts.
    pub fn done(mut self, fields: Value) -> Self {
        merge(&mut self.done, fields);
        self
    }

    /// Ends at the length limit.
    pub fn cut_at_length(self) -> Self {
        self.done(json!({ "done_reason": "length" }))
    }

    /// Marks every line as written by another machine.
    pub fn remote(mut self, host: &str) -> Self {
        self.remote = Some(host.to_owned());
        self
    }

    /// Sends the body in pieces of this many bytes.
    pub fn split_every(mut self, bytes: usize) -> Self {
        self.split = Some(bytes);
        self
    }
}

fn merge(into: &mut Value, fields: Value) {
    if let (Value::Object(into), Value::Object(fields)) = (into, fields) {
        into.extend(fields);
    }
}

#[derive(Default)]
struct State {
    queues: HashMap<Ask, VecDeque<Answer>>,
    always: HashMap<Ask, Answer>,
    seen: Vec<Seen>,
    /// The loaded model and its window.
    loaded: Option<(String, u64)>,
    most_messages: Option<usize>,
    most_bytes: Option<usize>,
    stopped: bool,
    released: usize,
    connections: Vec<(TcpStream, JoinHandle<()>)>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

/// The server. Dropping it stops it.
pub struct OllamaStub {
    port: u16,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

impl OllamaStub {
    pub fn start() -> Self {
        let mut stub = Self { port: 0, shared: Arc::default(), listening: None };
        stub.restart();
        stub
    }

    /// Its address, for `LanguageModel.BaseUrl`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts every connection and stops listening.
    pub fn stop(&mut self) {
        let Some(listening) = self.listening.take() else { return };
        let connections = {
            let mut state = self.shared.state();
            state.stopped = true;
            state.loaded = None;
            std::mem::take(&mut state.connections)
        };
        for (connection, serving) in connections {
            // It may have ended, or panicked, which its own test shows.
            let _ = connection.shutdown(Shutdown::Both);
            let _ = serving.join();
        }
        // Wakes the listener so that it notices the stop.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        listening.join().unwrap();
    }

    /// Listens on the same port again, without a loaded model. Scripts and received requests stay.
    pub fn restart(&mut self) {
        self.stop();
        let listener = TcpListener::bind(("127.0.0.1", self.port)).unwrap();
        self.port = listener.local_addr().unwrap().port();
        self.shared.state().stopped = false;
        let shared = Arc::clone(&self.shared);
        self.listening = Some(thread::spawn(move || listen(&listener, &shared)));
    }

    /// Scripts the next reply that is not scripted yet.
    pub fn next(&self, answer: Answer) {
        self.next_to(Ask::Reply, answer);
    }

    /// Scripts the answer to the next request of a kind.
    pub fn next_to(&self, ask: Ask, answer: Answer) {
        self.shared.state().queues.entry(ask).or_default().push_back(answer);
    }

    /// Scripts the answer to all requests of a kind without another script.
    pub fn always_to(&self, ask: Ask, answer: Answer) {
        self.shared.state().always.insert(ask, answer);
    }

    /// Refuses requests with more messages than this as too long.
    pub fn most_messages(&self, most: usize) {
        self.shared.state().most_messages = Some(most);
    }

    /// Refuses requests with more bytes than this as too long.
    pub fn most_bytes(&self, most: usize) {
        self.shared.state().most_bytes = Some(most);
    }

    /// Ends one [`Answer::hold`], whether it was reached or not.
    pub fn release(&self) {
        self.shared.state().released += 1;
    }

    /// All requests so far, in order.
    pub fn all_seen(&self) -> Vec<Seen> {
        self.shared.state().seen.clone()
    }

    /// The requests of a kind so far.
    pub fn seen(&self, ask: Ask) -> Vec<Seen> {
        self.all_seen().into_iter().filter(|seen| seen.ask == ask).collect()
    }

    /// Waits for this many requests of a kind. Panics after five seconds.
    pub fn wait_for(&self, ask: Ask, count: usize) {
        self.wait_until(|seen| seen.iter().filter(|seen| seen.ask == ask).count() >= count);
    }

    /// Waits until a client disconnected before the end of the answer. Panics after five seconds. The stub notices it
    /// at a pause of the script: at `wait`, `hold`, `silence` or `late`.
    pub fn wait_until_closed_early(&self) {
        self.wait_until(|seen| seen.iter().any(|seen| seen.closed_early));
    }

    fn wait_until(&self, mut holds: impl FnMut(&[Seen]) -> bool) {
        let limit = Duration::from_secs(5);
        let state = self.shared.state();
        let waited = self.shared.changed.wait_timeout_while(state, limit, |s| !holds(&s.seen));
        assert!(!waited.unwrap().1.timed_out(), "waited in vain");
    }
}

impl Drop for OllamaStub {
    fn drop(&mut self) {
        self.stop();
    }
}

fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        let mut state = shared.state();
        if state.stopped {
            return;
        }
        // Otherwise each head would wait for the client's acknowledgement of earlier data.
        stream.set_nodelay(true).unwrap();
        let kept = stream.try_clone().unwrap();
        let shared = Arc::clone(shared);
        state.connections.push((kept, thread::spawn(move || serve(&stream, &shared))));
    }
}

fn serve(stream: &TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(seen) = read_request(&mut reader) {
        let (at, answer) = choose(shared, seen);
        let mut out = Out { stream, shared, at };
        if out.play(&answer).is_none() {
            break;
        }
    }
    // The listener's list holds another handle, so dropping this one would not close it.
    let _ = stream.shutdown(Shutdown::Both);
}

fn read_request(reader: &mut impl BufRead) -> Option<Seen> {
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut words = first.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).unwrap();
    let ask = ask(&path, &body);
    Some(Seen { ask, method, path, headers, body, closed_early: false })
}

fn ask(path: &str, body: &str) -> Ask {
    match path {
        "/api/show" => Ask::Show,
        "/api/ps" => Ask::Running,
        "/api/tags" => Ask::Tags,
        "/api/version" => Ask::Version,
        "/api/embed" => Ask::Embed,
        "/v1/models" => Ask::Models,
        "/props" => Ask::Props,
        "/api/v0/models" => Ask::Listed,
        "/v1/chat/completions" => {
            let body: Value = serde_json::from_str(body).unwrap_or_default();
            let one = body["stream"] == false && body["max_tokens"] == 1;
            if one { Ask::WarmUp } else { Ask::Reply }
        }
        "/api/chat" | "/api/generate" => {
            let body: Value = serde_json::from_str(body).unwrap_or_default();
            let messages = body["messages"].as_array().is_some_and(|all| !all.is_empty());
            let prompt = body["prompt"].as_str().is_some_and(|text| !text.is_empty());
            if !messages && !prompt {
                Ask::Load
            } else if body["stream"] == false && body["options"]["num_predict"] == 1 {
                Ask::WarmUp
            } else {
                Ask::Reply
            }
        }
        _ => Ask::Other,
    }
}

/// Records a request and chooses its answer.
fn choose(shared: &Shared, seen: Seen) -> (usize, Answer) {
    let mut state = shared.state();
    let body: Value = serde_json::from_str(&seen.body).unwrap_or_default();
    let scripted = if too_long(&state, &seen, &body) {
        Some(Answer::refusal(400, "the input length exceeds the context length"))
    } else {
        let queued = state.queues.get_mut(&seen.ask).and_then(VecDeque::pop_front);
        queued.or_else(|| state.always.get(&seen.ask).cloned())
    };
    let answer = scripted.unwrap_or_else(|| usual(&state, seen.ask, &body));
    if matches!(seen.ask, Ask::Reply | Ask::WarmUp | Ask::Load) && answer.status == 200 {
        let model = body["model"].as_str().unwrap_or_default();
        let tag = if model.contains(':') { "" } else { ":latest" };
        let window = body["options"]["num_ctx"].as_u64().unwrap_or(4096);
        state.loaded = Some((format!("{model}{tag}"), window));
    }
    state.seen.push(seen);
    shared.changed.notify_all();
    (state.seen.len() - 1, answer)
}

fn too_long(state: &State, seen: &Seen, body: &Value) -> bool {
    let messages = body["messages"].as_array().map_or(0, Vec::len);
    matches!(seen.ask, Ask::Reply | Ask::WarmUp)
        && (state.most_messages.is_some_and(|most| messages > most)
            || state.most_bytes.is_some_and(|most| seen.body.len() > most))
}

fn usual(state: &State, ask: Ask, body: &Value) -> Answer {
    match ask {
        Ask::Reply | Ask::WarmUp => Answer::saying(&["Fine."]),
        Ask::Load => Answer::saying(&[]).done(json!({ "done_reason": "load" })),
        Ask::Version => Answer::json(json!({ "version": "0.33.0" })),
        Ask::Show => Answer::json(json!({
            "capabilities": ["completion", "tools"],
            "model_info": { "general.architecture": "llama", "llama.context_length": 8192 },
        })),
        Ask::Tags => Answer::json(json!({ "models": [{
            "name": "llama3.2:latest", "model": "llama3.2:latest", "size": 2_019_393_189_u64,
            "modified_at": "2025-08-24T18:36:25.123456789+02:00", "digest": "a80c4f17acd5",
            "details": { "family": "llama", "parameter_size": "3.2B", "quantization_level": "Q4_K_M" },
        }] })),
        Ask::Running => {
            let models: Vec<Value> = state
                .loaded
                .iter()
                .map(|(name, window)| json!({ "name": name, "context_length": window }))
                .collect();
            Answer::json(json!({ "models": models }))
        }
        Ask::Embed => {
            let texts = body["input"].as_array().cloned().unwrap_or_default();
            let vectors: Vec<Value> =
                texts.iter().map(|text| json!([text.as_str().unwrap().len(), 1.0, 0.5])).collect();
            Answer::json(json!({ "embeddings": vectors }))
        }
        Ask::Models => Answer::json(json!({ "object": "list", "data": [{
            "id": "llama3.2", "aliases": [], "object": "model", "owned_by": "llamacpp",
            "meta": { "n_ctx": 8192, "n_ctx_train": 131_072, "n_params": 3_212_749_888_u64, "size": 2_011_539_712_u64,
                "ftype": "Q4_K_M" },
        }] })),
        Ask::Props => Answer::json(json!({ "default_generation_settings": { "n_ctx": 8192 } })),
        Ask::Listed | Ask::Other => Answer::body(404, "404 page not found"),
    }
}

/// An answer being sent. The methods return `None` after the connection has ended.
struct Out<'a> {
    stream: &'a TcpStream,
    shared: &'a Shared,
    /// The index of the request that it answers.
    at: usize,
}

impl Out<'_> {
    fn play(&mut self, answer: &Answer) -> Option<()> {
        if answer.hangs_up {
            return None;
        }
        self.pause(answer.late)?;
        if answer.no_head {
            return self.pause(Duration::MAX);
        }
        let (body, path) = {
            let state = self.shared.state();
            let seen = &state.seen[self.at];
            let body: Value = serde_json::from_str(&seen.body).unwrap_or_default();
            (body, seen.path.clone())
        };
        if let Some(fixed) = &answer.fixed {
            return self.whole(answer, answer.status, fixed);
        }
        let events = path == "/v1/chat/completions";
        let form = Form {
            chat: path == "/api/chat" || events,
            events,
            model: body["model"].clone(),
            answer,
        };
        if body["stream"] == false { self.at_once(&form) } else { self.in_pieces(&form) }
    }

    fn in_pieces(&mut self, form: &Form<'_>) -> Option<()> {
        let answer = form.answer;
        let kind = if form.events { "text/event-stream" } else { "application/x-ndjson" };
        self.head(answer, 200, kind, "transfer-encoding: chunked")?;
        for step in &answer.steps {
            match step {
                Step::Raw(bytes) => self.chunks(answer, bytes)?,
                Step::Forever(bytes, pause) => loop {
                    self.chunks(answer, bytes)?;
                    self.pause(*pause)?;
                },
                Step::Wait(pause) => self.pause(*pause)?,
                Step::Hold => self.hold()?,
                Step::Silence => self.pause(Duration::MAX)?,
                Step::Cut => return None,
                _ => self.chunks(answer, form.sent(&form.line(step)).as_bytes())?,
            }
        }
        if answer.ends {
            self.chunks(answer, form.sent(&form.last()).as_bytes())?;
        }
        self.send(b"0\r\n\r\n")
    }

    fn at_once(&mut self, form: &Form<'_>) -> Option<()> {
        let mut whole = form.last();
        for step in &form.answer.steps {
            match step {
                Step::Raw(bytes) => {
                    let bytes = String::from_utf8_lossy(bytes).into_owned();
                    return self.whole(form.answer, 200, &bytes);
                }
                Step::Wait(pause) => self.pause(*pause)?,
                Step::Hold => self.hold()?,
                Step::Silence => self.pause(Duration::MAX)?,
                Step::Cut => return None,
                Step::Error(_) => {
                    return self.whole(form.answer, 500, &form.line(step).to_string());
                }
                _ => append(&mut whole, &form.line(step)),
            }
        }
        whole["done"] = json!(form.answer.ends);
        if form.events {
            // Indented, as LM Studio does.
            let whole = serde_json::to_string_pretty(&form.completion(&whole)).unwrap();
            return self.whole(form.answer, 200, &whole);
        }
        self.whole(form.answer, 200, &whole.to_string())
    }

    fn whole(&mut self, answer: &Answer, status: u16, body: &str) -> Option<()> {
        let length = format!("content-length: {}", body.len());
        self.head(answer, status, "application/json", &length)?;
        for piece in body.as_bytes().chunks(answer.split.unwrap_or(usize::MAX)) {
            self.send(piece)?;
        }
        Some(())
    }

    fn head(&mut self, answer: &Answer, status: u16, kind: &str, length: &str) -> Option<()> {
        let mut head = format!("HTTP/1.1 {status} Scripted\r\n{length}\r\n");
        if !answer.headers.iter().any(|(name, _)| name == "content-type") {
            head.push_str(&format!("content-type: {kind}\r\n"));
        }
        for (name, value) in &answer.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.send(format!("{head}\r\n").as_bytes())
    }

    fn chunks(&mut self, answer: &Answer, bytes: &[u8]) -> Option<()> {
        for piece in bytes.chunks(answer.split.unwrap_or(usize::MAX)) {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            self.send(&chunk)?;
        }
        Some(())
    }

    fn send(&mut self, bytes: &[u8]) -> Option<()> {
        if self.stream.write_all(bytes).is_err() {
            return self.closed_early();
        }
        Some(())
    }

    /// Waits, and checks whether the client disconnects meanwhile.
    fn pause(&mut self, pause: Duration) -> Option<()> {
        let start = Instant::now();
        while let Some(left) = pause.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
            self.look(left.min(Duration::from_secs(1)))?;
        }
        Some(())
    }

    fn hold(&mut self) -> Option<()> {
        loop {
            {
                let mut state = self.shared.state();
                if state.released > 0 {
                    state.released -= 1;
                    return Some(());
                }
            }
            self.look(Duration::from_millis(2))?;
        }
    }

    /// Waits the given time; `None` if the client has disconnected.
    fn look(&mut self, time: Duration) -> Option<()> {
        self.stream.set_read_timeout(Some(time.max(Duration::from_millis(1)))).unwrap();
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_read_timeout(None).unwrap();
        match peeked {
            Ok(0) => self.closed_early(),
            Ok(_) => {
                thread::sleep(time);
                Some(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Some(())
            }
            Err(_) => self.closed_early(),
        }
    }

    fn closed_early(&mut self) -> Option<()> {
        let mut state = self.shared.state();
        // Stopping the server is not a disconnect by the client.
        if !state.stopped {
            state.seen[self.at].closed_early = true;
        }
        self.shared.changed.notify_all();
        None
    }
}

/// The format of lines.
struct Form<'a> {
    chat: bool,
    /// Whether lines are events of chat completions.
    events: bool,
    model: Value,
    answer: &'a Answer,
}

impl Form<'_> {
    /// A line as it goes over the network.
    fn sent(&self, line: &Value) -> String {
        if !self.events {
            return format!("{line}\n");
        }
        // A test's own lines and errors are sent unchanged.
        if line.get("done").is_none() {
            return format!("data: {line}\n\n");
        }
        let mut chunk = self.completion(line);
        let over = line["done"] == true;
        let choice = &mut chunk["choices"][0];
        choice["delta"] = choice["message"].take();
        choice.as_object_mut().unwrap().remove("message");
        if !over {
            chunk.as_object_mut().unwrap().remove("usage");
            chunk["choices"][0]["finish_reason"] = Value::Null;
            return format!("data: {chunk}\n\n");
        }
        let mut counts = chunk.clone();
        counts["choices"] = json!([]);
        chunk.as_object_mut().unwrap().remove("usage");
        format!(": still here\n\ndata: {chunk}\n\ndata: {counts}\n\ndata: [DONE]\n\n")
    }

    /// Converts a line of Ollama to a chat completion.
    fn completion(&self, line: &Value) -> Value {
        let from = &line["message"];
        let mut message = json!({ "role": "assistant", "content": from["content"] });
        if let Some(thought) = from["thinking"].as_str() {
            message["reasoning_content"] = json!(thought);
        }
        if let Some(calls) = from["tool_calls"].as_array() {
            let calls = calls.iter().enumerate().map(|(at, call)| {
                let mut call = call.clone();
                call["index"] = json!(at);
                call["type"] = json!("function");
                let arguments = call["function"]["arguments"].to_string();
                call["function"]["arguments"] = json!(arguments);
                call
            });
            message["tool_calls"] = calls.collect();
        }
        let reason = line["done_reason"].as_str().unwrap_or("stop");
        json!({
            "id": "chatcmpl-1", "object": "chat.completion", "model": self.model,
            "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
            "usage": {
                "prompt_tokens": line["prompt_eval_count"], "completion_tokens": line["eval_count"],
                "prompt_tokens_details": { "cached_tokens": line["prompt_cached_count"] },
            },
        })
    }

    fn line(&self, step: &Step) -> Value {
        let mut line = match step {
            Step::Text(text) if self.chat => {
                json!({ "message": { "role": "assistant", "content": text } })
            }
            Step::Thinking(text) if self.chat => {
                json!({ "message": { "role": "assistant", "content": "", "thinking": text } })
            }
            Step::Tools(calls) => {
                json!({ "message": { "role": "assistant", "content": "", "tool_calls": calls } })
            }
            Step::Text(text) => json!({ "response": text }),
            Step::Thinking(text) => json!({ "response": "", "thinking": text }),
            Step::Error(error) => return json!({ "error": error }),
            Step::Line(line) => return line.clone(),
            _ => json!({}),
        };
        merge(&mut line, self.frame(false));
        line
    }

    fn last(&self) -> Value {
        let mut line = if self.chat {
            json!({ "message": { "role": "assistant", "content": "" } })
        } else {
            json!({ "response": "" })
        };
        merge(&mut line, self.frame(true));
        let pieces = self.answer.steps.iter().filter(|step| matches!(step, Step::Text(_))).count();
        let counts = json!({
            "done_reason": "stop", "total_duration": 400_000_000, "load_duration": 1_000_000,
            "prompt_eval_count": 26, "prompt_eval_duration": 130_000_000,
            "eval_count": pieces, "eval_duration": 260_000_000,
        });
        merge(&mut line, counts);
        merge(&mut line, self.answer.done.clone());
        line
    }

    fn frame(&self, done: bool) -> Value {
        let mut frame = json!({ "model": self.model, "created_at": "2025-08-24T16:36:25.123456Z", "done": done });
        if let Some(host) = &self.answer.remote {
            merge(&mut frame, json!({ "remote_host": host, "remote_model": "large" }));
        }
        frame
    }
}

/// Adds a line to a whole answer.
fn append(whole: &mut Value, line: &Value) {
    let mut add = |pointer: &[&str]| {
        let from = pointer.iter().fold(line, |value, name| &value[*name]);
        if let Some(more) = from.as_str().filter(|more| !more.is_empty()) {
            let to = pointer.iter().fold(&mut *whole, |value, name| &mut value[*name]);
            *to = json!(format!("{}{more}", to.as_str().unwrap_or_default()));
        }
    };
    add(&["message", "content"]);
    add(&["message", "thinking"]);
    add(&["response"]);
    add(&["thinking"]);
    if !line["message"]["tool_calls"].is_null() {
        whole["message"]["tool_calls"] = line["message"]["tool_calls"].clone();
    }
}
