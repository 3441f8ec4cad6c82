//! Many connections, slow ones, and large forms.

use std::io::Write;
use std::time::Duration;

use reqwest::header::ORIGIN;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Served, named};
use crate::hostile_clients::{Hostile, is_alone};

/// How many connections there are, and how many files the process has besides: those of the server's end, of other tests, and so on.
const CONNECTIONS: u64 = 10_000;
const OTHERS: u64 = 2000;

/// Raises the limit of open files as far as it goes. Tells how many connections that allows.
fn connections() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let most = files.unwrap_or(u64::MAX).saturating_sub(OTHERS).clamp(100, CONNECTIONS);
    if most < CONNECTIONS {
        // Not with a macro, since what those print is shown of failed tests only.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: this process may not have enough files for {CONNECTIONS} connections; {most} were tried (see ulimit -Hn)"
        );
    }
    most
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_connections_of_strangers_do_not_keep_the_owner_out() {
    let served = Served::start().await;
    let browser = served.enter().await;
    let address = served.origin.strip_prefix("http://").unwrap().to_owned();
    let look = async || {
        let quick = tokio::time::timeout(Duration::from_secs(10), browser.get("/")).await;
        quick.unwrap().status
    };
    let mut strangers = Vec::new();
    for at in 0..connections() {
        let mut stranger = TcpStream::connect(&address).await.unwrap();
        if at % 2 == 0 {
            let _ = stranger.write_all(b"GET / HTTP/1.1\r\nHost: lo").await;
        }
        strangers.push(stranger);
        if at % 1000 == 0 {
            assert_eq!(look().await, 200, "after {at}");
        }
    }
    assert_eq!(look().await, 200);
}

#[tokio::test]
async fn a_form_that_is_too_large_is_refused_and_one_of_a_megabyte_is_not() {
    let served = Served::start().await;
    let browser = served.enter().await;
    let origin = served.origin.clone();
    let too_large = browser.form(&[("say", &"x".repeat(5 << 20))]);
    let got = browser.send("/talk/named/kitchen", &[(ORIGIN, &origin)], &too_large).await;
    assert_eq!(got.status, 413);
    let got = browser.post("/talk/named/kitchen", &[("say", &"x".repeat(1 << 20))]).await;
    assert_ne!(got.status, 413);
}

#[tokio::test]
async fn a_slow_body_is_given_up_and_nobody_waits_for_it() {
    let served = Served::start().await;
    let browser = served.enter().await;
    let address = served.origin.strip_prefix("http://").unwrap().to_owned();
    let mut slow = Vec::new();
    for _ in 0..40 {
        let mut connection = TcpStream::connect(&address).await.unwrap();
        let head = format!(
            "POST /talk/default HTTP/1.1\r\nHost: {address}\r\nOrigin: {}\r\nCookie: {}\r\nContent-Length: 1000\r\n\r\ncsrf=",
            served.origin, browser.cookie
        );
        connection.write_all(head.as_bytes()).await.unwrap();
        slow.push(connection);
    }
    let quick = tokio::time::timeout(Duration::from_secs(5), browser.get("/")).await;
    assert_eq!(quick.unwrap().status, 200);
    let mut answer = Vec::new();
    let mut first = slow.remove(0);
    let read = tokio::time::timeout(Duration::from_secs(25), first.read_to_end(&mut answer)).await;
    assert!(read.is_ok(), "the connection is closed");
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"));
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_hostile_clients_send_memory_stays_small_and_the_owner_is_answered() {
    if !is_alone(
        "flooding::whatever_hostile_clients_send_memory_stays_small_and_the_owner_is_answered",
    ) {
        return;
    }
    let served = Served::start().await;
    served.say(named("kitchen"), &["Hello.", "Hello!"]).await;
    let browser = served.enter().await;
    let address = served.origin.strip_prefix("http://").unwrap();
    let ask = async || assert_eq!(browser.get("/timeline/named/kitchen").await.status, 200);
    let hostile = Hostile::of(address.parse().unwrap(), ask).await;
    hostile.silent(5000).await;
    hostile.endless_heads(100).await;
    let post = |path: &str| {
        format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nOrigin: {}\r\n", served.origin)
    };
    for path in ["/talk/named/kitchen", "/unlock", "/enter"] {
        hostile.unfinished(&post(path), 255, (4 << 20) - 2).await;
    }
    let with_cookie = format!("{}Cookie: {}\r\n", post("/talk/named/kitchen"), browser.cookie);
    hostile.unfinished(&with_cookie, 60, (4 << 20) - 2).await;
}
