//! Many connections, slow ones, and large forms.

use std::time::Duration;

use reqwest::header::ORIGIN;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::Served;

/// As many connections as the process may have files, up to ten thousand. Both ends are in this process.
fn many() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let files = files.and_then(|rest| rest.split_whitespace().next()?.parse::<usize>().ok());
    files.map_or(500, |files| (files / 3).min(10_000))
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_connections_of_strangers_do_not_keep_the_owner_out() {
    let served = Served::start().await;
    let browser = served.enter().await;
    let address = served.origin.strip_prefix("http://").unwrap().to_owned();
    let mut strangers = Vec::new();
    for at in 0..many() {
        let mut stranger = TcpStream::connect(&address).await.unwrap();
        if at % 2 == 0 {
            let _ = stranger.write_all(b"GET / HTTP/1.1\r\nHost: lo").await;
        }
        strangers.push(stranger);
        if at % 1000 == 0 {
            assert_eq!(browser.get("/").await.status, 200, "after {at}");
        }
    }
    assert_eq!(browser.get("/").await.status, 200);
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
