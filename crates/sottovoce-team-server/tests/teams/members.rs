//! Members: roles, grants, invitations and tokens

use jiff::SignedDuration;
use serde_json::{Value, json};
use sottovoce_team_server::api::{Id, Secret};

use crate::harness::{Member, Setup, base64, engines, message};

/// The statuses of what a member may do with a conversation.
async fn statuses(member: &Member, conversation: Id, n: u64) -> Vec<u16> {
    let path = format!("context/conversations/{conversation}");
    let artifact = Id::random().unwrap();
    vec![
        member.get(&path).await.status,
        member.get(&format!("{path}/changes?after=0")).await.status,
        member.get(&format!("{path}/artifacts")).await.status,
        member.get(&format!("{path}/grants")).await.status,
        member.post(&format!("{path}/messages"), json!({ "records": [message(n)] })).await.status,
        member.put(&format!("{path}/artifacts/{artifact}"), json!(1)).await.status,
        member.delete(&format!("{path}/artifacts/{artifact}")).await.status,
        member
            .put(&format!("{path}/grants/{}", member.id), json!({ "level": "read" }))
            .await
            .status,
    ]
}

#[tokio::test]
async fn a_grant_allows_what_it_says_and_no_more() {
    for engine in engines().await {
        let (_server, owner) = Setup::new(engine).start_with_owner().await;
        let conversation = owner.conversation().await;
        let none = vec![404; 8];
        let read = vec![200, 200, 200, 200, 403, 403, 403, 403];
        let write = vec![200, 200, 200, 200, 200, 204, 204, 403];
        let manage = vec![200, 200, 200, 200, 200, 204, 204, 204];
        for (n, (level, expected)) in
            (0..).zip([("read", read), ("write", write), ("manage", manage)])
        {
            let member = owner.invite("member", json!([])).await;
            assert_eq!(statuses(&member, conversation, n).await, none, "without a grant");
            let path = format!("context/conversations/{conversation}/grants/{}", member.id);
            assert_eq!(owner.put(&path, json!({ "level": level })).await.status, 204);
            assert_eq!(statuses(&member, conversation, 100 + n).await, expected, "{level}");
            assert_eq!(owner.delete(&path).await.status, 204);
            assert_eq!(statuses(&member, conversation, 200 + n).await, none, "taken back");
            assert_eq!(owner.delete(&path).await.status, 404);
        }
        // An administrator grants what it may not read, and that is on record.
        let admin = owner.invite("admin", json!([])).await;
        assert_eq!(
            statuses(&admin, conversation, 300).await,
            [404, 404, 404, 200, 404, 404, 404, 204]
        );
        assert_eq!(admin.get(&format!("context/conversations/{conversation}")).await.status, 200);
        let audit = owner.get("audit").await.json();
        let last = audit["entries"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(
            (&last["action"], &last["member"], &last["target"], &last["subject"]),
            (&json!("grant"), &json!(admin.id), &json!(conversation), &json!(admin.id))
        );
    }
}

#[tokio::test]
async fn a_role_allows_what_it_says_and_no_more() {
    for engine in engines().await {
        let (_server, owner) = Setup::new(engine).start_with_owner().await;
        let admin = owner.invite("admin", json!([])).await;
        let member = owner.invite("member", json!([])).await;
        for (caller, invited, expected) in [
            (&member, "member", 403),
            (&member, "admin", 403),
            (&member, "owner", 403),
            (&admin, "member", 201),
            (&admin, "admin", 201),
            (&admin, "owner", 403),
            (&owner, "owner", 201),
        ] {
            let status = caller.post("invitations", json!({ "role": invited })).await.status;
            assert_eq!(status, expected, "{invited}");
        }
        for (rest, expected) in
            [("audit", 403), ("invitations", 403), ("members", 200), ("tokens", 200), ("", 200)]
        {
            assert_eq!(member.get(rest).await.status, expected, "{rest}");
            assert_eq!(admin.get(rest).await.status, 200, "{rest}");
        }
        let of = |member: &Member| format!("members/{}", member.id);
        for (caller, target, role, expected) in [
            (&member, &member, "admin", 403),
            (&admin, &admin, "owner", 403),
            (&admin, &owner, "member", 403),
            (&admin, &member, "owner", 403),
            (&admin, &member, "admin", 204),
            (&admin, &member, "member", 204),
            (&owner, &owner, "admin", 409),
        ] {
            let status = caller.patch(&of(target), json!({ "role": role })).await.status;
            assert_eq!(status, expected, "to {role}");
        }
        assert_eq!(member.delete(&of(&admin)).await.status, 403);
        assert_eq!(admin.delete(&of(&owner)).await.status, 403);
        assert_eq!(owner.delete(&of(&owner)).await.status, 409, "the last owner stays");
        let other = owner.invite("owner", json!([])).await;
        assert_eq!(owner.delete(&of(&owner)).await.status, 204, "another owner is left");
        assert_eq!(other.delete(&of(&other)).await.status, 409);
        assert_eq!(other.delete(&of(&owner)).await.status, 404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_owners_that_remove_each_other_leave_one() {
    for engine in engines().await {
        let (_server, one) = Setup::new(engine).start_with_owner().await;
        let witness = one.invite("admin", json!([])).await;
        let mut one = one;
        for _ in 0..8 {
            let other = one.invite("owner", json!([])).await;
            let (of_one, of_other) =
                (format!("members/{}", one.id), format!("members/{}", other.id));
            let (first, second) = tokio::join!(one.delete(&of_other), other.delete(&of_one));
            let statuses = [first.status, second.status];
            assert_eq!(statuses.iter().filter(|status| **status == 204).count(), 1, "{statuses:?}");
            assert!(statuses.contains(&401), "the other is nobody any more: {statuses:?}");
            if second.status == 204 {
                one = other;
            }
        }
        assert_eq!(witness.get("members").await.json()["members"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn a_removed_member_has_nothing_left_and_cannot_come_back() {
    for engine in engines().await {
        let setup = Setup::new(engine);
        let (_server, owner) = setup.start_with_owner().await;
        let second = setup.start().await;
        let admin = owner.invite("admin", json!([])).await;
        let conversation = admin.conversation().await;
        let other_token =
            admin.post("tokens", json!({})).await.json()["token"].as_str().unwrap().to_owned();
        let back = admin.post("invitations", json!({ "role": "admin" })).await.json();
        let path = format!("context/conversations/{conversation}/changes?after=0&wait=30");
        let (waiting, at) = (admin.clone(), path.clone());
        let waiting = tokio::spawn(async move { waiting.get(&at).await });
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        assert_eq!(
            owner
                .put(
                    &format!("context/conversations/{conversation}/grants/{}", owner.id),
                    json!({ "level": "write" })
                )
                .await
                .status,
            204
        );
        assert_eq!(owner.delete(&format!("members/{}", admin.id)).await.status, 204);
        let other = Member { token: other_token, ..admin.clone() };
        for caller in [&admin, &other, &admin.at(&second)] {
            for rest in [
                "",
                "members",
                "context/conversations",
                &format!("context/conversations/{conversation}"),
            ] {
                assert_eq!(caller.get(rest).await.status, 401, "{rest}");
            }
        }
        let accept = json!({ "invitation": back["invitation"] });
        assert_eq!(owner.call("POST", "/api/v1/invitations/accept", accept).await.status, 404);
        // What waited from before gets nothing that came after.
        owner.append(conversation, vec![message(1)]).await;
        assert_eq!(waiting.await.unwrap().status, 401);
    }
}

#[tokio::test]
async fn an_invitation_is_accepted_once_and_in_time() {
    for engine in engines().await {
        let setup = Setup::new(engine);
        let (_server, owner) = setup.start_with_owner().await;
        let conversation = owner.conversation().await;
        let accept = async |invitation: &Value| {
            let body = json!({ "invitation": invitation["invitation"], "profile": base64(b"sealed name") });
            owner.call("POST", "/api/v1/invitations/accept", body).await
        };
        let invite = json!({ "role": "member", "grants": [{ "conversation": conversation, "level": "write" }], "seconds": 60 });
        let invitation = owner.post("invitations", invite.clone()).await.json();
        let (one, two, three) =
            tokio::join!(accept(&invitation), accept(&invitation), accept(&invitation));
        let mut statuses = [one.status, two.status, three.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 404, 404]);
        let joined = [one, two, three].into_iter().find(|answer| answer.status == 201).unwrap();
        let member = Member::new(owner.address, &serde_json::from_slice(&joined.body).unwrap());
        member.append(conversation, vec![message(1)]).await;
        let members = owner.get("members").await.json();
        let listed = members["members"]
            .as_array()
            .unwrap()
            .iter()
            .find(|listed| listed["id"] == json!(member.id))
            .unwrap();
        assert_eq!(listed["profile"], base64(b"sealed name"));

        let late = owner.post("invitations", invite.clone()).await.json();
        assert_eq!(
            owner.get("invitations").await.json()["invitations"].as_array().unwrap().len(),
            1
        );
        setup.clock.advance(SignedDuration::from_secs(60));
        assert_eq!(accept(&late).await.status, 404);
        assert!(
            owner.get("invitations").await.json()["invitations"].as_array().unwrap().is_empty()
        );

        let withdrawn = owner.post("invitations", invite).await.json();
        assert_eq!(
            owner
                .delete(&format!("invitations/{}", withdrawn["id"].as_str().unwrap()))
                .await
                .status,
            204
        );
        assert_eq!(accept(&withdrawn).await.status, 404);

        // What its author may not give any more is not given.
        let admin = owner.invite("admin", json!([])).await;
        let strong = admin.post("invitations", json!({ "role": "admin" })).await.json();
        assert_eq!(
            owner.patch(&format!("members/{}", admin.id), json!({ "role": "member" })).await.status,
            204
        );
        assert_eq!(accept(&strong).await.status, 404);
    }
}

#[tokio::test]
async fn an_expired_revoked_or_changed_token_opens_nothing() {
    for engine in engines().await {
        let setup = Setup::new(engine);
        let (_server, owner) = setup.start_with_owner().await;
        let issue = async |body: Value| {
            let issued = owner.post("tokens", body).await;
            assert_eq!(issued.status, 201, "{}", issued.text());
            (
                issued.json(),
                Member {
                    token: issued.json()["token"].as_str().unwrap().to_owned(),
                    ..owner.clone()
                },
            )
        };
        let own = owner.get("").await.json();
        let (_, short) = issue(json!({ "seconds": 10 })).await;
        let (stolen, thief) = issue(json!({})).await;
        let (same, _) = issue(json!({ "same_device": true })).await;
        assert_ne!(stolen["device"], own["device"]);
        assert_eq!(same["device"], own["device"]);
        assert_eq!((short.get("").await.status, thief.get("").await.status), (200, 200));
        setup.clock.advance(SignedDuration::from_secs(10));
        assert_eq!(short.get("").await.status, 401);
        let path = format!("tokens/{}", stolen["id"].as_str().unwrap());
        assert_eq!(owner.delete(&path).await.status, 204);
        assert_eq!(thief.get("").await.status, 401);
        assert_eq!(owner.delete(&path).await.status, 404);

        let last = owner.token.chars().last().unwrap();
        let mut forged: Vec<String> = vec![
            String::new(),
            Secret::random().unwrap().reveal().to_string(),
            owner.token.to_uppercase(),
            format!("{}=", owner.token),
            owner.token[..42].to_owned(),
            "' OR 1=1 --".to_owned(),
        ];
        // The last character has bits that say nothing. Only their one form counts.
        forged.extend(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
                .chars()
                .filter(|c| *c != last)
                .map(|c| format!("{}{c}", &owner.token[..42])),
        );
        for token in forged {
            let answer = Member { token: token.clone(), ..owner.clone() }.get("").await;
            assert_eq!(answer.status, 401, "{token}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
        // A clock that is set back opens nothing that was revoked, and closes nothing that is valid.
        setup.clock.advance(SignedDuration::from_hours(-24 * 365 * 50));
        assert_eq!((owner.get("").await.status, thief.get("").await.status), (200, 401));
        setup.clock.advance(SignedDuration::from_hours(24 * 365 * 80));
        assert_eq!(owner.get("").await.status, 401);
    }
}

#[tokio::test]
async fn members_revoke_their_own_tokens_and_administrators_those_of_others() {
    for engine in engines().await {
        let (_server, owner) = Setup::new(engine).start_with_owner().await;
        let (admin, member) =
            (owner.invite("admin", json!([])).await, owner.invite("member", json!([])).await);
        let token = async |of: &Member| {
            format!("tokens/{}", of.get("").await.json()["token"].as_str().unwrap())
        };
        let (of_owner, of_admin, of_member) =
            (token(&owner).await, token(&admin).await, token(&member).await);
        assert_eq!(member.delete(&of_admin).await.status, 404);
        assert_eq!(admin.delete(&of_owner).await.status, 404);
        assert_eq!(admin.delete(&of_member).await.status, 204);
        assert_eq!(member.get("").await.status, 401);
        assert_eq!(owner.delete(&of_admin).await.status, 204);
        assert_eq!(admin.get("").await.status, 401);
    }
}

#[tokio::test]
async fn an_only_owner_who_was_away_for_too_long_is_let_in_again_and_nobody_else_is() {
    for engine in engines().await {
        let setup = Setup::new(engine);
        let (server, owner) = setup.start_with_owner().await;
        let member = owner.invite("member", json!([])).await;
        setup.clock.advance(SignedDuration::from_hours(24 * 91));
        server.team.upkeep().await.unwrap();
        assert_eq!((owner.get("").await.status, member.get("").await.status), (401, 401));
        assert_eq!(server.team.renew_owners().await.unwrap(), 1);
        assert_eq!((owner.get("").await.status, member.get("").await.status), (200, 401));
        assert_eq!(owner.post("tokens", json!({ "same_device": true })).await.status, 201);
        setup.clock.advance(SignedDuration::from_hours(24 * 8));
        assert_eq!(owner.get("").await.status, 401);
    }
}
