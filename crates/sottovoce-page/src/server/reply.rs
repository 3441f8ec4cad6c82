//! The headers that every answer has, and how its body is sent.

use std::time::Duration;

use axum::body::Body;
use http::HeaderMap;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http_body::Body as _;
use http_body_util::BodyExt;

/// How long a browser may leave an answer unread.
pub(super) const UNREAD: Duration = Duration::from_secs(30);
/// How many pieces of an answer wait for a browser that reads slowly.
const WAITING: usize = 16;

/// Nothing is loaded from anywhere but here, and nothing is inline.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A page is sent whole. What takes longer is sent as it comes; if the browser leaves, it is dropped.
pub(super) async fn sent(mut body: Body) -> sottovoce_net::Body {
    if body.size_hint().exact().is_some() {
        let whole = body.collect().await;
        return whole
            .map_or_else(|_| sottovoce_net::Body::empty(), |whole| whole.to_bytes().into());
    }
    let (sender, pieces) = sottovoce_net::pieces(WAITING);
    tokio::spawn(async move {
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = sender.closed() => return,
            };
            match frame.map(|frame| frame.map(http_body::Frame::into_data)) {
                Some(Ok(Ok(piece))) => {
                    if !sender.send(piece, UNREAD).await {
                        return;
                    }
                }
                Some(Ok(Err(_))) => {}
                Some(Err(_)) => return,
                None => return sender.complete(),
            }
        }
    });
    pieces
}

/// Adds the headers that every answer has.
pub(super) fn protect(headers: &mut HeaderMap) {
    let fixed: [(HeaderName, &str); 6] = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // With `no-referrer`, browsers would not name the origin of forms either.
        (REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (
            HeaderName::from_static("permissions-policy"),
            "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        ),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(CONTENT_SECURITY_POLICY) {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    }
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if !headers.contains_key(CONTENT_TYPE) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    }
}
