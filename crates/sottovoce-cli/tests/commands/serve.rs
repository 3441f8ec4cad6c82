//! The endpoint in front of the model server, as a process.

use std::io::Read;
use std::net::TcpStream;

use super::*;
use ollama::{Answer, Ask};
use talk::Talk;

/// A server that runs, and its address.
pub(super) struct Served {
    child: Child,
    address: String,
    /// What it says on standard error.
    errors: std::thread::JoinHandle<String>,
}

fn serve(talk: &Talk, options: &[&str]) -> Served {
    started(
        &mut talk.command(&[options, &["--verbose", "serve", "--addr", "127.0.0.1:0"]].concat()),
    )
}

pub(super) fn started(command: &mut Command) -> Served {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    let address = loop {
        let mut line = String::new();
        assert_ne!(errors.read_line(&mut line).unwrap(), 0, "{said}");
        said.push_str(&line);
        if let Some((_, address)) = line.trim().split_once("serving at http://") {
            break address.to_owned();
        }
    };
    let errors = std::thread::spawn(move || {
        errors.read_to_string(&mut said).unwrap();
        said
    });
    Served { child, address, errors }
}

impl Served {
    /// Sends a request, and returns the connection.
    fn send(&self, path: &str, body: &Value) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        stream
    }

    pub(super) fn ask(&self, path: &str, body: &Value) -> String {
        let mut answer = String::new();
        self.send(path, body).read_to_string(&mut answer).unwrap();
        answer
    }

    pub(super) fn end(self) -> (Output, String) {
        signal(&self.child, "-TERM");
        (ended(self.child), self.errors.join().unwrap())
    }
}

pub(super) fn says(words: &str) -> Value {
    serde_json::json!({ "model": "llama3.2", "messages": [{ "role": "user", "content": words }] })
}

#[test]
fn a_client_of_ollama_gets_a_memory_and_no_log_holds_its_words() {
    let talk = Talk::new();
    let served = serve(&talk, &[]);
    let answer = served.ask("/s/kitchen/api/chat", &says("My cat is called Minka."));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("Fine."), "{answer}");
    served.ask("/s/kitchen/v1/chat/completions", &says("What is my cat called?"));
    assert!(talk.stub.seen(Ask::Reply)[1].body.contains("My cat is called Minka."));
    talk.stub.next(Answer::refusal(500, "Minka is no model"));
    served.ask("/s/kitchen/api/chat", &says("Minka, come here."));
    served.ask("/s/kitchen/api/chat", &serde_json::json!({ "Minka": "Minka" }));
    let (output, errors) = served.end();
    assert_eq!(code(&output), 130, "{errors}");
    assert!(!errors.contains("Minka") && !errors.contains("cat"), "{errors}");
    let tail = talk.run(&["--scope", "kitchen", "tail", "--json"]);
    assert_eq!(rows(&tail).len(), 5);
    assert_eq!(code(&talk.run(&["verify", "--all"])), 0);
}

#[test]
fn a_failed_turn_is_logged_without_its_words_even_if_no_log_was_asked_for() {
    let talk = Talk::new();
    let mut command = talk.command(&["serve", "--addr", "127.0.0.1:0"]);
    command.env("SOTTOVOCE__LANGUAGEMODEL__BASEURL", "http://127.0.0.1:1");
    let served = started(&mut command);
    let answer = served.ask("/api/chat", &says("My cat is called Minka."));
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    let (_, errors) = served.end();
    assert!(errors.contains("WARN") && errors.contains("Connection refused"), "{errors}");
    assert!(!errors.contains("DEBUG") && !errors.contains("Minka"), "{errors}");
}

#[test]
fn a_server_that_is_killed_in_the_middle_of_a_turn_has_kept_the_utterance() {
    let talk = Talk::new();
    for turn in 0..3 {
        let mut served = serve(&talk, &[]);
        talk.stub.next(Answer::saying(&["It is "]).silence());
        let open = served.send("/api/chat", &says(&format!("Turn {turn}.")));
        talk.stub.wait_for(Ask::Reply, turn + 1);
        served.child.kill().unwrap();
        served.child.wait().unwrap();
        drop(open);
        assert_eq!(talk.home.words().len(), turn + 1);
    }
    assert_eq!(talk.home.words(), ["Turn 0.", "Turn 1.", "Turn 2."]);
    assert_eq!(code(&talk.run(&["verify", "--all"])), 0);
    // The next process answers the last one, which still waits, and does not store it twice.
    let served = serve(&talk, &[]);
    served.ask("/api/chat", &says("Turn 2."));
    served.end();
    assert_eq!(talk.home.words(), ["Turn 0.", "Turn 1.", "Turn 2.", "Fine."]);
}

#[test]
fn what_had_come_of_an_answer_is_kept_when_the_server_is_told_to_end() {
    let talk = Talk::new();
    let served = serve(&talk, &[]);
    talk.stub.next(Answer::saying(&["It is "]).silence());
    let mut open = served.send("/api/chat", &says("Rain?"));
    let mut first = [0; 2048];
    while !String::from_utf8_lossy(&first).contains("It is ") {
        assert_ne!(open.read(&mut first).unwrap(), 0);
    }
    let (output, errors) = served.end();
    assert_eq!(code(&output), 130, "{errors}");
    assert!(errors.contains("stopping; answers in progress"), "{errors}");
    let kept = talk.kept();
    assert_eq!(kept[1]["content"], "It is ");
    assert_eq!(kept[1]["metadata"]["cutOff"], "interrupted");
}

#[test]
fn an_address_that_others_reach_needs_a_key_and_a_wrong_file_of_keys_is_named_without_its_keys() {
    let talk = Talk::new();
    let open = talk.run(&["serve", "--addr", "0.0.0.0:0"]);
    assert_eq!(code(&open), 2);
    assert!(err(&open).contains("Serve.Token"), "{}", err(&open));
    let file = talk.home.path().join("keys");
    std::fs::write(&file, "named/kitchen one\nkitchen secret\n").unwrap();
    let mut command = talk.command(&["serve", "--addr", "127.0.0.1:0"]);
    let wrong = command.env("SOTTOVOCE__SERVE__KEYSFILE", &file).output().unwrap();
    assert_eq!(code(&wrong), 2);
    let said = err(&wrong);
    assert!(said.contains("line 2") && !said.contains("secret"), "{said}");
    for (name, value) in [("TOKEN", " "), ("ADDRESS", "localhost"), ("MAXCONNECTIONS", "many")] {
        let mut command = talk.command(&["serve"]);
        let wrong = command.env(format!("SOTTOVOCE__SERVE__{name}"), value).output().unwrap();
        assert_eq!(code(&wrong), 5, "{name}: {}", err(&wrong));
    }
    talk.home.configure(r#"{"Serve": {"Adress": "127.0.0.1:1"}}"#);
    let wrong = talk.home.run(&["serve"]);
    assert!(err(&wrong).contains("Serve.Address"), "{}", err(&wrong));
}

#[test]
fn paths_without_a_scope_belong_to_the_commands_own_conversation() {
    let talk = Talk::new();
    let served = serve(&talk, &["--room", "hall"]);
    served.ask("/api/chat", &says("Hello."));
    served.end();
    let tail = talk.run(&["--scope", "hall", "tail", "--json"]);
    assert_eq!(rows(&tail).len(), 2);
}

#[test]
fn no_server_starts_with_the_key_of_another_store() {
    let home = Home::new();
    home.run(&["append", "--role", "user", "one"]);
    for server in [
        &["serve", "--addr", "127.0.0.1:0"][..],
        &["wyoming", "--addr", "127.0.0.1:0"],
        &["mcp", "--http", "127.0.0.1:0"],
        &["mcp"],
        &["page", "--addr", "127.0.0.1:0"],
        &["up"],
    ] {
        let mut command = home.command(server);
        command.env("SOTTOVOCE__CONTEXT__ENCRYPTIONKEY", "another key of this house");
        let refused = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(code(&refused), 4, "{server:?}: {}", err(&refused));
        assert!(!err(&refused).contains("127.0.0.1"), "{}", err(&refused));
    }
}

#[test]
fn a_file_of_keys_without_a_key_is_refused_and_one_that_others_may_read_is_noted() {
    use std::os::unix::fs::PermissionsExt;

    let talk = Talk::new();
    let keys = talk.home.path().join("keys");
    std::fs::write(&keys, "# named/kitchen a-key-of-the-kitchen\n\n").unwrap();
    let with_keys = |arguments: &[&str]| {
        let mut command = talk.command(arguments);
        command.env("SOTTOVOCE__SERVE__KEYSFILE", &keys);
        command
    };
    let refused = with_keys(&["serve", "--addr", "127.0.0.1:0"]).output().unwrap();
    assert_eq!(code(&refused), 2, "{}", err(&refused));
    assert!(err(&refused).contains("holds no key"), "{}", err(&refused));
    std::fs::write(&keys, "named/kitchen a-key-of-the-kitchen\n").unwrap();
    for (mode, is_noted) in [(0o644, true), (0o600, false)] {
        std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(mode)).unwrap();
        let served = started(&mut with_keys(&["serve", "--addr", "127.0.0.1:0"]));
        assert!(served.ask("/s/kitchen/api/chat", &says("Hello.")).starts_with("HTTP/1.1 401"));
        let (_, said) = served.end();
        assert_eq!(said.contains("chmod 600"), is_noted, "{said}");
        assert!(!said.contains("a-key-of-the-kitchen"), "{said}");
    }
}
