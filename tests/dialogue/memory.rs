//! A model reads artifacts and earlier messages with the conversation's own functions.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice)]

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::common::block_on;
use crate::common::scripted::{House, done, said};
use sottovoce::conversation::MemoryTools;
use sottovoce::model::{OllamaChatRenderer, PromptRenderer, ReplyPart};
use sottovoce::store::{Artifact, ArtifactKind, NewArtifact, find_artifact};
use sottovoce::{Answer, AnswerEvent, ChatMessage, ChatRole, Error, ModelOptions, ToolCall};

async fn house() -> House {
    house_with(MemoryTools::default()).await
}

async fn house_with(memory: MemoryTools) -> House {
    let house = House::with(|builder| builder.min_confidence(0.5).memory_tools(memory)).await;
    house.model.calls.store(true, Ordering::Relaxed);
    house
}

fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall { id: "c1".to_owned(), name: name.to_owned(), arguments }
}

fn calls(house: &House, all: &[(&str, Value)]) {
    let calls = all.iter().map(|(name, arguments)| call(name, arguments.clone())).collect();
    house.model.answers([Ok(ReplyPart::ToolCalls(calls)), done()]);
}

async fn add(house: &House, name: &str, text: &str) -> Artifact {
    let new = NewArtifact::new(ArtifactKind::File, name);
    let text = Box::new(std::io::Cursor::new(text.to_owned().into_bytes()));
    let artifact =
        house.store.artifact_store().unwrap().add_artifact(new, text).await.unwrap().artifact;
    let note = format!("Added {}: {}", artifact.description(), artifact.reference());
    house.store.append_message(house.conversation.message(ChatRole::System, note)).await.unwrap();
    artifact
}

/// The result of the model's call, from the last request.
fn told(house: &House) -> String {
    let count = house.model.requests.lock().unwrap().len();
    house.model.read(count - 1).pop().unwrap()
}

async fn whole(answer: Answer) -> String {
    answer.whole().await.unwrap().0
}

#[test]
fn a_model_reads_an_artifact_that_a_message_refers_to() {
    block_on(async {
        let house = house().await;
        let notes = add(&house, "notes.md", "leeks\nbread\nmilk\n").await;
        calls(
            &house,
            &[("read_artifact", json!({ "id": notes.reference(), "from": "2", "lines": 1.0 }))],
        );
        house.model.says("Bread.");
        let mut answer = house.conversation.ask("What is on the second line?").await.unwrap();
        let (mut words, mut looked, mut lookups) = (String::new(), 0, 0);
        while let Some(piece) = answer.next().await {
            match piece.unwrap() {
                AnswerEvent::Text(text) => words.push_str(&text),
                AnswerEvent::LookedUp(call) => looked += usize::from(call.name == "read_artifact"),
                AnswerEvent::Done(kept) => lookups = kept.report.lookups,
                _ => panic!("nothing for the host to do"),
            }
        }
        assert_eq!((words.as_str(), looked, lookups), ("Bread.", 1, 1));
        assert_eq!(
            told(&house),
            "notes.md (file, 3 lines), lines 2 to 2:\nbread\n\n(There is more from line 3 on.)"
        );
        let tools = &house.model.request(0)["tools"];
        assert_eq!(tools[0]["function"]["name"], "read_artifact");
        assert_eq!(tools[1]["function"]["name"], "search_memory");
        // Stored as a call and its result, without a second copy of the text.
        let tail = house.store.read_tail(3).await.unwrap().messages;
        assert_eq!(tail[0].message.tool_calls[0].name, "read_artifact");
        assert_eq!(tail[1].message.role, ChatRole::Tool);
        assert_eq!(
            tail[1].message.content,
            format!("(Read lines 2 to 2 of notes.md (file, 3 lines): {})", notes.reference())
        );
        assert_eq!(tail[1].message.metadata["tool"], "read_artifact");
        assert_eq!(tail[2].message.content, "Bread.");
        // The next prompt begins like the last one, except for the parts that are not repeated.
        house.model.says("Fine.");
        whole(house.conversation.ask("Thanks").await.unwrap()).await;
        let (before, now) = (house.model.read(1), house.model.read(2));
        assert_eq!(before[..3], now[..3]);
        assert!(now[3].starts_with("(Read lines") && !now.join("").contains("bread"), "{now:?}");
    });
}

#[test]
fn a_model_finds_what_a_prompt_might_hold_and_nothing_else() {
    block_on(async {
        let house = house().await;
        let store = &house.store;
        let say = async |words: &str, change: &dyn Fn(&mut ChatMessage)| {
            let mut message = house.conversation.message(ChatRole::User, words);
            change(&mut message);
            store.append_message(message).await.unwrap().seq
        };
        say("the dentist cleared", &|_| {}).await;
        store.clear().await.unwrap();
        let pruned = say("the dentist pruned", &|_| {}).await;
        store.change_profile(Box::new(move |profile| profile.prune([pruned]))).await.unwrap();
        say("the dentist of a thread", &|message| message.thread_id = Some("7".to_owned())).await;
        say("the dentist is over", &|message| {
            message.metadata.insert("expiresAt".to_owned(), "2020-01-01T00:00:00Z".to_owned());
        })
        .await;
        say("the dentist perhaps", &|message| {
            message.metadata.insert("confidence".to_owned(), "0.2".to_owned());
        })
        .await;
        say("about the dentist perhaps", &|message| message.role = ChatRole::Assistant).await;
        let anna = |message: &mut ChatMessage| {
            message.metadata.insert("speaker".to_owned(), "Anna".to_owned());
        };
        let kept = say("the dentist is on Friday", &anna).await;
        for n in 0..60 {
            say(&format!("something else {n}"), &|_| {}).await;
        }
        calls(&house, &[("search_memory", json!({ "words": "when is the dentist?" }))]);
        house.model.says("On Friday.");
        whole(house.conversation.ask("When is the dentist?").await.unwrap()).await;
        let told = told(&house);
        assert!(
            told.starts_with("- ") && told.ends_with(", Anna: the dentist is on Friday\n"),
            "{told}"
        );
        assert_eq!(told.lines().count(), 1, "{told}");
        let tail = store.read_tail(2).await.unwrap().messages;
        assert_eq!(
            tail[0].message.content,
            format!("(Found what was said in the messages {kept})")
        );
        // A found message leaves no copy when it is forgotten.
        store.forget(&[kept..=kept]).await.unwrap();
        assert!(!house.words().await.join("\n").contains("Friday\n"));
        calls(&house, &[("search_memory", json!({ "words": "Friday" }))]);
        house.model.says("I said so.");
        whole(house.conversation.ask("Which day?").await.unwrap()).await;
    });
}

#[test]
fn wrong_arguments_are_answered_in_words() {
    block_on(async {
        for (name, arguments, words) in [
            ("read_artifact", json!({}), "Give `id` as a text"),
            ("read_artifact", json!("nonsense"), "Give `id` as a text"),
            ("read_artifact", json!({ "id": "NOTES", "from": -1 }), "whole numbers from 1"),
            ("read_artifact", json!({ "id": "NOTES", "lines": "few" }), "whole numbers from 1"),
            ("read_artifact", json!({ "id": "0".repeat(32) }), "No artifact of that id"),
            ("read_artifact", json!({ "id": "NOTES", "from": 9 }), "has no line 9"),
            ("read_artifact", json!({ "id": "PICTURE" }), "is not a text"),
            ("search_memory", json!({ "query": "x" }), "Give `words` as a text"),
            ("search_memory", json!({ "words": "unheard" }), "Nothing that was said"),
        ] {
            let house = house().await;
            let notes = add(&house, "notes.md", "one\n").await;
            let picture = add(&house, "picture", "a\0b").await;
            let arguments = arguments.to_string().replace("NOTES", &notes.id);
            let arguments = arguments.replace("PICTURE", &picture.id);
            let arguments: Value = serde_json::from_str(&arguments).unwrap();
            calls(&house, &[(name, arguments.clone())]);
            house.model.says("Oh.");
            whole(house.conversation.ask("Look").await.unwrap()).await;
            assert!(told(&house).contains(words), "{arguments}: {}", told(&house));
        }
    });
}

#[test]
fn an_artifact_that_the_prompt_does_not_name_is_not_opened() {
    block_on(async {
        let house = house().await;
        let notes = add(&house, "notes.md", "secret\n").await;
        house.conversation.clear().await.unwrap();
        for id in ["", &notes.id[..4], notes.id.as_str()] {
            calls(&house, &[("read_artifact", json!({ "id": id }))]);
            house.model.says("Oh.");
            whole(house.conversation.ask("Read it").await.unwrap()).await;
            assert!(told(&house).starts_with("No artifact of that id"), "{}", told(&house));
        }
        // A person may name it.
        calls(&house, &[("read_artifact", json!({ "id": &notes.id[..8] }))]);
        house.model.says("Oh.");
        let asked = format!("Read {}", &notes.id[..8]);
        whole(house.conversation.ask(asked).await.unwrap()).await;
        assert!(told(&house).contains("secret"), "{}", told(&house));
    });
}

#[test]
fn calls_and_bytes_of_one_answer_are_bounded() {
    block_on(async {
        let house = house_with(MemoryTools::default().calls(3).bytes(600)).await;
        let long = add(&house, "long.txt", &"a line of words\n".repeat(1000)).await;
        let read = || ("read_artifact", json!({ "id": long.id }));
        calls(&house, &[read(), read()]);
        calls(&house, &[read(), read()]);
        calls(&house, &[read()]);
        house.model.says("Enough.");
        let (words, kept) =
            house.conversation.ask("Read it all").await.unwrap().whole().await.unwrap();
        assert_eq!((words.as_str(), kept.report.lookups), ("Enough.", 3));
        assert!(told(&house).starts_with("No more functions"), "{}", told(&house));
        let results: Vec<String> =
            house.model.read(3).into_iter().filter(|words| words.starts_with("long.txt")).collect();
        assert_eq!(results.len(), 3);
        assert!(results.iter().all(|result| result.len() <= 600), "{}", results[0].len());
        // A model that only calls functions is not asked for ever.
        calls(&house, &[read(), read(), read()]);
        calls(&house, &[read()]);
        calls(&house, &[read()]);
        let answer = house.conversation.ask("And now?").await.unwrap().whole().await;
        assert!(matches!(answer, Err(Error::Model { .. })), "{answer:?}");
    });
}

#[test]
fn an_interrupted_turn_keeps_calls_and_results_together_and_can_be_asked_again() {
    block_on(async {
        let house = house().await;
        let notes = add(&house, "notes.md", "leeks\n").await;
        calls(&house, &[("read_artifact", json!({ "id": notes.id }))]);
        let hand = house.model.hand();
        hand.send(said("Le")).unwrap();
        let mut answer = house.conversation.ask("What do I need?").await.unwrap();
        loop {
            if let Some(Ok(AnswerEvent::Text(_))) = answer.next().await {
                break;
            }
        }
        drop(answer);
        house.conversation.close().await.unwrap();
        let roles: Vec<_> = house.kept().await.into_iter().map(|(role, ..)| role).collect();
        assert_eq!(
            roles,
            [
                ChatRole::System,
                ChatRole::User,
                ChatRole::Assistant,
                ChatRole::Tool,
                ChatRole::Assistant
            ]
        );
        house.model.says("Leeks.");
        whole(house.conversation.retry().await.unwrap()).await;
        let again = told(&house);
        assert!(again.starts_with("(Read lines 1 to 1 of notes.md"), "{again}");
    });
}

#[test]
fn a_host_gets_its_own_functions_and_the_others_are_not_run_beside_them() {
    block_on(async {
        let house = house().await;
        calls(&house, &[("search_memory", json!({ "words": "x" })), ("lamp", json!({}))]);
        house.model.says("Done.");
        let mut answer = house.conversation.ask("Light").await.unwrap();
        let Some(Ok(AnswerEvent::ToolCalls(asked))) = answer.next().await else {
            panic!("no calls")
        };
        assert_eq!(asked.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["lamp"]);
        while answer.next().await.is_some() {}
        let go_on = house.conversation.tool_results(vec!["on".to_owned()]).await.unwrap();
        assert_eq!(whole(go_on).await, "Done.");
        let read = house.model.read(1);
        assert!(read[read.len() - 2].starts_with("This function was not run"), "{read:?}");
        assert_eq!(read.last().unwrap(), "on");
    });
}

#[test]
fn a_model_without_functions_reads_a_short_artifact_where_its_note_stands() {
    block_on(async {
        let house = house().await;
        house.model.calls.store(false, Ordering::Relaxed);
        add(&house, "notes.md", "leeks\nbread\n").await;
        add(&house, "long.txt", &"words ".repeat(2000)).await;
        for (at, words) in ["What do I need?", "And?", "Thanks"].iter().enumerate() {
            house.model.says("Leeks.");
            let (_, kept) = house.conversation.ask(*words).await.unwrap().whole().await.unwrap();
            assert!(house.model.request(at)["tools"].is_null());
            let why: Vec<_> = kept
                .report
                .receipt
                .entries
                .iter()
                .map(|entry| entry.why.ends_with("with the text of its artifact"))
                .collect();
            assert_eq!(why[..2], [true, false]);
            let read = house.model.read(at);
            assert!(read[0].ends_with("\n  Its text:\n  leeks\n  bread\n  "), "{:?}", read[0]);
            assert!(!read[1].contains("words words"));
            assert_eq!(read[..2], house.model.read(0)[..2], "what stands before stays as it was");
        }
    });
}

#[test]
fn the_prompt_that_is_shown_is_the_prompt_that_is_sent() {
    block_on(async {
        for calls in [false, true] {
            let house = house().await;
            house.model.calls.store(calls, Ordering::Relaxed);
            add(&house, "notes.md", "leeks\nbread\n").await;
            house.model.says("Leeks.");
            let answer = house.conversation.ask("What do I need?").await.unwrap();
            let asked = answer.utterance().unwrap().clone();
            whole(answer).await;
            let (prompt, receipt) = house.conversation.prompt(asked.clone()).await.unwrap();
            let shown = OllamaChatRenderer::new(ModelOptions::new("scripted")).render(&prompt);
            assert_eq!(shown.body, house.model.requests.lock().unwrap()[0], "functions: {calls}");
            assert_eq!(receipt.entries.len(), 1);
            // A host that asks its own model offers no functions.
            let (prompt, _) = house.conversation.without_model().prompt(asked).await.unwrap();
            let shown = OllamaChatRenderer::new(ModelOptions::new("scripted")).render(&prompt);
            assert!(shown.body.contains("Its text:") && !shown.body.contains("read_artifact"));
        }
    });
}

#[test]
fn an_artifact_of_mimir_is_found_by_the_id_that_it_had_there() {
    block_on(async {
        let house = house().await;
        let new =
            NewArtifact::new(ArtifactKind::File, "old.md").with_metadata("mimirId", "artifact-7");
        let old = house
            .store
            .artifact_store()
            .unwrap()
            .add_artifact(new, Box::new("old words\n".as_bytes()))
            .await
            .unwrap()
            .artifact;
        for id in ["artifact-7", "artifact://artifact-7", old.id.as_str()] {
            assert_eq!(find_artifact(&*house.store, id).await.unwrap(), old.id, "{id}");
        }
        assert!(matches!(
            find_artifact(&*house.store, "artifact-").await,
            Err(Error::NoSuchArtifact { .. })
        ));
        calls(&house, &[("read_artifact", json!({ "id": "artifact-7" }))]);
        house.model.says("Old.");
        whole(house.conversation.ask("See artifact-7").await.unwrap()).await;
        assert!(told(&house).ends_with("lines 1 to 1:\nold words\n"), "{}", told(&house));
    });
}
