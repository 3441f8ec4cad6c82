//! Who gets in, and who is shut out

use sottovoce_sync::Failure;
use sottovoce_team::{Level, Link, Role, TeamError};

use crate::house::{House, PLANS, scope};
use crate::proxy::Fate;

fn again(link: &Link) -> Link {
    link.reveal().parse().unwrap()
}

#[tokio::test]
async fn an_invitation_lets_in_one_member_once() {
    let house = House::new().await;
    let anna = house.anna().await;
    let link =
        anna.teams.invite(None, &[scope(PLANS)], (Role::Member, Level::Write), None).await.unwrap();
    let (ben, thief) = (house.person("Ben"), house.person("Thief"));
    ben.teams.join(&again(&link), "Ben").await.unwrap();
    let refused = thief.teams.join(&again(&link), "Ben").await.unwrap_err();
    assert!(!refused.is_transient(), "{refused}");
    assert!(thief.teams.status().await.unwrap().is_empty());
    // For a member, it changes nothing.
    let joined = ben.teams.join(&again(&link), "Ben").await.unwrap();
    assert!(!joined.is_new && joined.conversations.is_empty());
    let members = anna.teams.members(None).await.unwrap();
    let names: Vec<_> = members.iter().filter_map(|member| member.name.as_deref()).collect();
    assert_eq!((members.len(), names.contains(&"Anna"), names.contains(&"Ben")), (2, true, true));
}

#[tokio::test]
async fn an_invitation_expires() {
    let house = House::new().await;
    let anna = house.anna().await;
    let invite = anna.teams.invite(None, &[], (Role::Member, Level::Read), Some(60));
    let link = invite.await.unwrap();
    house.later(61);
    assert!(house.person("Late").teams.join(&link, "Late").await.is_err());
}

#[tokio::test]
async fn a_conversation_of_that_name_which_is_here_already_does_not_mix_with_the_shared_one() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.person("Ben");
    ben.says(PLANS, "my own plans").await;
    let link =
        anna.teams.invite(None, &[scope(PLANS)], (Role::Member, Level::Write), None).await.unwrap();
    let joined = ben.teams.join(&again(&link), "Ben").await.unwrap();
    assert_eq!(joined.conversations, [scope("named/plans-2")]);
    ben.sync().await;
    anna.sync().await;
    assert_eq!(ben.words(PLANS).await, ["my own plans"]);
    assert_eq!(ben.words("named/plans-2").await, ["We meet on Monday"]);
    assert_eq!(anna.words(PLANS).await, ["We meet on Monday"]);
}

#[tokio::test]
async fn what_a_reader_says_stays_on_the_device_until_the_reader_may_write() {
    let house = House::new().await;
    let anna = house.anna().await;
    let rita = house.guest(&anna, "Rita", Level::Read).await;
    rita.says(PLANS, "may I?").await;
    let problems = rita.problems().await;
    assert!(problems[0].to_string().contains("only read"), "{problems:?}");
    assert_eq!(rita.problems().await, []);
    anna.sync().await;
    assert_eq!(anna.words(PLANS).await, ["We meet on Monday"]);
    anna.teams.grant("Rita", &scope(PLANS), Level::Write).await.unwrap();
    assert_eq!(rita.sync().await.published, 1, "her own, and not what others said");
    anna.sync().await;
    assert_eq!(anna.holds(PLANS).await, ["We meet on Monday", "Rita: may I?"]);
}

#[tokio::test]
async fn a_member_who_is_shut_out_reads_nothing_new_and_the_others_go_on_with_a_new_key() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    let carl = house.guest(&anna, "Carl", Level::Write).await;
    let link = anna.teams.revoke(None, "Carl", None).await.unwrap().unwrap();
    anna.says(PLANS, "Carl is out").await;
    anna.sync().await;
    let error = carl.teams.sync(|_| {}).await.unwrap_err();
    assert!(matches!(error, TeamError::NotAMember { .. }), "{error}");
    assert_eq!(carl.words(PLANS).await, ["We meet on Monday"]);
    // Whoever lacks the new key is told, and misses nothing.
    let problems = ben.problems().await;
    assert!(problems[0].to_string().contains("new link"), "{problems:?}");
    ben.says(PLANS, "hello?").await;
    ben.teams.sync(|_| {}).await.unwrap();
    anna.sync().await;
    assert!(carl.teams.join(&again(&link), "Carl").await.is_err());
    ben.teams.join(&again(&link), "Ben").await.unwrap();
    ben.sync().await;
    assert_eq!(ben.words(PLANS).await, ["Carl is out", "We meet on Monday", "hello?"]);
    assert_eq!(anna.words(PLANS).await, ben.words(PLANS).await);
    // Nobody is left who needs a link.
    assert!(anna.teams.revoke(None, "Ben", None).await.unwrap().is_none());
}

#[tokio::test]
async fn a_member_who_is_shut_out_has_no_key_of_what_follows_even_if_the_answer_is_lost() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    house.guest(&anna, "Carl", Level::Write).await;
    house.proxy.decide(|asked| match asked.starts_with("DELETE") {
        true => Fate::LoseAnswer,
        false => Fate::Pass,
    });
    anna.teams.revoke(None, "Carl", None).await.unwrap_err();
    house.proxy.calm();
    assert_eq!(anna.teams.members(None).await.unwrap().len(), 2);
    anna.says(PLANS, "Carl is out").await;
    anna.sync().await;
    let problems = ben.problems().await;
    assert!(problems[0].to_string().contains("new link"), "{problems:?}");
    let link = anna.teams.grant("Ben", &scope(PLANS), Level::Write).await.unwrap();
    ben.teams.join(&link, "Ben").await.unwrap();
    ben.sync().await;
    assert_eq!(ben.words(PLANS).await, ["Carl is out", "We meet on Monday"]);
}

#[tokio::test]
async fn keys_stay_as_they_are_if_the_server_refuses_to_shut_a_member_out() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    house.guest(&anna, "Carl", Level::Write).await;
    ben.teams.revoke(None, "Carl", None).await.unwrap_err();
    ben.says(PLANS, "all can read this").await;
    ben.sync().await;
    anna.sync().await;
    assert_eq!(anna.words(PLANS).await, ["We meet on Monday", "all can read this"]);
    // An owner must remain.
    anna.teams.revoke(None, "Anna", None).await.unwrap_err();
    anna.says(PLANS, "and this").await;
    anna.sync().await;
    ben.sync().await;
    assert_eq!(ben.words(PLANS).await, ["We meet on Monday", "all can read this", "and this"]);
}

#[tokio::test]
async fn a_grant_that_is_taken_back_and_given_again_goes_on_where_it_was() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    anna.teams.revoke(None, "Ben", Some(&scope(PLANS))).await.unwrap();
    ben.says(PLANS, "while I was out").await;
    let problems = ben.problems().await;
    assert!(problems[0].to_string().contains("no access"), "{problems:?}");
    assert_eq!(ben.problems().await, []);
    let link = anna.teams.grant("Ben", &scope(PLANS), Level::Write).await.unwrap();
    ben.teams.join(&again(&link), "Ben").await.unwrap();
    ben.sync().await;
    anna.sync().await;
    assert_eq!(anna.words(PLANS).await, ["We meet on Monday", "while I was out"]);
}

#[tokio::test]
async fn a_conversation_that_is_no_longer_shared_stays_on_every_device_and_leaves_the_server() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    let carl = house.guest(&anna, "Carl", Level::Write).await;
    carl.teams.unshare(&scope(PLANS), false).await.unwrap();
    carl.says(PLANS, "by myself").await;
    assert_eq!(carl.problems().await, []);
    ben.says(PLANS, "still here").await;
    ben.sync().await;
    anna.sync().await;
    assert_eq!(anna.words(PLANS).await, ["We meet on Monday", "still here"]);
    assert_eq!(carl.words(PLANS).await, ["We meet on Monday", "by myself"]);
    // Ben may not end it for all.
    ben.teams.unshare(&scope(PLANS), true).await.unwrap_err();
    anna.teams.unshare(&scope(PLANS), true).await.unwrap();
    let problems = ben.problems().await;
    assert!(problems[0].to_string().contains("no access"), "{problems:?}");
    for home in [&anna, &ben] {
        assert_eq!(home.words(PLANS).await, ["We meet on Monday", "still here"]);
    }
    // It can be shared again, as another one.
    anna.teams.share(None, &scope(PLANS)).await.unwrap();
    anna.sync().await;
}

#[tokio::test]
async fn a_granted_conversation_needs_its_link_and_the_member_is_told() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    anna.says("named/budget", "400").await;
    anna.teams.share(None, &scope("named/budget")).await.unwrap();
    anna.sync().await;
    let link = anna.teams.grant("Ben", &scope("named/budget"), Level::Read).await.unwrap();
    let problems = ben.problems().await;
    assert!(problems[0].to_string().contains("ask for its link"), "{problems:?}");
    let joined = ben.teams.join(&again(&link), "Ben").await.unwrap();
    assert_eq!(joined.conversations, [scope("named/budget")]);
    ben.sync().await;
    assert_eq!(ben.words("named/budget").await, ["400"]);
    let grants = anna.teams.grants(&scope("named/budget")).await.unwrap();
    assert!(grants.contains(&("Ben".to_owned(), Level::Read)), "{grants:?}");
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires_and_the_old_one_ends() {
    let house = House::new().await;
    let anna = house.anna().await;
    anna.save();
    house.later(65 * 24 * 3600);
    anna.sync().await;
    house.later(65 * 24 * 3600);
    anna.sync().await;
    // The token of 130 days ago has expired, and was revoked.
    anna.restore();
    let error = anna.teams.sync(|_| {}).await.unwrap_err();
    assert!(matches!(error, TeamError::NotAMember { .. }), "{error}");
}

#[tokio::test]
async fn whoever_leaves_keeps_everything_and_an_owner_must_remain() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    ben.teams.leave(None, false).await.unwrap();
    assert!(matches!(ben.teams.sync(|_| {}).await, Err(TeamError::NoTeam)));
    assert_eq!(ben.words(PLANS).await, ["We meet on Monday"]);
    assert_eq!(anna.teams.members(None).await.unwrap().len(), 1);
    assert!(anna.teams.leave(None, false).await.is_err());
    anna.sync().await;
}

#[tokio::test]
async fn a_store_can_be_in_two_teams_and_nothing_of_one_gets_into_the_other() {
    let house = House::new().await;
    let anna = house.anna().await;
    anna.teams.create(&house.start_link(), "Club", "Anna").await.unwrap();
    assert!(matches!(anna.teams.members(None).await, Err(TeamError::SeveralTeams)));
    anna.says("named/club", "chess").await;
    anna.teams.share(Some("Club"), &scope("named/club")).await.unwrap();
    anna.sync().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    assert_eq!(ben.words("named/club").await, [""; 0]);
    let mut exported = Vec::new();
    let take = |record: sottovoce_team::Exported| {
        exported.push(record.message.map(|message| message.content.clone()));
        Ok(())
    };
    anna.teams.export(Some("Club"), take).await.unwrap();
    assert_eq!(exported, [Some("chess".to_owned())]);
    // A conversation has one team.
    anna.teams.share(Some("Club"), &scope(PLANS)).await.unwrap();
    assert_eq!(anna.sync().await.published, 0);
}
