//! Clients that keep less than the protocol's letter: they do not accept a stream of events, send several requests at once,
//! as revision 2025-03-26 has it, or write arguments as a text of JSON.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use serde_json::value::RawValue;
use sottovoce_net::replace_lone_surrogates;
use tower_service::Service;

type Answer = Response<BoxBody<Bytes, Infallible>>;

const EVENTS: &str = "text/event-stream";
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Asks the service as the protocol wants it, and answers as the client can read it.
pub(super) async fn answer<S>(service: &mut S, mut request: Request<Bytes>) -> Answer
where
    S: Service<Request<Full<Bytes>>, Response = Answer, Error = Infallible>,
{
    let method = request.method().clone();
    let takes_events = takes_events(&method, request.headers_mut());
    let each: Vec<&RawValue> = serde_json::from_slice(request.body()).unwrap_or_default();
    if each.is_empty() {
        let request = request.map(|body| Full::new(with_arguments(body)));
        let Ok(response) = service.call(request).await;
        return if takes_events { response } else { as_json(response).await };
    }
    // Notifications have no answer, and a refusal is that of them all.
    let mut answers = Vec::new();
    let mut last = Response::new(Full::default().boxed());
    *last.status_mut() = StatusCode::ACCEPTED;
    for one in each {
        let mut asked =
            Request::new(Full::new(with_arguments(Bytes::copy_from_slice(one.get().as_bytes()))));
        *asked.method_mut() = request.method().clone();
        *asked.uri_mut() = request.uri().clone();
        asked.headers_mut().clone_from(request.headers());
        let Ok(response) = service.call(asked).await;
        match response.status() {
            StatusCode::OK => {
                let (head, body) = as_json(response).await.into_parts();
                let Ok(body) = body.collect().await;
                answers.push(body.to_bytes());
                last = Response::from_parts(head, Full::default().boxed());
            }
            StatusCode::ACCEPTED => {}
            _ => return response,
        }
    }
    if !answers.is_empty() {
        let all = [b"[".as_slice(), &answers.join(&b','), b"]"].concat();
        *last.body_mut() = Full::new(Bytes::from(all)).boxed();
    }
    last
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

/// The request with the arguments that a text says.
fn with_arguments(body: Bytes) -> Bytes {
    let Ok(mut request) = serde_json::from_slice::<Value>(&body) else { return body };
    let Some(Value::String(said)) = request.pointer_mut("/params/arguments") else { return body };
    let mut said = std::mem::take(said).into_bytes();
    replace_lone_surrogates(&mut said);
    let Ok(Value::Object(said)) = serde_json::from_slice(&said) else { return body };
    if let Some(arguments) = request.pointer_mut("/params/arguments") {
        *arguments = Value::Object(said);
    }
    serde_json::to_vec(&request).map_or(body, Bytes::from)
}
