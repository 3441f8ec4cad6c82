//! Clients that do not accept a stream of events, or send several requests at once.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::model::{ErrorCode, ServerJsonRpcMessage};
use serde_json::Value;
use tower_service::Service;

use crate::transport::lenient::{batch, incomplete, refusal, with_arguments};

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// After so many bytes of answers, a batch gets no more.
const LARGEST: usize = 4 << 20;
const EVENTS: &str = "text/event-stream";
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Asks the service as the protocol wants it, and answers as the client can read it.
pub(super) async fn answer<S>(service: &mut S, mut request: Request<Bytes>) -> Answer
where
    S: Service<Request<Full<Bytes>>, Response = Answer, Error = Infallible>,
{
    let method = request.method().clone();
    let takes_events = takes_events(&method, request.headers_mut());
    let Some(each) = batch(request.body()) else {
        let mut refused =
            Response::new(Full::from("a batch may have at most 100 requests\n").boxed());
        *refused.status_mut() = StatusCode::BAD_REQUEST;
        return refused;
    };
    if each.is_empty() {
        let response = ask(service, request.map(|body| body.to_vec())).await;
        return if takes_events { response } else { as_json(response).await };
    }
    // Notifications have no answer.
    let (mut answers, mut bytes) = (Vec::new(), 0);
    let mut last = Response::new(Full::default().boxed());
    *last.status_mut() = StatusCode::ACCEPTED;
    for one in each {
        let refused = |why: &str| refusal(&one, ErrorCode::INVALID_REQUEST, why);
        if bytes > LARGEST {
            let refused = refused("the answers of this batch are too large: ask one by one");
            answers.extend(refused.as_ref().map(written));
            continue;
        }
        let mut asked = Request::new(one.clone());
        *asked.method_mut() = method.clone();
        *asked.uri_mut() = request.uri().clone();
        asked.headers_mut().clone_from(request.headers());
        let response = ask(service, asked).await;
        match response.status() {
            StatusCode::OK => {
                let (head, body) = as_json(response).await.into_parts();
                let Ok(body) = body.collect().await;
                let body = body.to_bytes();
                bytes += body.len();
                answers.push(body);
                last = Response::from_parts(head, Full::default().boxed());
            }
            StatusCode::ACCEPTED => {}
            // What was carried out before is answered all the same.
            status => {
                let refused = refused(&format!("refused with status {status}"));
                answers.extend(refused.as_ref().map(written));
            }
        }
    }
    if !answers.is_empty() {
        let all = [b"[".as_slice(), &answers.join(&b','), b"]"].concat();
        last.headers_mut().insert(CONTENT_TYPE, JSON);
        *last.status_mut() = StatusCode::OK;
        *last.body_mut() = Full::new(Bytes::from(all)).boxed();
    }
    last
}

/// Asks for one answer.
async fn ask<S>(service: &mut S, request: Request<Vec<u8>>) -> Answer
where
    S: Service<Request<Full<Bytes>>, Response = Answer, Error = Infallible>,
{
    let request = request.map(with_arguments);
    if let Some(refused) = incomplete(request.body()) {
        let mut answer = Response::new(Full::new(written(&refused)).boxed());
        answer.headers_mut().insert(CONTENT_TYPE, JSON);
        return answer;
    }
    let Ok(response) = service.call(request.map(|body| Full::new(body.into()))).await;
    response
}

fn written(answer: &ServerJsonRpcMessage) -> Bytes {
    serde_json::to_vec(answer).unwrap_or_default().into()
}

/// Whether the client says that it reads events. One that says less, or nothing, gets what it asks for without them.
fn takes_events(method: &Method, headers: &mut HeaderMap) -> bool {
    let said: Vec<&str> =
        headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let takes = |kind: &str| said.iter().any(|said| said.contains(kind));
    let takes_events = takes(EVENTS);
    let takes_any = said.is_empty() || takes("*/*");
    let whole = match *method {
        Method::POST if takes_any || takes("application/") => "application/json, text/event-stream",
        Method::GET if takes_any || takes("text/*") => EVENTS,
        _ => return true,
    };
    headers.insert(ACCEPT, HeaderValue::from_static(whole));
    takes_events || *method == Method::GET
}

/// The answer that a stream of events brings. Notifications on the way to it are for who reads streams.
async fn as_json(response: Answer) -> Answer {
    if response.headers().get(CONTENT_TYPE).is_none_or(|kind| kind != EVENTS) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let Ok(body) = body.collect().await;
    let body = body.to_bytes();
    let is_answer = |line: &&[u8]| {
        serde_json::from_slice::<Value>(line)
            .is_ok_and(|said| said.get("result").or(said.get("error")).is_some())
    };
    let mut data =
        body.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: "));
    let answer = data.find(is_answer).map(Bytes::copy_from_slice).unwrap_or_default();
    head.headers.insert(CONTENT_TYPE, JSON);
    Response::from_parts(head, Full::new(answer).boxed())
}
