//! Hostile content and addresses.

use sottovoce::{ChatMessage, ChatRole, ConversationStore, Scope, ToolCall};

use crate::harness::{Served, named};

const MARKUP: &str = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><b>&amp;";

#[tokio::test]
async fn nothing_that_was_said_becomes_markup_on_any_page() {
    let served = Served::start().await;
    let scope = Scope::Dm { user: MARKUP.to_owned() };
    let store = served.store(scope.clone()).await;
    let at = "2025-08-24T16:00:00Z".parse().unwrap();
    let mut message = ChatMessage::at(ChatRole::User, MARKUP, at)
        .with_metadata("speaker", format!("{MARKUP}\n\u{202e}"))
        .with_metadata(MARKUP, MARKUP);
    message.thread_id = Some(MARKUP.to_owned());
    store.append_message(message).await.unwrap();
    let mut call = ChatMessage::at(ChatRole::Assistant, format!("artifact://{MARKUP}"), at);
    call.tool_calls = vec![ToolCall {
        id: "1".into(),
        name: MARKUP.into(),
        arguments: serde_json::json!({ MARKUP: MARKUP }),
    }];
    store.append_message(call).await.unwrap();
    store
        .change_profile(Box::new(|profile| {
            profile.rename(Some(MARKUP.to_owned()));
            profile.tags.insert(MARKUP.to_owned());
        }))
        .await
        .unwrap();
    let browser = served.enter().await;
    let list = browser.get("/").await.text;
    let (_, rest) = list.split_once("href=\"/timeline/").unwrap();
    let of = rest.split_once('"').unwrap().0.to_owned();
    let query = form_urlencoded::byte_serialize(MARKUP.as_bytes()).collect::<String>();
    let mut pages = vec![list];
    for path in [
        format!("/timeline/{of}"),
        format!("/message/{of}?n=1"),
        format!("/message/{of}?n=2"),
        format!("/settings/{of}"),
        format!("/numbers/{of}"),
        format!("/forget/{of}"),
        format!("/sees/{of}"),
        format!("/search?q={query}"),
        "/search?q=script".to_owned(),
        format!("/?q={query}"),
        format!("/?tag={query}"),
        format!("/timeline/{query}"),
        format!("/artifact/{of}?id={query}"),
        format!("/timeline/{of}?day={query}"),
        format!("/search?q=x&of={query}"),
        format!("/live/timeline/{of}?after=0&gone=0"),
        "/numbers".to_owned(),
        format!("/search?q=a&since={query}&speaker={query}"),
    ] {
        pages.push(browser.get(&path).await.text);
    }
    pages.push(browser.post(&format!("/sees/{of}"), &[("say", MARKUP)]).await.text);
    pages.push(browser.post(&format!("/forget/{of}"), &[("what", "whole")]).await.text);
    pages.push(
        browser.post(&format!("/forget/{of}"), &[("what", "found"), ("q", "script")]).await.text,
    );
    for page in pages {
        for bad in ["<script>a", "<img", "<b>", "onerror=alert(1)>\"'>"] {
            assert!(!page.contains(bad), "{bad} in {page}");
        }
    }
}

#[tokio::test]
async fn tricks_with_paths_lead_nowhere() {
    let served = Served::start().await;
    served.say(named("kitchen"), &["canary words"]).await;
    let browser = served.enter().await;
    for path in [
        "/timeline/../../etc/passwd",
        "/timeline/%2e%2e/%2e%2e/etc/passwd",
        "/timeline/named/..%2f..%2fkey",
        "/timeline/named/",
        "/timeline/named/kitchen/x",
        "/timeline/catalog",
        "/timeline/dm/",
        "/style.css/../key",
        "/artifact/named/kitchen?id=../../head",
        "/artifact/named/kitchen?id=%00",
        "/words/named/kitchen?n=99",
        "/message/named/kitchen?n=0",
        "/timeline/named/%FF",
        "/contents/named/kitchen?id=/etc/passwd",
        "//evil.example/",
        "/timeline/guild/1/2",
    ] {
        let got = browser.get(path).await;
        assert!([200, 400, 404].contains(&got.status), "{path}: {}", got.status);
        assert!(!got.text.contains("root:") && !got.text.contains("canary"), "{path}");
    }
    for path in
        ["/message/named/kitchen?n=x", "/message/named/kitchen", "/timeline/named/kitchen?at=-1"]
    {
        let got = browser.get(path).await;
        assert_eq!(got.status, 400, "{path}");
        assert!(
            got.text.contains("Something in this address") && got.text.contains("<nav"),
            "{path}"
        );
        assert!(!got.text.contains("deserialize"), "{path}");
    }
    let got = browser.post("/forgotten/named/kitchen", &[("sure", "yes")]).await;
    assert!(got.text.contains("Something in this address or form"), "{}", got.text);
    // Looking at conversations makes none.
    browser.get("/timeline/named/never-there").await;
    assert!(!served.root.path().join("store/conversations/never-there").exists());
}
