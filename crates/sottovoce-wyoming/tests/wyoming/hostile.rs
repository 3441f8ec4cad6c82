//! Clients that are broken, slow, many or not allowed.

use std::time::Duration;

use serde_json::json;
use sottovoce::Scope;
use sottovoce_wyoming::{Access, ListenError, listen};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Client, Served};
use crate::hostile_clients::{Hostile, is_alone};
use crate::ollama::Answer;

#[tokio::test(flavor = "multi_thread")]
async fn garbage_ends_its_connection_and_no_other() {
    let served = Served::start().await;
    let mut good = served.client().await;
    let long = "x".repeat(100_000);
    for garbage in [
        "\n",
        "GET / HTTP/1.1\r\n\r\n",
        "[]\n",
        "{\"type\":7}\n",
        "{}\n",
        "{\"type\":\"transcript\",\"data_length\":4}\nnull",
        "{\"type\":\"transcript\",\"data_length\":99999999999}\n",
        "{\"type\":\"transcript\",\"payload_length\":99999999999}\n",
        "{\"type\":\"transcript\",\"data_length\":-1}\n",
        &long,
    ] {
        let mut stream = TcpStream::connect(("127.0.0.1", served.ports[0])).await.unwrap();
        stream.write_all(garbage.as_bytes()).await.ok();
        stream.shutdown().await.ok();
        let mut rest = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut rest));
        // Closed with unread input, a connection may be reset.
        read.await.expect("the connection ends").ok();
    }
    served.stub.next(Answer::saying(&["Fine."]));
    good.say("Hello?").await;
    assert_eq!(good.answer().await.1, "Fine.");
    let said = served.messages(&Scope::Default).await;
    assert!(said.iter().any(|stored| stored.message.content == "Hello?"));
    assert_eq!(said.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_in_pieces_with_payloads_and_of_unknown_kinds_are_understood() {
    let served = Served::start().await;
    served.stub.next(Answer::saying(&["Fine."]));
    let mut client = served.client().await;
    client.send("audio-start", json!({ "rate": 16000 })).await;
    let audio = "{\"type\":\"audio-chunk\",\"data_length\":2,\"payload_length\":5}\n{}abcde";
    let inline = "{\"type\":\"transcript\",\"data\":{\"text\":\"Hello?\"}}\n";
    for byte in [audio, inline].concat().bytes() {
        client.writer.write_all(&[byte]).await.unwrap();
        client.writer.flush().await.unwrap();
    }
    assert_eq!(client.answer().await.1, "Fine.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_megabyte_of_words_gets_an_answer_or_an_excuse() {
    let served = Served::start().await;
    let mut client = served.client().await;
    client.say(&"word \" ".repeat(160_000)).await;
    let (kinds, spoken) = client.answer().await;
    assert!(["handled-stop", "not-handled"].contains(&kinds.last().unwrap().as_str()));
    assert!(!spoken.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_connections_are_answered() {
    let served = Served::start().await;
    let mut clients = Vec::new();
    for _ in 0..200 {
        clients.push(Client::at(served.ports[0]).await);
    }
    for client in &mut clients {
        client.send("describe", json!({})).await;
    }
    for client in &mut clients {
        assert_eq!(client.next().await.unwrap().0, "info");
    }
}

#[tokio::test]
async fn an_address_that_others_can_reach_needs_somebody_who_is_allowed() {
    let open = || [("0.0.0.0:0".parse().unwrap(), None)];
    let refused = listen(open(), Access::default()).await.unwrap_err();
    assert!(matches!(refused, ListenError::NobodyAllowed { .. }));
    let allowed = Access::default().allow(["192.168.1.20".parse().unwrap()]);
    assert!(listen(open(), allowed).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_hostile_clients_send_memory_stays_small_and_others_are_answered() {
    if !is_alone(
        "hostile::whatever_hostile_clients_send_memory_stays_small_and_others_are_answered",
    ) {
        return;
    }
    let served = Served::start().await;
    let ask = async || {
        let mut client = served.client().await;
        client.send("describe", json!({})).await;
        assert_eq!(client.next().await.unwrap().0, "info");
    };
    let hostile = Hostile::of(([127, 0, 0, 1], served.ports[0]).into(), ask).await;
    hostile.silent(5000).await;
    hostile.endless_lines(100).await;
    let event = "{\"type\":\"transcript\",\"data_length\":8388608}\n";
    hostile.unfinished_after(event, 40, (8 << 20) - 1).await;
    let event = "{\"type\":\"audio-chunk\",\"payload_length\":67108864}\n";
    hostile.unfinished_after(event, 20, 31 << 20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_for_whose_words_there_is_no_memory_is_told_so() {
    let served = Served::start().await;
    let data = vec![b' '; (8 << 20) - 1];
    let header = "{\"type\":\"transcript\",\"data_length\":8388608}\n";
    let mut open = Vec::new();
    for _ in 0..4 {
        let mut client = served.client().await;
        client.writer.write_all(header.as_bytes()).await.unwrap();
        client.writer.write_all(&data).await.unwrap();
        open.push(client);
    }
    let mut refused = served.client().await;
    refused.writer.write_all(header.as_bytes()).await.unwrap();
    refused.writer.write_all(&data).await.unwrap();
    refused.writer.write_all(b"}").await.unwrap();
    let (kind, data) = refused.next().await.expect("an event comes");
    assert_eq!((kind.as_str(), data["code"].as_str()), ("error", Some("busy")));
    assert!(refused.next().await.is_none());
    let mut another = served.client().await;
    another.send("describe", json!({})).await;
    assert_eq!(another.next().await.unwrap().0, "info");
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_clients_keep_no_satellite_out_and_end_no_connection_of_one() {
    let served = Served::start().await;
    let mut satellite = served.client().await;
    satellite.send("describe", json!({})).await;
    assert_eq!(satellite.next().await.unwrap().0, "info");
    let mut silent = Vec::new();
    for _ in 0..600 {
        silent.push(Client::at(served.ports[0]).await);
    }
    let mut another = served.client().await;
    for client in [&mut another, &mut satellite] {
        client.send("describe", json!({})).await;
        assert_eq!(client.next().await.unwrap().0, "info");
    }
}
