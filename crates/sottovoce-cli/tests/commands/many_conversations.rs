//! Many conversations in a process that may open few files.

use super::*;
use serve::{says, started};
use sync::done;
use talk::Talk;

/// The hard limit of the processes.
const FILES: u32 = 128;
/// More than so few files would do for, at one for each conversation's folder and one for each head.
const CONVERSATIONS: usize = 90;

/// The same command where only so few files may be open, and no more can be had.
fn with_few_files(command: &Command) -> Command {
    let mut few = Command::new("/bin/sh");
    few.arg("-c").arg(format!("ulimit -n {FILES} && exec \"$0\" \"$@\""));
    few.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null()).env_clear();
    few.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    few.current_dir(command.get_current_dir().unwrap());
    few
}

/// An export of ChatGPT with a question in each conversation.
fn export(home: &Home) -> String {
    let conversation = |number: usize| {
        let message = serde_json::json!({
            "id": format!("m{number}"), "author": { "role": "user" }, "create_time": 1_735_787_045 + number,
            "content": { "content_type": "text", "parts": [format!("leeks number {number}")] },
        });
        serde_json::json!({
            "id": format!("c{number:03}"), "title": format!("T{number}"), "current_node": "a",
            "mapping": { "a": { "id": "a", "parent": null, "message": message } },
        })
    };
    let all: Vec<Value> = (0..CONVERSATIONS).map(conversation).collect();
    let file = home.path().join("conversations.json");
    std::fs::write(&file, Value::from(all).to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn more_conversations_than_files_may_be_open_are_read_cleaned_and_shared() {
    let (talk, remote) = (Talk::new(), tempfile::tempdir().unwrap());
    let home = &talk.home;
    let run = |arguments: &[&str]| {
        let output = with_few_files(&talk.command(arguments)).output().unwrap();
        assert_eq!(code(&output), 0, "{arguments:?}: {}", err(&output));
        out(&output)
    };
    let imported = run(&["import", "openai", &export(home)]);
    assert!(imported.ends_with(&format!("in {CONVERSATIONS} conversations\n")), "{imported}");
    let order: Vec<&str> =
        imported.lines().filter_map(|line| line.split_once("  ")).map(|line| line.0).collect();
    assert!(order.len() == CONVERSATIONS && order.is_sorted(), "{order:?}");
    let newest = format!("\"leeks number {}\"", CONVERSATIONS - 1);
    assert!(run(&["search", "--all", &newest]).contains("leeks number"));
    assert_eq!(run(&["conversations", "--json"]).lines().count(), CONVERSATIONS);
    for every in [
        &["cleanup", "--all"][..],
        &["verify", "--all"],
        &["context", "list"],
        &["sync", "init", remote.path().to_str().unwrap(), "--name", "first"],
        &["sync"],
    ] {
        run(every);
    }

    // It serves more rooms than that, and shares them at the same time.
    let command = talk.command(&["serve", "--addr", "127.0.0.1:0"]);
    let served = started(&mut with_few_files(&command));
    for number in 0..CONVERSATIONS {
        let answer = served.ask(&format!("/s/c{number:03}/api/chat"), &says("hello"));
        assert!(answer.starts_with("HTTP/1.1 200"), "room {number}: {answer}");
    }
    let (ended, _) = served.end();
    assert_eq!(code(&ended), 130);
    done(&with_few_files(&talk.command(&["sync"])).output().unwrap());
    assert_eq!(
        run(&["search", "--all", "hello", "-n", "1000"]).matches("hello").count(),
        CONVERSATIONS
    );
}

#[test]
fn the_usual_limit_of_open_files_is_raised_and_doctor_tells_it() {
    let home = Home::new();
    let files = |command: &mut Command| {
        let told = parsed(&command.output().unwrap());
        told.into_iter().find(|line| line["about"] == "files").unwrap()
    };
    let doctor = home.command(&["doctor", "--json"]);
    let few = files(&mut with_few_files(&doctor));
    assert_eq!(few["state"], "warn");
    assert!(few["what"].as_str().unwrap().contains(&format!("only {FILES} ")), "{few}");
    let mut soft = Command::new("/bin/sh");
    soft.args(["-c", "ulimit -Sn 64 && ulimit -Hn 1500 && exec \"$0\" \"$@\""]);
    soft.arg(doctor.get_program()).args(doctor.get_args()).env_clear().env("HOME", home.path());
    let raised = files(soft.current_dir(home.path()));
    assert_eq!(raised["what"], "1500 may be open at once", "{raised}");
}
