//! The description of the interface is what is served

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sottovoce_team_server::api;
use sottovoce_team_server::routes;

use crate::harness::{Setup, engines, message};

#[tokio::test]
async fn every_route_is_described_and_every_description_is_served() {
    let (_server, owner) = Setup::new(engines().await.remove(0)).start_with_owner().await;
    let description = owner.call("GET", "/openapi.json", Value::Null).await.json();
    let mut described = BTreeSet::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            described.insert((method.to_uppercase(), path.clone()));
            let named: BTreeSet<&str> = operation["parameters"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|parameter| parameter["in"] == "path")
                .map(|parameter| parameter["name"].as_str().unwrap())
                .collect();
            let in_path: BTreeSet<&str> = path
                .split('/')
                .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
                .collect();
            assert_eq!(named, in_path, "{method} {path}");
        }
    }
    let served: BTreeSet<_> =
        routes().map(|(method, path)| (method.to_owned(), path.to_owned())).collect();
    assert_eq!(described, served);
    // The server knows each, and tells the methods of each path.
    for (method, path) in &described {
        let real = path.replace(['{', '}'], "");
        assert_ne!(owner.call(method, &real, Value::Null).await.status, 405, "{method} {path}");
        let other = owner.call("TRACE", &real, Value::Null).await;
        assert_eq!(other.status, 405, "{path}");
        assert!(
            other.header("allow").unwrap().split(", ").any(|allowed| allowed == method),
            "{method} {path}"
        );
    }
    assert_eq!(owner.call("GET", "/api/v1/nothing", Value::Null).await.status, 404);
}

/// The properties that a schema has and requires.
fn properties(description: &Value, schema: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let schema = &description["components"]["schemas"][schema];
    let names = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect();
    let required = schema["required"].as_array().into_iter().flatten();
    (names, required.map(|name| name.as_str().unwrap().to_owned()).collect())
}

#[tokio::test]
async fn answers_have_the_properties_that_are_described() {
    for engine in engines().await {
        let (_server, owner) = Setup::new(engine).start_with_owner().await;
        let description = owner.call("GET", "/openapi.json", Value::Null).await.json();
        let check = |schema: &str, value: &Value| {
            let (names, required) = properties(&description, schema);
            let found: BTreeSet<String> = value.as_object().unwrap().keys().cloned().collect();
            assert!(found.is_subset(&names) && required.is_subset(&found), "{schema}: {found:?}");
        };
        let conversation = owner.conversation().await;
        let path = format!("context/conversations/{conversation}");
        check(
            "Appended",
            &owner
                .post(&format!("{path}/messages"), json!({ "records": [message(1)] }))
                .await
                .json(),
        );
        let page = owner.get(&path).await.json();
        check("Page", &page);
        check("Record", &page["records"][0]);
        check("Organisation", &owner.get("").await.json());
        let list = owner.get("context/conversations").await.json();
        check("ConversationList", &list);
        check("Conversation", &list["conversations"][0]);
        check("Member", &owner.get("members").await.json()["members"][0]);
        check("AuditEntry", &owner.get("audit").await.json()["entries"][0]);
        check(
            "NewInvitation",
            &owner.post("invitations", json!({ "role": "member" })).await.json(),
        );
        check("Invitation", &owner.get("invitations").await.json()["invitations"][0]);
        check("NewToken", &owner.post("tokens", json!({})).await.json());
        check("Token", &owner.get("tokens").await.json()["tokens"][0]);
        check("GrantList", &owner.get(&format!("{path}/grants")).await.json());
        check("Problem", &owner.get("nothing").await.json());
        for (name, limit) in [("Append", api::MAX_RECORDS), ("CreateInvitation", api::MAX_RECORDS)]
        {
            let list = if name == "Append" { "records" } else { "grants" };
            let schema = &description["components"]["schemas"][name]["properties"][list];
            assert_eq!(schema["maxItems"], limit, "{name}");
        }
        let sealed = &description["components"]["schemas"]["Sealed"]["maxLength"];
        assert_eq!(*sealed, api::MAX_SEALED.div_ceil(3) * 4);
    }
}

#[tokio::test]
async fn metrics_are_the_operators_and_health_is_everybodys() {
    let setup = Setup::new(engines().await.remove(0));
    let (server, owner) = setup.start_with_owner().await;
    let conversation = owner.conversation().await;
    owner.append(conversation, vec![message(1), message(2)]).await;
    assert_eq!(owner.call("GET", "/metrics", Value::Null).await.status, 401);
    let operator =
        crate::harness::Member { token: setup.operator.reveal().to_string(), ..owner.clone() };
    let metrics = operator.call("GET", "/metrics", Value::Null).await;
    assert!(metrics.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    let text = metrics.text();
    assert!(
        text.contains("sottovoce_team_records_total 2\n") && text.ends_with("# EOF\n"),
        "{text}"
    );
    for id in [owner.org, owner.id, conversation] {
        assert!(!text.contains(&id.to_string()));
    }
    assert_eq!(
        operator.call("GET", &owner.path(""), Value::Null).await.status,
        401,
        "the operator is no member"
    );
    let stranger = crate::harness::Member { token: String::new(), ..owner.clone() };
    assert_eq!(
        stranger.call("GET", "/health", Value::Null).await.json(),
        json!({ "state": "ready" })
    );
    assert_eq!(stranger.call("POST", "/api/v1/orgs", json!({})).await.status, 401);
    let created = operator.call("POST", "/api/v1/orgs", json!({})).await;
    assert_eq!(created.status, 201);
    drop(server);
}
