//! Reading: pages of a conversation, search, messages, settings, health.

use std::time::Duration;

use sottovoce::store::Retention;
use sottovoce::{Clock, ConversationStore, Scope, SystemClock};

use crate::harness::{Served, named};

fn numbers(text: &str) -> Vec<u64> {
    text.split("data-seq=\"")
        .skip(1)
        .map(|rest| rest.split_once('"').unwrap().0.parse().unwrap())
        .collect()
}

/// The address of a link with this `rel`.
fn rel(text: &str, rel: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("rel=\"{rel}\" href=\""))?;
    Some(rest.split_once('"')?.0.replace("&amp;", "&"))
}

#[tokio::test]
async fn paging_back_and_forth_shows_every_message_once() {
    let served = Served::start().await;
    let words: Vec<String> = (1..=150).map(|number| format!("words {number}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let store = served.say(named("kitchen"), &words).await;
    store.forget(&[40..=90]).await.unwrap();
    let browser = served.enter().await;
    let mut page = browser.get("/timeline/named/kitchen").await.text;
    let mut seen = numbers(&page);
    while let Some(older) = rel(&page, "prev") {
        page = browser.get(&older).await.text;
        seen.splice(0..0, numbers(&page));
    }
    let all: Vec<u64> = (1..=39).chain(91..=150).collect();
    assert_eq!(seen, all);
    let mut forth = numbers(&page);
    while let Some(newer) = rel(&page, "next") {
        page = browser.get(&newer).await.text;
        forth.extend(numbers(&page));
    }
    assert_eq!(forth, all);
    let around = browser.get("/timeline/named/kitchen?at=39").await.text;
    assert!(around.contains("51 messages forgotten") && numbers(&around).contains(&39));
    let day = browser.get("/timeline/named/kitchen?day=2025-08-24").await.text;
    assert_eq!(numbers(&day)[0], 1);
    assert_eq!(browser.get("/timeline/named/kitchen?day=yesterday").await.status, 422);
}

#[tokio::test]
async fn what_another_program_says_or_forgets_appears_by_itself() {
    let served = Served::start().await;
    let store = served.say(named("kitchen"), &["one", "two"]).await;
    let browser = served.enter().await;
    let live = |after: u64, gone: u64| {
        let browser = browser.clone();
        async move {
            browser.get(&format!("/live/timeline/named/kitchen?after={after}&gone={gone}")).await
        }
    };
    assert_eq!(live(2, 0).await.status, 204);
    served.say(named("kitchen"), &["from elsewhere"]).await;
    let new = live(2, 0).await;
    assert_eq!((new.status, new.header("x-last")), (200, "3"));
    assert!(new.text.contains("from elsewhere") && !new.text.contains(">two<"));
    store.forget(&[1..=1]).await.unwrap();
    assert_eq!(live(3, 0).await.status, 205, "the page has to be loaded again");
}

#[tokio::test]
async fn search_finds_with_filters_in_all_conversations_and_leads_to_the_place() {
    let served = Served::start().await;
    served.say(named("kitchen"), &["leek soup", "with lemon"]).await;
    served.say(Scope::Dm { user: "ann".into() }, &["no soup today"]).await;
    let browser = served.enter().await;
    let all = browser.get("/search?q=soup").await.text;
    assert!(
        all.contains("leek <mark>soup</mark>")
            && all.contains("no <mark>soup</mark> today")
            && all.contains("2 messages")
    );
    assert!(all.contains("/timeline/named/kitchen?at=1#m1"));
    let one = browser.get("/search?q=soup&of=dm/ann").await.text;
    assert!(!one.contains("leek"));
    let by = browser.get("/search?q=lemon&from=me").await.text;
    assert!(by.contains("Nothing was found") && !by.contains("<mark>"), "{by}");
    assert!(
        browser
            .get("/search?q=soup&since=2025-08-24&until=2025-08-24")
            .await
            .text
            .contains("2 messages")
    );
    assert!(
        browser.get("/search?q=soup&since=2025-08-25").await.text.contains("Nothing was found")
    );
    let fits = browser.get("/search?q=what+was+in+the+soup").await.text;
    assert!(fits.contains("leek <mark>soup</mark>") && fits.contains("What fits best"));
}

#[tokio::test]
async fn a_message_tells_where_it_lies_and_whether_its_seal_holds() {
    let served = Served::start().await;
    let store = served.say(named("kitchen"), &["one", "two"]).await;
    let browser = served.enter().await;
    let stored = &store.read_tail(1).await.unwrap().messages[0];
    let page = browser.get("/message/named/kitchen?n=2").await.text.replace("<wbr>", "");
    assert!(page.contains(&stored.file_name()) && page.contains("AES-256-GCM"));
    let part = browser.get("/message/named/kitchen?n=2&part=1").await.text;
    assert!(!part.contains("<html") && part.contains("two"));
    assert_eq!(browser.get("/words/named/kitchen?n=2").await.text, "two");
    let file = served.root.path().join("store/conversations/kitchen").join(stored.file_name());
    let sealed = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, sealed.replace("\"tag\":\"", "\"tag\":\"AAAA")).unwrap();
    let page = browser.get("/message/named/kitchen?n=2").await;
    assert!(page.status == 404 || page.text.contains("does not open"), "{}", page.status);
}

#[tokio::test]
async fn limits_are_changed_after_their_effect_was_shown() {
    let served = Served::start().await;
    let store = served.say(named("kitchen"), &["one", "two", "three", "four"]).await;
    let browser = served.enter().await;
    let effect = browser.post("/limits/named/kitchen", &[("what", "limits"), ("most", "2")]).await;
    assert!(effect.text.contains("2 messages") && effect.text.contains("would be hidden"));
    assert!(store.profile().await.unwrap().retention.is_none(), "nothing was changed");
    let plan = effect.field("plan");
    let done = browser.post("/limits/named/kitchen", &[("what", "agreed"), ("plan", &plan)]).await;
    assert_eq!(done.status, 303);
    assert_eq!(store.profile().await.unwrap().retention, Some(Retention::FOREVER.max_messages(2)));
    assert_eq!(store.read_tail(9).await.unwrap().messages.len(), 2);
    let back = browser.post("/limits/named/kitchen", &[("what", "limits"), ("most", "")]).await;
    assert!(back.text.contains("show it again"));
    let plan = back.field("plan");
    let fields = [("what", "agreed"), ("plan", plan.as_str()), ("hidden", "keep")];
    assert_eq!(browser.post("/limits/named/kitchen", &fields).await.status, 303);
    assert_eq!(store.read_tail(9).await.unwrap().messages.len(), 4);
    for wrong in ["1", "-2", "many"] {
        let got =
            browser.post("/limits/named/kitchen", &[("what", "limits"), ("most", wrong)]).await;
        assert_eq!(got.status, 422, "{wrong}");
    }
    let fields = [("what", "name"), ("title", "The  kitchen\n"), ("tags", "recipes, private")];
    assert_eq!(browser.post("/settings/named/kitchen", &fields).await.status, 303);
    let fields = [("what", "window"), ("rolls", "yes"), ("ttl", "3"), ("unit", "3600")];
    assert_eq!(browser.post("/settings/named/kitchen", &fields).await.status, 303);
    let profile = store.profile().await.unwrap();
    assert_eq!(
        (profile.rolling_window, profile.window_seconds.unwrap().get()),
        (Some(true), 10_800)
    );
    assert_eq!(profile.tags.len(), 2);
    assert!(browser.get("/?q=kitchen&tag=recipes").await.text.contains("The  kitchen"));
}

#[tokio::test]
async fn a_damaged_store_is_shown_as_far_as_it_can_be_and_the_check_names_what_is_wrong() {
    let served = Served::start().await;
    let store = served.say(named("kitchen"), &["one", "two", "three"]).await;
    let second = store.read_seqs(2..=2).await.unwrap().messages[0].file_name();
    std::fs::write(served.root.path().join("store/conversations/kitchen").join(second), "damage")
        .unwrap();
    let browser = served.enter().await;
    let page = browser.get("/timeline/named/kitchen").await.text;
    assert!(page.contains("one") && page.contains("three") && page.contains("cannot be read"));
    assert_eq!(browser.post("/verify", &[]).await.status, 303);
    let health = loop {
        let page = browser.get("/health").await.text;
        if page.contains("Last checked") {
            break page;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(health.contains("not sound"), "{health}");
}

#[tokio::test]
async fn numbers_count_days_people_and_what_the_model_server_reported() {
    let served = Served::start().await;
    let store = served.say(named("kitchen"), &["one", "two"]).await;
    let at = "2025-08-25T12:00:00Z".parse().unwrap();
    let answer = sottovoce::ChatMessage::at(sottovoce::ChatRole::Assistant, "x", at)
        .with_metadata("promptTokens", "100")
        .with_metadata("cachedTokens", "60")
        .with_metadata("firstWordMs", "250")
        .with_metadata("recalled", "2");
    store.append_message(answer).await.unwrap();
    let browser = served.enter().await;
    let page = browser.get("/numbers/named/kitchen").await.text;
    for part in [
        "Messages a day",
        "By hour",
        "From the cache",
        "Time to the first word",
        "Brought in by recall",
        "<table",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.contains("<td class=\"number\">60</td>"), "{page}");
    store.forget(&[3..=3]).await.unwrap();
    assert!(!browser.get("/numbers/named/kitchen").await.text.contains("From the cache"));
}

#[tokio::test]
async fn a_day_on_which_nothing_was_said_is_told_before_or_after_all_others() {
    let served = Served::start().await;
    served.say(named("kitchen"), &["one", "two"]).await;
    let browser = served.enter().await;
    for (day, is_told) in [("2020-05-05", true), ("2025-08-24", false), ("2030-01-01", true)] {
        let page = browser.get(&format!("/timeline/named/kitchen?day={day}")).await.text;
        assert_eq!(page.contains("Nothing was said on that day"), is_told, "{day}");
        assert!(page.contains(">two<"), "{day}");
    }
}

#[tokio::test]
async fn a_search_marks_the_words_shows_their_passage_and_goes_on_to_what_fits() {
    let served = Served::start().await;
    let long = format!("The beginning. {} the dentist is on Monday", "Much was said. ".repeat(200));
    served.say(named("kitchen"), &["My doctor's appointment is in December.", &long]).await;
    served.say(Scope::Dm { user: "ann".into() }, &["dentist tomorrow"]).await;
    let browser = served.enter().await;
    let exact = browser.get("/search?q=dentist&of=named/kitchen").await.text;
    assert!(exact.contains("<mark>dentist</mark> is on Monday"), "{exact}");
    assert!(!exact.contains("The beginning."), "the passage of the match is shown");
    assert!(exact.contains("Other conversations have it too"), "{exact}");
    assert!(exact.contains("href=\"/search?q=dentist&amp;of=dm%2Fann\""), "{exact}");
    let all = browser.get("/search?q=dentist").await.text;
    assert!(!all.contains("Other conversations") && all.contains("In these conversations"));
    let fits = browser.get("/search?q=which+appointment+was+it").await.text;
    assert!(fits.contains("No message has all these words"), "{fits}");
    assert!(fits.contains("<h2>What fits best") && fits.contains("<mark>appointment</mark>"));
    assert!(!fits.contains("Forget these"), "only what has the words is offered to be forgotten");
    let typed = browser.get("/search?q=dentisst").await.text;
    assert!(typed.contains("Did you mean") && typed.contains("q=dentist\""), "{typed}");
}

#[tokio::test]
async fn the_context_is_cleared_and_snapshots_are_saved_and_restored() {
    let served = Served::start().await;
    let store = served.say(named("kitchen"), &["one", "two"]).await;
    store
        .append_message(sottovoce::ChatMessage::at(
            sottovoce::ChatRole::User,
            "just now",
            Clock::now(&SystemClock).timestamp(),
        ))
        .await
        .unwrap();
    let browser = served.enter().await;
    let path = "/snapshots/named/kitchen";
    let saved = browser.post(path, &[("what", "save"), ("description", "the soup")]).await;
    assert_eq!(saved.status, 303, "{}", saved.text);
    let page = browser.get(path).await;
    assert!(page.text.contains("the soup") && page.text.contains("1 message"), "{}", page.text);
    assert_eq!(browser.post(path, &[("what", "clear")]).await.status, 303);
    assert!(store.profile().await.unwrap().cleared.is_some());
    let id = page.field("id");
    assert_eq!(browser.post(path, &[("what", "restore"), ("id", &id)]).await.status, 303);
    assert_eq!(store.read_tail(9).await.unwrap().messages.len(), 4, "one copy came");
    assert_eq!(browser.post(path, &[("what", "undo")]).await.status, 303);
    assert!(store.profile().await.unwrap().cleared.is_none());
    assert_eq!(browser.post(path, &[("what", "delete"), ("id", &id)]).await.status, 422);
    assert_eq!(store.snapshots().await.unwrap().0.len(), 1);
}

#[tokio::test]
async fn a_conversation_is_begun_by_its_name_and_exists_once_something_is_said() {
    let served = Served::start().await;
    served.say(named("kitchen"), &["one"]).await;
    let browser = served.enter().await;
    assert!(browser.get("/").await.text.contains("New conversation"));
    let begun = browser.post("/conversation", &[("name", " Ideas & plans ")]).await;
    assert_eq!(
        (begun.status, begun.header("location")),
        (303, "/timeline/named/Ideas%2520%26%2520plans")
    );
    let page = browser.get(begun.header("location")).await.text;
    assert!(page.contains("Ideas &amp; plans") && page.contains("Say something"));
    assert!(!served.root.path().join("store/conversations").join("Ideas & plans").exists());
    for name in ["", "two\nlines", &"x".repeat(300)] {
        assert_eq!(browser.post("/conversation", &[("name", name)]).await.status, 422, "{name}");
    }
}

#[tokio::test]
async fn a_setting_is_explained_and_numbers_of_people_and_rooms_say_of_what() {
    let served = Served::start().await;
    let scope = Scope::Guild { guild: "1".into(), channel: "2".into(), user: "42".into() };
    served.say(scope, &["one"]).await;
    let browser = served.enter().await;
    assert!(browser.get("/").await.text.contains("Person 42 in channel 2, server 1"));
    let settings = browser.get("/settings").await.text;
    assert!(settings.contains("How many messages of history a prompt holds at least"));
    assert!(!settings.contains("](") && !settings.contains('`'), "words, not Markdown");
}
