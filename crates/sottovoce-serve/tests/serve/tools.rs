//! Functions that a client runs for the model.

use serde_json::json;
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
