//! Summaries that replace older messages, and what removes them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Duration;

use crate::common::block_on;
use crate::common::scripted::{House, done, said};
use sottovoce::export::{ExportForm, ExportRange, Exporter};
use sottovoce::model::{ModelFailure, OllamaChatRenderer, PromptRenderer};
use sottovoce::{ChatRole, Error};

const SUMMARY: &str = "Ada is allergic to nuts.";

async fn talk(house: &House, numbers: std::ops::RangeInclusive<u32>) {
    for n in numbers {
        house.conversation.prepare_turn(format!("question {n}")).await.unwrap();
        house.conversation.store_reply(format!("answer {n}")).await.unwrap();
    }
}

fn long_summary(n: u32) -> String {
    let sentences = (0..10).map(|at| format!("It says this and that {at} times {n}. "));
    format!("Summary {n}. {}", sentences.collect::<String>())
}

async fn bytes(house: &House) -> String {
    let prompt = house.conversation.prompt("And now?").await.unwrap().0;
    let body = OllamaChatRenderer::new(sottovoce::ModelOptions::new("x")).render(&prompt).body;
    // The newest turn contains the time.
    body.rsplit_once("[").unwrap().0.to_owned()
}

#[test]
fn a_summary_stands_for_older_messages_and_can_be_taken_back_to_the_byte() {
    block_on(async {
        let house = House::new().await;
        talk(&house, 1..=10).await;
        let before = bytes(&house).await;
        house.model.says(SUMMARY);
        let summarized = house.conversation.summarize(4).await.unwrap();
        assert_eq!((summarized.messages, summarized.requests), (16, 1));
        assert!(summarized.tokens_after < summarized.tokens_before);
        let after = bytes(&house).await;
        assert!(after.contains(SUMMARY) && after.contains("question 9"));
        assert!(!after.contains("question 8") && !after.contains("answer 1\""));
        assert!(after.find(SUMMARY) < after.find("question 9"), "at the head");
        assert_eq!(house.words().await.len(), 20, "all of it is stored still");
        assert!(house.conversation.undo_summary().await.unwrap());
        assert_eq!(bytes(&house).await, before);
        assert!(!house.conversation.undo_summary().await.unwrap());
    });
}

#[test]
fn a_later_compaction_goes_on_from_the_summary_and_reads_no_message_twice() {
    block_on(async {
        let house = House::new().await;
        talk(&house, 1..=6).await;
        house.model.says(SUMMARY);
        house.conversation.summarize(2).await.unwrap();
        talk(&house, 7..=9).await;
        house.model.says("Ada likes jazz.");
        let summarized = house.conversation.summarize(2).await.unwrap();
        assert_eq!(summarized.messages, 6);
        let asked = house.model.read(1).concat();
        assert!(!asked.contains(SUMMARY) && asked.contains("question 6"));
        assert!(!asked.contains("question 5") && !asked.contains("question 9"));
        let after = bytes(&house).await;
        let known = format!("{SUMMARY}\\n  Ada likes jazz.");
        assert!(after.contains(&known) && after.contains("question 9"), "{after}");
        // Nothing is left to summarize, and the model is not asked.
        assert_eq!(house.conversation.summarize(2).await.unwrap().requests, 0);
        house.conversation.undo_summary().await.unwrap();
        let before = bytes(&house).await;
        assert!(before.contains(SUMMARY) && !before.contains("jazz"));
    });
}

#[test]
fn more_than_one_request_holds_is_summarized_step_by_step_and_taken_back_at_once() {
    block_on(async {
        let house = House::new().await;
        for n in 0..12 {
            house
                .conversation
                .prepare_turn(format!("{n}: {}", "many words ".repeat(200)))
                .await
                .unwrap();
            house.conversation.store_reply(format!("answer {n}")).await.unwrap();
        }
        let before = bytes(&house).await;
        for n in 0..40 {
            house.model.says(&long_summary(n));
        }
        let summarized = house.conversation.summarize(2).await.unwrap();
        assert_eq!(summarized.messages, 22);
        assert!(summarized.requests > 2, "{summarized:?}");
        // Summaries are joined, and rewriting covers all of them.
        let asked: Vec<_> =
            (0..summarized.requests).map(|at| house.model.read(at).concat()).collect();
        let notes: Vec<_> = asked.iter().filter(|asked| asked.contains("notes above")).collect();
        assert!(
            !notes.is_empty() && notes[0].contains("Summary 0.") && notes[0].contains("Summary 1.")
        );
        let last = summarized.requests - 1;
        assert!(bytes(&house).await.contains(&format!("Summary {last}.")));
        house.conversation.undo_summary().await.unwrap();
        assert_eq!(bytes(&house).await, before);
    });
}

#[test]
fn repeated_sentences_of_a_model_are_used_once() {
    block_on(async {
        let house = House::new().await;
        talk(&house, 1..=4).await;
        house.model.says(&"Ada is allergic to nuts. She likes jazz. ".repeat(5));
        house.conversation.summarize(2).await.unwrap();
        let profile = house.store.profile().await.unwrap();
        let text = &profile.summary(None).unwrap().text;
        assert_eq!(text, "Ada is allergic to nuts. She likes jazz.");
    });
}

#[test]
fn a_model_too_small_to_summarize_has_nothing_forgotten() {
    block_on(async {
        let house = House::new().await;
        for n in 0..12 {
            house
                .conversation
                .prepare_turn(format!("{n}: {}", "many words ".repeat(200)))
                .await
                .unwrap();
            house.conversation.store_reply(format!("answer {n}")).await.unwrap();
        }
        let before = bytes(&house).await;
        house.model.says("Hey!");
        let error = house.conversation.summarize(2).await.unwrap_err();
        assert!(
            matches!(&error, Error::Model { failure: ModelFailure::TooShort, .. }),
            "{error:?}"
        );
        assert!(error.help().contains("larger model"), "{error}");
        assert_eq!(bytes(&house).await, before);
        // Rewritten summaries that are too short are refused as well.
        for n in 0..40 {
            house.model.says(&long_summary(n));
            if n % 2 == 1 {
                house.model.says("Hey!");
            }
        }
        assert!(house.conversation.summarize(2).await.is_err());
        let known = house.store.profile().await.unwrap();
        assert!(known.summary(None).unwrap().text.contains("Summary 0."));
    });
}

#[test]
fn a_model_that_fails_or_says_nothing_changes_nothing() {
    block_on(async {
        let house = House::new().await;
        talk(&house, 1..=6).await;
        let before = bytes(&house).await;
        house.model.refuses(ModelFailure::Empty);
        assert!(matches!(house.conversation.summarize(2).await, Err(Error::Model { .. })));
        house.model.answers([said("half a sum"), Err(crate::common::scripted::broke_off())]);
        assert!(house.conversation.summarize(2).await.is_err());
        house.model.answers([said(" \n"), done()]);
        assert!(house.conversation.summarize(2).await.is_err());
        assert_eq!(bytes(&house).await, before);
        assert!(house.store.profile().await.unwrap().summary(None).is_none());
    });
}

#[test]
fn forgetting_a_message_takes_away_the_summary_that_was_made_of_it() {
    block_on(async {
        let house = House::new().await;
        talk(&house, 1..=6).await;
        house.model.says("The question was 1.");
        house.conversation.summarize(4).await.unwrap();
        talk(&house, 7..=8).await;
        house.model.says("The questions were 1 and 5.");
        house.conversation.summarize(4).await.unwrap();
        // The newer summary continues the older one.
        house.conversation.forget(&[1..=1]).await.unwrap();
        let after = bytes(&house).await;
        assert!(
            !after.contains("was 1")
                && !after.contains("were 1")
                && !after.contains("question 1\"")
        );
        assert!(after.contains("question 2") && after.contains("question 8"));
    });
}

#[test]
fn a_clear_ends_a_summary_and_what_is_hidden_by_it_is_never_summarized() {
    block_on(async {
        let house = House::new().await;
        talk(&house, 1..=6).await;
        house.model.says(SUMMARY);
        house.conversation.summarize(2).await.unwrap();
        house.conversation.clear().await.unwrap();
        assert!(!bytes(&house).await.contains(SUMMARY));
        talk(&house, 7..=9).await;
        house.model.says("New things.");
        house.conversation.summarize(2).await.unwrap();
        let asked = house.model.read(1).concat();
        assert!(
            asked.contains("question 7")
                && !asked.contains("question 6")
                && !asked.contains(SUMMARY)
        );
    });
}

#[test]
fn what_is_forgotten_or_cleared_while_the_model_writes_is_in_no_summary() {
    block_on(async {
        let house = House::new().await;
        talk(&house, 1..=6).await;
        let parts = house.model.hand();
        // The model is asked again, about the rest.
        house.model.says("The rest.");
        let (summarizing, store) = (house.conversation.clone(), house.store.clone());
        let summarized = tokio::spawn(async move { summarizing.summarize(2).await });
        while house.model.requests.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        store.forget(&[1..=2]).await.unwrap();
        parts.send(said("Question 1 was asked.")).unwrap();
        parts.send(done()).unwrap();
        assert_eq!(summarized.await.unwrap().unwrap().messages, 8);
        let after = bytes(&house).await;
        assert!(after.contains("The rest.") && !after.contains("Question 1"));
    });
}

#[test]
fn an_utterance_takes_the_model_back_from_a_compaction() {
    block_on(async {
        let house = House::new().await;
        talk(&house, 1..=6).await;
        let _never_ends = house.model.hand();
        let summarizing = house.conversation.clone();
        let summarized = tokio::spawn(async move { summarizing.summarize(2).await });
        while house.model.requests.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        house.model.says("At once.");
        let answer = house.conversation.ask("Quick!").await.unwrap().whole().await.unwrap();
        assert_eq!(answer.0, "At once.");
        let summarized = summarized.await.unwrap().unwrap();
        assert!(summarized.interrupted && summarized.messages == 0);
    });
}

#[tokio::test]
async fn a_prompt_that_is_nearly_full_is_followed_by_a_summary_once_nobody_speaks() {
    let house =
        House::with(|builder| builder.budget(420).summarize_at(0.75, Duration::from_millis(20)))
            .await;
    let mut asked = 0;
    for n in 0..12 {
        house.model.says(&format!("answer {n}"));
        house.conversation.ask(format!("question {n}")).await.unwrap().whole().await.unwrap();
        asked += 1;
    }
    // Nothing happened while utterances followed each other; now the conversation is idle.
    house.model.says(SUMMARY);
    for _ in 0..200 {
        if house.store.profile().await.unwrap().summary(None).is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let profile = house.store.profile().await.unwrap();
    let summary = profile.summary(None).expect("a summary");
    assert_eq!(summary.text, SUMMARY);
    assert_eq!(house.model.requests.lock().unwrap().len(), asked + 1);
    // The model has read the beginning of the next prompt.
    for _ in 0..200 {
        if !house.model.warmed.lock().unwrap().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(house.model.warmed.lock().unwrap()[0].contains(SUMMARY));
    assert!(bytes(&house).await.contains(SUMMARY));
}

#[tokio::test]
async fn a_contexts_history_is_summarized_only_when_somebody_asks_for_it() {
    let house =
        House::with(|builder| builder.budget(420).summarize_at(0.75, Duration::from_millis(1)))
            .await;
    let now = "2025-08-24T05:31:01Z".parse().unwrap();
    let assigned_persona = sottovoce::persona::AssignedPersona::new(
        sottovoce::persona::Persona::new("You are Mira."),
        now,
    );
    let change = move |profile: &mut sottovoce::store::Profile| {
        profile.assigned_persona = Some(assigned_persona.clone())
    };
    house.store.change_profile(Box::new(change)).await.unwrap();
    for n in 0..12 {
        house.model.says(&format!("answer {n}"));
        house.conversation.ask(format!("question {n}")).await.unwrap().whole().await.unwrap();
    }
    house.model.says(SUMMARY);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(house.store.profile().await.unwrap().summary(None).is_none());
    house.conversation.summarize(2).await.unwrap();
    assert!(house.store.profile().await.unwrap().summary(None).is_some());
}

#[test]
fn threads_and_clean_starts_know_nothing_of_each_others_summaries() {
    block_on(async {
        let house = House::new().await;
        talk(&house, 1..=4).await;
        let thread = house.conversation.clone().in_thread("7");
        for n in 1..=4 {
            thread.prepare_turn(format!("thread {n}")).await.unwrap();
            thread.store_reply(format!("reply {n}")).await.unwrap();
        }
        house.model.says("Of the thread.");
        thread.summarize(2).await.unwrap();
        assert!(!house.model.read(0).concat().contains("question"));
        assert!(!bytes(&house).await.contains("Of the thread."));
        house.model.says("Of none.");
        house.conversation.summarize(2).await.unwrap();
        assert!(bytes(&house).await.contains("Of none."));
        let (prompt, receipt) = thread.prompt("x").await.unwrap();
        let renderer = OllamaChatRenderer::new(sottovoce::ModelOptions::new("x"));
        let words = renderer.render(&prompt).body;
        assert!(words.contains("Of the thread.") && !words.contains("Of none."));
        assert!(receipt.entries[0].why.contains("summary of 6 messages"));
        let clean = house.conversation.clone().starting_clean().await.unwrap();
        let (prompt, _) = clean.prompt("x").await.unwrap();
        assert_eq!(prompt.context.len(), 0);
    });
}

#[test]
fn results_stay_with_their_calls_where_a_step_ends() {
    block_on(async {
        let house = House::new().await;
        let call = |n: u32| {
            let mut message = house.conversation.message(ChatRole::Assistant, "");
            message.tool_calls = vec![sottovoce::ToolCall {
                id: n.to_string(),
                name: "light".into(),
                arguments: serde_json::json!({}),
            }];
            message
        };
        for n in 0..4 {
            let long = "long words ".repeat(150);
            house.conversation.prepare_turn(format!("q{n} {long}")).await.unwrap();
            let result = house.conversation.message(ChatRole::Tool, format!("r{n} {long}"));
            house.store.append_all(vec![call(n), result]).await.unwrap();
            house.conversation.store_reply(format!("a{n}")).await.unwrap();
            house.model.says(&long_summary(n));
        }
        house.conversation.summarize(2).await.unwrap();
        let requests = house.model.requests.lock().unwrap().len();
        assert!(requests > 1);
        for at in 0..requests {
            let asked = house.model.read(at).concat();
            for n in 0..4 {
                assert_eq!(
                    asked.contains(&format!("q{n}")),
                    asked.contains(&format!("r{n}")),
                    "{at} {n}"
                );
            }
        }
    });
}

#[test]
fn a_proposed_title_goes_when_something_is_forgotten_and_a_given_one_stays() {
    block_on(async {
        let house = House::new().await;
        talk(&house, 1..=2).await;
        house.model.says("“Questions and answers”.");
        assert_eq!(house.conversation.propose_title().await.unwrap(), "Questions and answers");
        let title = || async { house.store.profile().await.unwrap().title.clone() };
        assert_eq!(title().await.as_deref(), Some("Questions and answers"));
        house.conversation.forget(&[4..=4]).await.unwrap();
        assert_eq!(title().await, None);
        house
            .store
            .change_profile(Box::new(|profile| profile.rename(Some("Mine".into()))))
            .await
            .unwrap();
        house.conversation.forget(&[3..=3]).await.unwrap();
        assert_eq!(title().await.as_deref(), Some("Mine"));
    });
}

#[test]
fn a_part_is_exported_without_the_summary_and_the_title_of_the_rest() {
    block_on(async {
        let house = House::new().await;
        talk(&house, 1..=6).await;
        house.model.says(SUMMARY);
        house.conversation.summarize(2).await.unwrap();
        house.model.says("Nuts and other matters");
        house.conversation.propose_title().await.unwrap();
        let store = crate::common::open(house.folder.path()).await;
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("whole.json");
        let part = folder.path().join("part.json");
        let ranges =
            [(&whole, ExportRange::default()), (&part, ExportRange::default().seqs(11..=12))];
        for (file, range) in ranges {
            let mut exporter = Exporter::to_file(ExportForm::Json, file).unwrap();
            exporter.add(&store, range, |_| {}).await.unwrap();
            exporter.finish().await.unwrap();
        }
        let (whole, part) =
            (std::fs::read_to_string(whole).unwrap(), std::fs::read_to_string(part).unwrap());
        assert!(whole.contains(SUMMARY) && whole.contains("Nuts and"));
        assert!(part.contains("answer 6") && !part.contains("uts"), "{part}");
    });
}
