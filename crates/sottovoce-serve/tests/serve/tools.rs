//! Functions that a client runs for the model.

use std::io::Read;

use serde_json::json;
use sottovoce::store::ArtifactStore;
use sottovoce::{ChatRole, ConversationStore};

use crate::harness::{Client, Served, named};
use crate::ollama::Answer;

#[tokio::test(flavor = "multi_thread")]
async fn calls_and_results_pass_and_are_recorded_once() {
    let served = Served::start().await;
    let call = json!([{ "function": { "name": "HassTurnOn", "arguments": { "name": "light" } } }]);
    let mut client = Client::new();
    client.system = "You are a voice assistant.\nCurrent time is 09:26:57.".into();
    client.messages.push(json!({ "role": "user", "content": "Light on." }));
    served.stub.next(Answer::saying(&[]).tools(call.clone()));
    served.post("/s/kitchen/api/chat", client.body()).await;
    // Without its result a call is nothing yet.
    served.holds(&named("kitchen"), &[("user", "Light on.")]).await;
    client.messages.push(json!({ "role": "assistant", "content": "", "tool_calls": call }));
    client.messages.push(
        json!({ "role": "tool", "content": "{\"success\": true}", "tool_name": "HassTurnOn" }),
    );
    served.stub.next(Answer::saying(&[]).tools(call.clone()));
    served.post("/s/kitchen/api/chat", client.body()).await;
    client.messages.push(json!({ "role": "assistant", "content": "", "tool_calls": call }));
    client.messages.push(
        json!({ "role": "tool", "content": "{\"success\": false}", "tool_name": "HassTurnOn" }),
    );
    served.stub.next(Answer::saying(&["It is on."]));
    served.post("/s/kitchen/api/chat", client.body()).await;
    client.messages.push(json!({ "role": "assistant", "content": "It is on." }));

    let body = served.last_forwarded();
    let time = "Current time is 09:26:57.\n\nLight on.";
    assert_eq!(body["messages"][1]["content"], time, "the same in each round");
    assert_eq!(body["messages"].as_array().unwrap()[2..], client.messages[1..5]);
    client.say(&served, "/s/kitchen/api/chat", "Thank you.").await;
    let wanted = [
        ("user", "Light on."),
        ("assistant", ""),
        ("tool", "{\"success\": true}"),
        ("assistant", ""),
        ("tool", "{\"success\": false}"),
        ("assistant", "It is on."),
        ("user", "Thank you."),
        ("assistant", "Fine."),
    ];
    served.holds(&named("kitchen"), &wanted).await;
    let read = served.store(&named("kitchen")).await.read_tail(9).await.unwrap();
    let called = &read.messages[1].message;
    assert_eq!(called.role, ChatRole::Assistant);
    assert_eq!(called.tool_calls[0].name, "HassTurnOn");
    assert_eq!(called.tool_calls[0].arguments, json!({ "name": "light" }));
    assert_eq!(read.messages[2].message.metadata["tool"], "HassTurnOn");

    // Later sessions read what was said, and no states of devices.
    let mut later = Client::new();
    later.say(&served, "/s/kitchen/api/chat", "Hello.").await;
    let system = served.last_forwarded()["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(system.contains("Light on.") && !system.contains("success"), "{system}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_of_tools_goes_on_after_this_server_was_restarted() {
    let mut served = Served::start().await;
    let call =
        json!([{ "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{}" } }]);
    let mut client = Client::new();
    client.messages.push(json!({ "role": "user", "content": "Light on." }));
    served
        .stub
        .next(Answer::saying(&[]).tools(json!([{ "function": { "name": "f", "arguments": {} } }])));
    served.post("/v1/chat/completions", client.body()).await;
    served.restart().await;
    client.messages.push(json!({ "role": "assistant", "content": null, "tool_calls": call }));
    client.messages.push(json!({ "role": "tool", "content": "done", "tool_call_id": "c1" }));
    served.post("/v1/chat/completions", client.body()).await;
    let wanted =
        [("user", "Light on."), ("assistant", ""), ("tool", "done"), ("assistant", "Fine.")];
    served.holds(&sottovoce::Scope::Default, &wanted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_result_is_kept_as_an_artifact_and_the_client_goes_on_with_its_words() {
    let mut served =
        Served::with(&[("CONTEXT__LONGRESULT", "100")], Default::default(), |_| {}).await;
    let call = json!([{ "function": { "name": "Log", "arguments": {} } }]);
    let result = "The light is on. ".repeat(50);
    let mut client = Client::new();
    client.messages.push(json!({ "role": "user", "content": "Light?" }));
    client.messages.push(json!({ "role": "assistant", "content": "", "tool_calls": call }));
    let mut result = json!({ "role": "tool", "content": result, "tool_name": "Log" });
    client.messages.push(result.clone());
    served.stub.next(Answer::saying(&[]).tools(call.clone()));
    served.post("/api/chat", client.body()).await;
    assert_eq!(served.last_forwarded()["messages"][3], result, "the model reads all of it");
    let store = served.store(&sottovoce::Scope::Default).await;
    let stored = store.read_tail(9).await.unwrap().messages;
    let kept = &stored[2].message;
    assert!(kept.content.contains("is kept as artifact://") && kept.content.len() < 500);
    let id = kept.metadata["artifact"].clone();
    let mut whole = String::new();
    store.open_artifact(&id).await.unwrap().unwrap().read_to_string(&mut whole).unwrap();
    assert_eq!(result["content"], whole.as_str());

    // The next round is recognized, also by a server that has only what is stored.
    served.restart().await;
    client.messages.push(json!({ "role": "assistant", "content": "", "tool_calls": call }));
    result["content"] = "off".into();
    client.messages.push(result);
    served.post("/api/chat", client.body()).await;
    let roles: Vec<_> = served.messages(&sottovoce::Scope::Default).await;
    let roles: Vec<_> = roles.iter().map(|(role, _)| role.as_str()).collect();
    let (call, result, answer) = ("assistant", "tool", "assistant");
    assert_eq!(roles, ["user", call, result, call, result, answer]);
}
