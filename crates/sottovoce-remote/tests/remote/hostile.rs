//! Servers that send what they should not

use std::sync::atomic::{AtomicUsize, Ordering};

use sottovoce_remote::{ErrorKind, MAX_NAMES};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fake_server::{Server, answer, chunk, empty_folder, soon};

#[tokio::test]
async fn an_endless_object_ends_in_an_error() {
    let head = "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nLast-Modified: Mon, 24 Nov 2025 00:00:00 GMT\r\n";
    for length in
        ["Content-Length: 9223372036854775807\r\n\r\n", "Content-Length: 16777217\r\n\r\n"]
    {
        let text: &'static str = format!("{head}{length}").leak();
        let server = Server::never_ends(text, "xxxxxxxxxxxxxxxx").await;
        for remote in [server.webdav(), server.s3()] {
            let error = soon(remote.get("a")).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        }
    }
    let text = format!("{head}Transfer-Encoding: chunked\r\n\r\n").leak();
    let server = Server::never_ends(text, "10\r\nxxxxxxxxxxxxxxxx\r\n").await;
    soon(server.webdav().get("a")).await.unwrap_err();
}

#[tokio::test]
async fn an_endless_listing_ends_in_an_error() {
    let head = "HTTP/1.1 207 Multi-Status\r\nTransfer-Encoding: chunked\r\n\r\n1a\r\n<multistatus xmlns=\"DAV:\">\r\n";
    let server = Server::never_ends(head, &chunk("<response>aaaaaa")).await;
    assert_eq!(soon(server.webdav().list("a")).await.unwrap_err().kind(), ErrorKind::TooLarge);
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let server = Server::never_ends(head, &chunk("<Contents>aaaaaa")).await;
    assert_eq!(soon(server.s3().list("a")).await.unwrap_err().kind(), ErrorKind::TooLarge);
}

#[tokio::test]
async fn an_endless_refusal_is_still_a_refusal() {
    let head = "HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n";
    let server = Server::never_ends(head, "10\r\nxxxxxxxxxxxxxxxx\r\n").await;
    for remote in [server.webdav(), server.s3()] {
        assert_eq!(soon(remote.get("a")).await.unwrap_err().kind(), ErrorKind::Refused);
    }
}

fn page(keys: impl Iterator<Item = String>, token: &str) -> String {
    let contents: String = keys
        .map(|key| {
            format!(
                "<Contents><Key>{key}</Key><LastModified>2025-11-24T00:00:00.000Z</LastModified>\
                 <ETag>\"a\"</ETag><Size>1</Size></Contents>"
            )
        })
        .collect();
    let more = token.is_empty().then_some("").map_or_else(
        || format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>"),
        |_| "<IsTruncated>false</IsTruncated>".to_owned(),
    );
    answer("200 OK", "", &format!("<ListBucketResult>{more}{contents}</ListBucketResult>"))
}

#[tokio::test]
async fn pages_without_end_are_given_up() {
    for names in [1_000, 0] {
        let count = AtomicUsize::new(0);
        let server = Server::start(move |_, mut stream| {
            let first = count.fetch_add(names.max(1), Ordering::Relaxed);
            let keys = (first..first + names).map(|n| format!("pre/a/{n:08}"));
            let text = page(keys, &format!("t{first}"));
            async move {
                stream.write_all(text.as_bytes()).await.ok();
            }
        })
        .await;
        let error = soon(server.s3().list("a")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        assert!(server.requests().len() <= MAX_NAMES / 100, "{}", server.requests().len());
    }
}

#[tokio::test]
async fn names_that_lead_elsewhere_are_never_returned() {
    let keys =
        ["pre/a/good", "pre/a/b/deep", "other/a/x", "pre/ax", "pre/a/.hidden", "pre/a/sp ace"];
    let server = Server::says(page(keys.map(str::to_owned).into_iter(), "")).await;
    assert_eq!(soon(server.s3().list("a")).await.unwrap(), ["good"]);
    for key in ["pre/a/..", "pre/a/../../x", "pre/a//x", "pre/a/."] {
        let server = Server::says(page(std::iter::once(key.to_owned()), "")).await;
        let found = soon(server.s3().list("a")).await;
        assert!(found.as_ref().map_or(true, Vec::is_empty), "{key} {found:?}");
    }
    let response = |href: &str| {
        format!(
            "<response><href>{href}</href><propstat><prop><getlastmodified>Mon, 24 Nov 2025 00:00:00 GMT\
             </getlastmodified><getcontentlength>1</getcontentlength><resourcetype/></prop>\
             <status>HTTP/1.1 200 OK</status></propstat></response>"
        )
    };
    for (href, wanted) in [
        ("/dav/a/good", Some("good")),
        ("/dav/a/../x", None),
        ("/dav/a/%2e%2e/x", None),
        ("/dav/a/%2e%2e%2fx", None),
        ("/dav/a/b%2fx", None),
        ("/etc/passwd", None),
        ("/dav/b/x", None),
        ("/a/x", None),
    ] {
        let body = format!("<multistatus xmlns=\"DAV:\">{}</multistatus>", response(href));
        let server = Server::says(answer("207 Multi-Status", "", &body)).await;
        let found = soon(server.webdav().list("a")).await.unwrap_or_default();
        assert_eq!(found.first().map(String::as_str), wanted, "{href}");
    }
}

#[tokio::test]
async fn a_redirect_to_another_server_is_not_followed() {
    let other = Server::says(answer("200 OK", "", "x")).await;
    for status in [
        "301 Moved Permanently",
        "302 Found",
        "303 See Other",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let location = format!("Location: http://{}/dav/a\r\n", other.address);
        let server = Server::says(answer(status, &location, "")).await;
        for remote in [server.webdav(), server.s3()] {
            let errors = [
                soon(remote.get("a")).await.unwrap_err(),
                soon(remote.put("a", "x".into())).await.unwrap_err(),
                soon(remote.list("a")).await.unwrap_err(),
                soon(remote.delete("a")).await.unwrap_err(),
            ];
            for error in errors {
                assert_eq!(error.kind(), ErrorKind::Other, "{error}");
                assert!(error.to_string().contains("another place"), "{error}");
            }
        }
        // None was repeated.
        assert_eq!(server.requests().len(), 8);
    }
    assert_eq!(other.requests(), [] as [&str; 0]);
}

#[tokio::test]
async fn a_page_to_log_in_is_no_object_and_stores_none() {
    for status in ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect"]
    {
        let server = Server::start(move |head, mut stream| async move {
            let is_page = head.split(' ').nth(1) == Some("/login");
            let page = answer("200 OK", "ETag: \"a\"\r\n", "Who are you?");
            let text = if is_page { page } else { answer(status, "Location: /login\r\n", "") };
            stream.write_all(text.as_bytes()).await.ok();
            while matches!(stream.read(&mut [0; 1024]).await, Ok(1..)) {}
        })
        .await;
        for remote in [server.webdav(), server.s3()] {
            soon(remote.get("a")).await.unwrap_err();
            soon(remote.put("a", "x".into())).await.unwrap_err();
            soon(remote.list("a")).await.unwrap_err();
            soon(remote.delete("a")).await.unwrap_err();
        }
    }
}

#[tokio::test]
async fn a_folder_may_have_another_address_by_a_slash() {
    let server = Server::start(|head, mut stream| async move {
        let has_slash = head.split(' ').nth(1) == Some("/dav/a/");
        let text = if has_slash {
            empty_folder("/dav/a/")
        } else {
            answer("301 Moved Permanently", "Location: /dav/a/\r\n", "")
        };
        stream.write_all(text.as_bytes()).await.ok();
    })
    .await;
    assert_eq!(soon(server.webdav().list("a")).await.unwrap(), [] as [&str; 0]);
}

#[tokio::test]
async fn redirects_in_a_circle_end() {
    let server = Server::says(answer("301 Moved Permanently", "Location: /dav/a\r\n", "")).await;
    soon(server.webdav().get("a")).await.unwrap_err();
    assert!((2..10).contains(&server.requests().len()));
}

#[tokio::test]
async fn what_a_server_says_does_not_reach_errors() {
    let body = "<Error><Code>\x1b[2J</Code><Message>hunter2 \x1b[2J</Message></Error>";
    let server = Server::says(answer("400 Bad \x1b[2J", "", body)).await;
    for remote in [server.webdav(), server.s3()] {
        let error = soon(remote.get("a")).await.unwrap_err();
        let shown = format!("{error}{error:?}");
        assert!(!shown.contains("hunter2") && !shown.contains('\x1b'), "{shown}");
    }
}

#[tokio::test]
async fn a_missing_bucket_is_not_a_missing_object() {
    let missing =
        |code: &str| answer("404 Not Found", "", &format!("<Error><Code>{code}</Code></Error>"));
    let server = Server::says(missing("NoSuchBucket")).await;
    let remote = server.s3();
    let kinds = [
        soon(remote.get("a")).await.unwrap_err().kind(),
        soon(remote.put("a", "x".into())).await.unwrap_err().kind(),
        soon(remote.list("a")).await.unwrap_err().kind(),
        soon(remote.delete("a")).await.unwrap_err().kind(),
    ];
    assert_eq!(kinds, [ErrorKind::NoContainer; 4]);
    let server = Server::says(missing("NoSuchKey")).await;
    assert_eq!(soon(server.s3().get("a")).await.unwrap(), None);
    // A WebDAV server says no more than that.
    let remote = server.webdav();
    let kinds = [
        soon(remote.get("a")).await.unwrap_err().kind(),
        soon(remote.put("a/b", "x".into())).await.unwrap_err().kind(),
        soon(remote.list("a")).await.unwrap_err().kind(),
        soon(remote.delete("a")).await.unwrap_err().kind(),
    ];
    assert_eq!(kinds, [ErrorKind::NoContainer; 4]);
}

#[tokio::test]
async fn an_answer_that_is_too_short_is_asked_for_again() {
    let count = AtomicUsize::new(0);
    let server = Server::start(move |_, mut stream| {
        let length = if count.fetch_add(1, Ordering::Relaxed) < 2 { 10 } else { 4 };
        async move {
            let text =
                format!("HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: {length}\r\n\r\nfour");
            stream.write_all(text.as_bytes()).await.ok();
        }
    })
    .await;
    assert_eq!(soon(server.webdav().get("a")).await.unwrap().unwrap(), "four");
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    // The rest may be of a newer object.
    assert!(requests.iter().all(|head| !head.to_lowercase().contains("\r\nrange:")));
}

#[tokio::test]
async fn a_busy_server_is_asked_again_and_one_that_refuses_is_not() {
    for (status, kind, requests) in [
        ("503 Service Unavailable", ErrorKind::Unreachable, 5),
        ("429 Too Many Requests", ErrorKind::Unreachable, 5),
        ("423 Locked", ErrorKind::Unreachable, 5),
        ("401 Unauthorized", ErrorKind::Refused, 1),
        ("403 Forbidden", ErrorKind::Refused, 1),
        ("413 Content Too Large", ErrorKind::TooLarge, 1),
        ("507 Insufficient Storage", ErrorKind::Other, 1),
    ] {
        let server = Server::says(answer(status, "", "")).await;
        let error = soon(server.webdav().delete("a")).await.unwrap_err();
        assert_eq!((error.kind(), server.requests().len()), (kind, requests), "{error}");
    }
    // S3 says so if it has waited for the rest of a request.
    let body = "<Error><Code>RequestTimeout</Code></Error>";
    let server = Server::says(answer("400 Bad Request", "", body)).await;
    let error = soon(server.s3().put("a", "x".into())).await.unwrap_err();
    assert_eq!((error.kind(), server.requests().len()), (ErrorKind::Unreachable, 5), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_ends_in_an_error() {
    let server = Server::start(|_, stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let error = server.webdav().get("a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
}

#[tokio::test]
async fn a_folder_that_another_device_creates_at_the_same_moment_is_no_refusal() {
    // As Apache answers, if the other device was faster, and if nobody may create folders.
    for (second, created) in
        [("405 Method Not Allowed", Ok(())), ("403 Forbidden", Err(ErrorKind::Refused))]
    {
        let count = AtomicUsize::new(0);
        let server = Server::start(move |head, mut stream| {
            let folders = count.fetch_add(head.starts_with("MKCOL").into(), Ordering::Relaxed);
            let status = match (head.starts_with("MKCOL"), folders) {
                (true, 0) => "403 Forbidden",
                (true, _) => second,
                (false, 0) => "409 Conflict",
                (false, _) => "201 Created",
            };
            async move {
                stream.write_all(answer(status, "", "").as_bytes()).await.ok();
                while matches!(stream.read(&mut [0; 1024]).await, Ok(1..)) {}
            }
        })
        .await;
        let put = soon(server.webdav().put("a/b", "x".into())).await;
        assert_eq!(put.map_err(|error| error.kind()), created);
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_created_is_not_said_to_be_that_of_the_address() {
    let server = Server::start(|head, mut stream| async move {
        let text = match head.starts_with("PROPFIND") {
            true => empty_folder("/dav/"),
            false => answer("409 Conflict", "", ""),
        };
        stream.write_all(text.as_bytes()).await.ok();
        while matches!(stream.read(&mut [0; 1024]).await, Ok(1..)) {}
    })
    .await;
    let error = soon(server.webdav().put("a/b", "x".into())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Other, "{error}");
    assert!(error.to_string().ends_with("the server creates no folder for it"), "{error}");
}
