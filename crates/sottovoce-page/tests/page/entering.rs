//! Getting in: links, cookies, names, forms, locks.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::{HOST, HeaderName, ORIGIN};
use sottovoce::config::ConfiguredKey;
use sottovoce::{Config, EncryptionKey, SystemClock};
use sottovoce_page::{Page, PageError};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

use crate::harness::{Browser, Served, config, named};

#[tokio::test]
async fn without_the_cookie_nothing_is_shown_or_done() {
    let served = Served::start().await;
    served.say(named("kitchen"), &["canary words"]).await;
    let stranger = Browser::new(&served.origin);
    for path in [
        "/",
        "/timeline/named/kitchen",
        "/search?q=canary",
        "/message/named/kitchen?n=1",
        "/health",
        "/settings",
        "/numbers",
        "/live/timeline/named/kitchen?after=0&gone=0",
        "/words/named/kitchen?n=1",
        "/nowhere",
        "/live/entry",
    ] {
        let got = stranger.get(path).await;
        assert_eq!(got.status, 401, "{path}");
        assert!(!got.text.contains("canary") && !got.text.contains("kitchen"), "{path}");
    }
    for path in [
        "/forget/named/kitchen",
        "/talk/named/kitchen",
        "/export/named/kitchen",
        "/lock",
        "/unlock",
        "/verify",
    ] {
        assert_eq!(stranger.post(path, &[("what", "whole")]).await.status, 401, "{path}");
    }
    let mut guesser = stranger.clone();
    for cookie in ["sottovoce=", "sottovoce=AAAA", "sottovoce", "x=sottovoce"] {
        cookie.clone_into(&mut guesser.cookie);
        assert_eq!(guesser.get("/").await.status, 401, "{cookie}");
    }
}

#[tokio::test]
async fn a_link_that_was_used_or_is_wrong_lets_nobody_in_and_a_look_ahead_does_not_use_it() {
    let served = Served::start().await;
    let stranger = Browser::new(&served.origin);
    let wrong = stranger.get("/enter?key=AAAA").await;
    assert_eq!((wrong.status, wrong.header("set-cookie")), (401, ""));
    // What shows a preview of a link asks so.
    let head = stranger.ask(Method::HEAD, &served.link, &[], None).await;
    assert_eq!((head.status, head.header("set-cookie")), (401, ""));
    served.enter().await;
    let again = stranger.ask(Method::GET, &served.link, &[], None).await;
    assert_eq!((again.status, again.header("set-cookie")), (401, ""));
}

#[tokio::test]
async fn the_cookie_is_of_this_run_and_every_answer_forbids_frames_caches_and_foreign_content() {
    let served = Served::start().await;
    let got = Browser::new(&served.origin).ask(Method::GET, &served.link, &[], None).await;
    let cookie = got.header("set-cookie");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Max-Age") && !cookie.contains("Expires"), "{cookie}");
    let served = Served::start().await;
    let browser = served.enter().await;
    for path in ["/", "/style.css", "/page.js", "/nowhere", "/timeline/default", "/health"] {
        let got = browser.get(path).await;
        let policy = got.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{path}");
        assert!(policy.contains("frame-ancestors 'none'"), "{path}");
        assert_eq!(got.header("x-frame-options"), "DENY");
        assert_eq!(got.header("x-content-type-options"), "nosniff");
        assert_eq!(got.header("referrer-policy"), "same-origin");
        if !path.contains('.') {
            assert_eq!(got.header("cache-control"), "no-store", "{path}");
            let is_inline = |text: &str| {
                ["style=\"", "onclick", "onload", "<style", "javascript:"]
                    .iter()
                    .any(|bad| text.contains(bad))
            };
            assert!(!is_inline(&got.text), "{path}");
        }
    }
    let link = served.link.clone();
    served.stop().await;
    let next = Served::start().await;
    let mut other = Browser::new(&next.origin);
    other.cookie.clone_from(&browser.cookie);
    assert_eq!(other.get("/").await.status, 401, "of another run");
    let key = link.split_once("key=").unwrap().1;
    assert_eq!(other.get(&format!("/enter?key={key}")).await.status, 401);
}

#[tokio::test]
async fn other_hosts_and_other_pages_are_refused_even_with_the_cookie() {
    let served = Served::start().await;
    let browser = served.enter().await;
    let url = format!("{}/", served.origin);
    for host in
        ["evil.example", "127.0.0.1.evil.example:7766", "localhost.evil.example", "192.168.7.7"]
    {
        let got = browser.ask(Method::GET, &url, &[(HOST, host)], None).await;
        assert_eq!(got.status, 421, "{host}");
    }
    let form = browser.form(&[("say", "hello"), ("do", "say")]);
    let site = HeaderName::from_static("sec-fetch-site");
    for headers in [
        vec![(ORIGIN, "https://evil.example")],
        vec![(ORIGIN, "null")],
        vec![(ORIGIN, "http://127.0.0.1:1")],
        vec![],
        vec![(ORIGIN, served.origin.as_str()), (site.clone(), "cross-site")],
        vec![(ORIGIN, served.origin.as_str()), (site, "same-site")],
    ] {
        let got = browser.send("/talk/named/kitchen", &headers, &form).await;
        assert_eq!(got.status, 403, "{headers:?}");
    }
    assert!(served.stub.seen(crate::ollama::Ask::Reply).is_empty());
}

#[tokio::test]
async fn a_browser_without_a_cookie_has_one_link_announced_until_it_is_used() {
    let served = Served::with(&[("PAGE__LOCKAFTERSECONDS", "0")]).await;
    let stranger = Browser::new(&served.origin);
    stranger.get("/").await;
    assert!(served.links.lock().unwrap().is_empty(), "the first link was not used yet");
    served.enter().await;
    stranger.get("/live/entry").await;
    stranger.ask(Method::HEAD, &format!("{}/", served.origin), &[], None).await;
    stranger.post("/lock", &[]).await;
    assert!(served.links.lock().unwrap().is_empty(), "nobody looks at these");
    for _ in 0..3 {
        let closed = stranger.get("/").await;
        assert!(closed.status == 401 && !closed.text.contains("key="), "{}", closed.text);
    }
    let links = served.links.lock().unwrap().clone();
    assert_eq!(links.len(), 1, "{links:?}");
    let again = Browser::new(&served.origin).enter(&links[0]).await;
    assert_eq!(again.get("/").await.status, 200);
    let used = stranger.ask(Method::GET, &links[0], &[], None).await;
    assert_eq!(used.status, 401);
    assert_eq!(served.links.lock().unwrap().len(), 2, "a used link leads to a new one");
}

#[tokio::test]
async fn a_link_on_another_page_lets_the_browser_in_that_opens_it_and_none_that_embeds_it() {
    let served = Served::start().await;
    let browser = Browser::new(&served.origin);
    let (site, dest) =
        (HeaderName::from_static("sec-fetch-site"), HeaderName::from_static("sec-fetch-dest"));
    for part in ["iframe", "image", "empty"] {
        let headers = [(site.clone(), "cross-site"), (dest.clone(), part)];
        let got = browser.ask(Method::GET, &served.link, &headers, None).await;
        assert_eq!((got.status, got.header("set-cookie")), (403, ""), "{part}");
    }
    let headers = [(site, "cross-site"), (dest, "document")];
    let view = browser.ask(Method::GET, &format!("{}/", served.origin), &headers, None).await;
    assert_eq!(view.status, 403, "only a link may be opened from elsewhere");
    // Over a page of its own: a browser takes no strict cookie along where another page leads it.
    let got = browser.ask(Method::GET, &served.link, &headers, None).await;
    assert_eq!((got.status, got.header("refresh")), (200, "0; url=/"));
    assert!(got.text.contains("href=\"/\"") && got.header("set-cookie").contains("Strict"));
}

#[tokio::test]
async fn guesses_at_the_token_do_not_keep_its_owner_waiting() {
    let served = Served::with(&[("PAGE__TOKEN", "a long secret for this page")]).await;
    let guesser = Browser::new(&served.origin);
    let mut guesses = tokio::task::JoinSet::new();
    for _ in 0..80 {
        let guesser = guesser.clone();
        guesses.spawn(async move { guesser.post("/unlock", &[("token", "wrong")]).await.status });
    }
    // More wrong ones than may wait: from here on, the queue is full.
    assert_eq!(guesses.join_next().await.unwrap().unwrap(), 429);
    let got = guesser.post("/unlock", &[("token", "a long secret for this page")]).await;
    assert_eq!(got.status, 303);
    let statuses = guesses.join_all().await;
    assert!(statuses.iter().all(|status| matches!(status, 401 | 429)), "{statuses:?}");
}

#[tokio::test]
async fn a_forged_form_changes_nothing() {
    let served = Served::start().await;
    served.say(named("kitchen"), &["one", "two"]).await;
    let browser = served.enter().await;
    for csrf in ["", "wrong", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
        let mut forged = browser.clone();
        csrf.clone_into(&mut forged.csrf);
        for (path, fields) in [
            ("/forget/named/kitchen", [("what", "whole")]),
            ("/settings/named/kitchen", [("what", "name")]),
            ("/talk/named/kitchen", [("say", "x")]),
            ("/lock", [("x", "y")]),
        ] {
            assert_eq!(forged.post(path, &fields).await.status, 403, "{path} {csrf}");
        }
    }
    assert_eq!(browser.get("/").await.status, 200, "still let in");
}

#[tokio::test]
async fn an_idle_page_locks_whatever_it_asks_by_itself_and_a_new_link_opens_it() {
    let served = Served::with(&[("PAGE__LOCKAFTERSECONDS", "2")]).await;
    served.say(named("kitchen"), &["canary words"]).await;
    let browser = served.enter().await;
    assert!(browser.get("/timeline/named/kitchen").await.text.contains("canary"));
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_millis(400)).await;
        browser.get("/live/entry").await;
    }
    for path in
        ["/timeline/named/kitchen", "/live/timeline/named/kitchen?after=0&gone=0", "/live/entry"]
    {
        let locked = browser.get(path).await;
        assert_eq!(locked.status, 401, "{path}");
        assert!(!locked.text.contains("canary"));
    }
    assert_eq!(browser.post("/forget/named/kitchen", &[("what", "whole")]).await.status, 401);
    assert_eq!(
        browser.post("/unlock", &[("passphrase", "guess")]).await.status,
        403,
        "it has none"
    );
    let link = loop {
        if let Some(link) = served.links.lock().unwrap().pop() {
            break link;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let again = Browser::new(&served.origin).enter(&link).await;
    assert_eq!(again.get("/timeline/named/kitchen").await.status, 200);
}

#[tokio::test]
async fn a_store_with_a_passphrase_opens_with_it_and_with_no_other_and_locking_forgets_it() {
    let root = tempfile::tempdir().unwrap();
    let right = "correct horse battery staple";
    let mut with: Config = config(root.path(), &[]);
    let key = EncryptionKey::from_passphrase(zeroize::Zeroizing::new(right.to_owned())).unwrap();
    with.key = ConfiguredKey::Secret { key: Arc::new(key), short: false, from: "a test".into() };
    with.make_key_file().unwrap();
    let store = with.open_store(named("kitchen"), Arc::new(SystemClock)).await.unwrap();
    let words = sottovoce::ChatMessage::at(
        sottovoce::ChatRole::User,
        "canary words",
        jiff::Timestamp::UNIX_EPOCH,
    );
    sottovoce::ConversationStore::append_message(&store, words).await.unwrap();
    drop(store);
    let links = Arc::<Mutex<Vec<String>>>::default();
    let announced = Arc::clone(&links);
    let page = Page::new(config(root.path(), &[]), Arc::new(SystemClock))
        .announce(move |link| announced.lock().unwrap().push(link));
    let listening = page.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let (origin, link) = (format!("http://{}", listening.address()), listening.link().unwrap());
    let stop = CancellationToken::new();
    let serving = tokio::spawn(listening.serve(stop.clone()));
    let mut browser = Browser::new(&origin);
    let got = browser.ask(Method::GET, &link, &[], None).await;
    browser.cookie = got.header("set-cookie").split(';').next().unwrap().to_owned();
    let asks = browser.get("/timeline/named/kitchen").await;
    assert_eq!(asks.status, 401);
    browser.csrf = asks.field("csrf");
    for wrong in ["", "wrong", "correct horse battery stable"] {
        let got = browser.post("/unlock", &[("passphrase", wrong)]).await;
        assert_eq!(got.status, 401, "{wrong}");
        assert!(!got.text.contains("canary"));
    }
    assert_eq!(browser.get("/timeline/named/kitchen").await.status, 401);
    assert_eq!(browser.post("/unlock", &[("passphrase", right)]).await.status, 303);
    assert!(browser.get("/timeline/named/kitchen").await.text.contains("canary words"));
    assert_eq!(browser.post("/lock", &[]).await.status, 303);
    assert_eq!(browser.get("/timeline/named/kitchen").await.status, 401);
    assert_eq!(
        browser.post("/unlock", &[("passphrase", "wrong")]).await.status,
        401,
        "the key is gone"
    );
    assert_eq!(browser.post("/unlock", &[("passphrase", right)]).await.status, 303);
    assert_eq!(browser.get("/timeline/named/kitchen").await.status, 200);
    // The browser loses its cookie while the page is locked.
    assert_eq!(browser.post("/lock", &[]).await.status, 303);
    assert!(links.lock().unwrap().is_empty(), "the passphrase is enough");
    let mut other = Browser::new(&origin);
    assert_eq!(other.get("/").await.status, 401);
    let link = links.lock().unwrap().pop().unwrap();
    let got = other.ask(Method::GET, &link, &[], None).await;
    other.cookie = got.header("set-cookie").split(';').next().unwrap().to_owned();
    let asks = other.get("/timeline/named/kitchen").await;
    assert!(asks.status == 401 && !asks.text.contains("canary"), "the link is not the passphrase");
    other.csrf = asks.field("csrf");
    assert_eq!(other.post("/unlock", &[("passphrase", right)]).await.status, 303);
    assert!(other.get("/timeline/named/kitchen").await.text.contains("canary words"));
    stop.cancel();
    serving.await.unwrap();
}

#[tokio::test]
async fn a_token_opens_the_page_where_it_is_configured() {
    let served = Served::with(&[("PAGE__TOKEN", "a long secret for this page")]).await;
    let mut browser = Browser::new(&served.origin);
    assert_eq!(browser.post("/unlock", &[("token", "wrong")]).await.status, 401);
    let got = browser.post("/unlock", &[("token", "a long secret for this page")]).await;
    assert_eq!(got.status, 303);
    browser.cookie = got.header("set-cookie").split(';').next().unwrap().to_owned();
    assert_eq!(browser.get("/").await.status, 200);
}

#[tokio::test]
async fn an_address_that_others_reach_needs_a_token_a_certificate_and_a_name() {
    let root = tempfile::tempdir().unwrap();
    let everyone = "0.0.0.0:0".parse().unwrap();
    let refused = |settings: &[(&str, &str)], hosts: &[&str]| {
        let config = config(root.path(), settings);
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        async move {
            let page = Page::new(config, Arc::new(SystemClock)).hosts(hosts);
            match page.listen(everyone).await.unwrap_err() {
                PageError::Unprotected { missing, .. } => missing,
                other => panic!("{other}"),
            }
        }
    };
    assert_eq!(refused(&[], &["pi.local"]).await, "a token");
    assert_eq!(refused(&[("PAGE__TOKEN", "secret")], &["pi.local"]).await, "a certificate");
}

#[tokio::test]
async fn a_page_that_is_read_only_changes_nothing() {
    let served = Served::with(&[("PAGE__READONLY", "true")]).await;
    let store = served.say(named("kitchen"), &["one", "two"]).await;
    let browser = served.enter().await;
    for path in ["forget", "forgotten", "talk", "settings", "limits", "stop"] {
        let got = browser
            .post(&format!("/{path}/named/kitchen"), &[("what", "whole"), ("say", "x")])
            .await;
        assert_eq!(got.status, 403, "{path}");
    }
    let page = browser.get("/timeline/named/kitchen").await;
    assert!(page.text.contains("one") && !page.text.contains("<textarea"));
    assert_eq!(sottovoce::ConversationStore::read_tail(&store, 9).await.unwrap().messages.len(), 2);
}

#[tokio::test]
async fn another_key_gets_a_page_that_says_so() {
    let served = Served::start().await;
    served.say(named("kitchen"), &["canary words"]).await;
    let root = served.root.path().join("config/key");
    std::fs::remove_file(&root).unwrap();
    EncryptionKey::read_or_make_file(&root).unwrap();
    let browser = served.enter().await;
    let got = browser.get("/timeline/named/kitchen").await;
    assert_eq!(got.status, 500);
    assert!(got.text.contains("key") && !got.text.contains("canary"), "{}", got.text);
    assert_eq!(browser.get("/health").await.status, 200);
    assert!(browser.get("/").await.text.contains("cannot be read"));
}

#[tokio::test]
async fn before_the_first_message_the_page_says_so_and_makes_no_key_by_itself() {
    let root = tempfile::tempdir().unwrap();
    let page = Page::new(config(root.path(), &[]), Arc::new(SystemClock));
    let listening = page.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let (origin, link) = (format!("http://{}", listening.address()), listening.link().unwrap());
    let stop = CancellationToken::new();
    tokio::spawn(listening.serve(stop.clone()));
    let browser = Browser::new(&origin).enter(&link).await;
    assert!(browser.get("/").await.text.contains("Nothing is remembered yet"));
    assert!(!root.path().join("config/key").exists());
    assert_eq!(browser.post("/begin", &[]).await.status, 303);
    assert!(root.path().join("config/key").exists());
    assert_eq!(browser.get("/timeline/default").await.status, 200);
    stop.cancel();
}
