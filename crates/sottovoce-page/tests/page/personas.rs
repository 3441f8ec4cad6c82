//! Who the model is in a conversation: assigned, changed, taken away.

use sottovoce::persona::Persona;
use sottovoce::{ConversationStore, Scope};

use crate::harness::{Served, named};

#[tokio::test]
async fn a_persona_is_assigned_to_any_conversation_changed_and_taken_away_and_every_message_stays()
{
    let served = Served::start().await;
    let browser = served.enter().await;
    for (scope, of) in [
        (named("kitchen"), "named/kitchen"),
        (Scope::Dm { user: "ann".into() }, "dm/ann"),
        (Scope::Default, "default"),
    ] {
        let store = served.say(scope, &["one", "two"]).await;
        let path = format!("/settings/{of}");
        let page = browser.get(&path).await.text;
        assert!(page.contains("preset-calm-counselor"), "{page}");
        let fields = [("what", "assign"), ("preset", "preset-calm-counselor"), ("system", "")];
        assert_eq!(browser.post(&path, &fields).await.status, 303, "{of}");
        let profile = store.profile().await.unwrap();
        let assigned = profile.assigned_persona.as_ref().unwrap();
        assert_eq!(assigned.preset.as_deref(), Some("preset-calm-counselor"));
        assert_eq!(assigned.persona.expiry_days, *Persona::EXPIRY_DAYS.end(), "nobody set another");
        assert_eq!(browser.post(&path, &fields).await.status, 422, "it has one already");
        let told: String = assigned.persona.told(true).chars().take(40).collect();
        let sees = browser.post(&format!("/sees/{of}"), &[("say", "Hello")]).await.text;
        assert!(sees.contains(&told.replace('\'', "&#39;")), "{sees}");
        let fields = [
            ("what", "persona"),
            ("system", "You are a <cook>."),
            ("personality", ""),
            ("temperature", "0.25"),
            ("days", "30"),
        ];
        assert_eq!(browser.post(&path, &fields).await.status, 303, "{of}");
        let persona = store.profile().await.unwrap().assigned_persona.clone().unwrap().persona;
        assert_eq!(
            (persona.system_prompt.as_str(), persona.expiry_days),
            ("You are a <cook>.", 30)
        );
        assert!(browser.get(&path).await.text.contains("You are a &lt;cook&gt;."));
        assert_eq!(browser.post(&path, &[("what", "unassign")]).await.status, 303);
        assert!(store.profile().await.unwrap().assigned_persona.is_none());
        assert_eq!(store.read_tail(9).await.unwrap().messages.len(), 2);
    }
}

#[tokio::test]
async fn a_persona_needs_words_and_figures_within_their_limits() {
    let served = Served::start().await;
    let store = served.say(named("kitchen"), &["one"]).await;
    let browser = served.enter().await;
    let path = "/settings/named/kitchen";
    for fields in [
        vec![("what", "assign")],
        vec![("what", "assign"), ("preset", "preset-calm-counselor"), ("system", "Another one.")],
        vec![("what", "assign"), ("system", "You cook."), ("days", "soon")],
        vec![("what", "assign"), ("system", "You cook."), ("days", "0")],
        vec![("what", "assign"), ("preset", "preset-of-nobody")],
    ] {
        let got = browser.post(path, &fields).await;
        assert!(got.status >= 400 && got.text.contains("role=\"alert\""), "{fields:?}");
    }
    assert!(store.profile().await.unwrap().assigned_persona.is_none());
    let own = [("what", "assign"), ("system", " You cook. "), ("days", "7")];
    assert_eq!(browser.post(path, &own).await.status, 303);
    let persona = store.profile().await.unwrap().assigned_persona.clone().unwrap().persona;
    assert_eq!((persona.system_prompt.as_str(), persona.expiry_days), ("You cook.", 7));
    for wrong in [[("temperature", "1.5"), ("days", "7")], [("temperature", "hot"), ("days", "7")]]
    {
        let fields = [&[("what", "persona"), ("system", "Hi")][..], &wrong].concat();
        assert!(browser.post(path, &fields).await.status >= 400, "{wrong:?}");
    }
    let after = store.profile().await.unwrap().assigned_persona.clone().unwrap().persona;
    assert_eq!(after, persona);
}
