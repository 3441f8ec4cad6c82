//! A remote that lies: whatever it returns, no device believes it, shows words to anybody else, or comes to harm

use std::collections::BTreeMap;
use std::io::Cursor;

use bytes::Bytes;
use jiff::SignedDuration;
use sottovoce::exchange::Sharing;
use sottovoce::store::{ArtifactKind, ArtifactStore, NewArtifact, Profile};
use sottovoce::{ConversationStore, Scope};
use sottovoce_remote::Remote;

use crate::house::{Machine, all_have, devices, named, problems};
use crate::simulation::Random;

type Objects = BTreeMap<String, Bytes>;

/// Three devices that have something to lose: two segments each and an artifact.
async fn family() -> [Machine; 3] {
    let machines = devices().await;
    for (at, machine) in machines.iter().enumerate() {
        machine.say(&format!("canary {at}")).await;
        machine.sync().await;
    }
    let store = machines[0].home.store(&Scope::Default).await;
    let new = NewArtifact::new(ArtifactKind::File, "canary.txt");
    store.add_artifact(new, Box::new(Cursor::new(b"canary contents".to_vec()))).await.unwrap();
    let rename = |profile: &mut Profile| profile.title = Some("canary title".to_owned());
    store.change_profile(Box::new(rename)).await.unwrap();
    for _ in 0..3 {
        for machine in &machines {
            machine.sync().await;
        }
    }
    machines
}

const WORDS: [&str; 3] = ["canary 0", "canary 1", "canary 2"];

/// Syncs all devices with what the remote returns instead, and then with what it should.
async fn survive(machines: &[Machine; 3], what: &str, lies: Objects) {
    let truth = machines[0].remote.objects.objects();
    machines[0].remote.objects.restore(lies);
    for machine in machines {
        // An error is as good as a report.
        drop(machine.try_sync().await);
        assert_eq!(machine.words().await, WORDS, "{what}");
    }
    machines[0].remote.objects.restore(truth);
    all_have(&machines.each_ref(), &WORDS).await;
}

#[tokio::test]
async fn objects_in_each_others_places_are_not_believed() {
    let machines = family().await;
    let objects = machines[0].remote.objects.objects();
    let names: Vec<&String> = objects.keys().collect();
    // Each object in the place of the next one of another kind, device or number, and in a place of its own.
    for step in 1..names.len().min(6) {
        let mut lies = objects.clone();
        for (at, name) in names.iter().enumerate() {
            lies.insert((*name).clone(), objects[names[(at + step) % names.len()]].clone());
        }
        survive(&machines, &format!("exchanged by {step}"), lies).await;
    }
}

#[tokio::test]
async fn objects_of_another_space_are_not_believed() {
    let machines = family().await;
    let others = family().await;
    let mut lies = machines[0].remote.objects.objects();
    let theirs: Vec<Bytes> = others[0].remote.objects.objects().into_values().collect();
    for (at, bytes) in lies.values_mut().enumerate() {
        *bytes = theirs[at % theirs.len()].clone();
    }
    let before = lies.len();
    survive(&machines, "another space", lies).await;
    assert!(machines[0].remote.objects.objects().len() >= before);
}

#[tokio::test]
async fn objects_that_were_there_before_undo_nothing() {
    let machines = family().await;
    let before = machines[0].remote.objects.objects();
    machines[0].home.clock.advance(SignedDuration::from_secs(60));
    machines[0].say("canary 3").await;
    machines[0].forget("canary 0").await;
    for _ in 0..3 {
        for machine in &machines {
            machine.sync().await;
        }
    }
    machines[0].remote.objects.restore(before);
    for machine in &machines {
        drop(machine.try_sync().await);
        assert_eq!(machine.words().await, ["canary 1", "canary 2", "canary 3"]);
    }
    all_have(&machines.each_ref(), &["canary 1", "canary 2", "canary 3"]).await;
    // A device that joins gets what was forgotten from nobody.
    let fourth = Machine::new(&machines[0].remote.objects);
    let invitation = machines[0].syncer.invitation().await.unwrap();
    fourth.syncer.join(&invitation, Default::default()).await.unwrap();
    all_have(&[&fourth], &["canary 1", "canary 2", "canary 3"]).await;
}

#[tokio::test]
async fn bytes_that_were_changed_cut_off_or_replaced_are_not_believed() {
    let cases = crate::simulation::number("SYNC_CASES").unwrap_or(15);
    let machines = family().await;
    for seed in 0..cases {
        let mut random = Random::new(seed);
        let mut lies = machines[0].remote.objects.objects();
        for bytes in lies.values_mut() {
            if random.below(2) == 0 {
                continue;
            }
            let mut changed = bytes.to_vec();
            match random.below(4) {
                0 => changed.truncate(random.below(changed.len() as u64) as usize),
                1 => changed.extend([b' '; 100]),
                2 => changed = (0..random.below(5000)).map(|_| random.next() as u8).collect(),
                _ => {
                    let at = random.below(changed.len() as u64) as usize;
                    changed[at] ^= 1 << random.below(8);
                }
            }
            *bytes = changed.into();
        }
        lies.retain(|_, _| random.below(8) > 0);
        survive(&machines, &format!("seed {seed}"), lies).await;
    }
}

#[tokio::test]
async fn invented_devices_and_objects_keep_nobody_from_syncing() {
    let [one, two, three] = family().await;
    let space = named(&one.remote.objects, "/h/")[0].split('/').next().unwrap().to_owned();
    let mut lies = one.remote.objects.objects();
    for number in 0..50_000_u128 {
        lies.insert(format!("{space}/h/{number:032x}.{}", number % 2), Bytes::from_static(b"x"));
        lies.insert(format!("{space}/o/{number:032x}/{number:032x}"), Bytes::from_static(b"x"));
    }
    // The largest object that a remote may return.
    lies.insert(format!("{space}/h/{:032x}.1", 7), vec![b' '; sottovoce_remote::MAX_OBJECT].into());
    one.remote.objects.restore(lies);
    one.say("canary 3").await;
    one.sync().await;
    let report = two.sync().await;
    assert!(problems(&report).contains(&"too many devices"), "{report:?}");
    assert_eq!(two.words().await.last().unwrap(), "canary 3");
    assert_eq!(three.syncer.poll().await.unwrap().received, 1);
}

#[tokio::test]
async fn the_remote_holds_no_words_names_or_keys_in_any_form() {
    let machines = family().await;
    let store = machines[0].home.store(&Scope::Named { id: "canary-room".to_owned() }).await;
    machines[0].say_in(&Scope::Named { id: "canary-room".to_owned() }, "canary 9").await;
    drop(store);
    machines[0].sync().await;
    let code = machines[0].syncer.invitation().await.unwrap().code();
    let root = machines[0].home.store(&Scope::Default).await;
    let state = sottovoce::exchange::read_state(&root, Sharing::Devices).await.unwrap().unwrap();
    let state: serde_json::Value = serde_json::from_slice(&state).unwrap();
    let key = state["key"].as_str().unwrap().to_owned();
    let secrets = [
        b"canary".to_vec(),
        b"device 0".to_vec(),
        key.into_bytes(),
        code.as_bytes()[..80].to_vec(),
    ];
    let objects = machines[0].remote.objects.objects();
    assert!(objects.len() > 8);
    for (name, bytes) in &objects {
        for secret in &secrets {
            let is_there = bytes.windows(secret.len()).any(|window| window == secret);
            assert!(
                !is_there && !name.as_bytes().windows(secret.len()).any(|w| w == secret),
                "{name}"
            );
        }
    }
    // What was deleted is not at the remote either.
    let artifacts = root.artifacts().await.unwrap().0;
    root.delete_artifacts(&[artifacts[0].id.clone()]).await.unwrap();
    let before = objects.len();
    machines[0].sync().await;
    machines[0].sync().await;
    assert!(machines[0].remote.objects.objects().len() < before);
    assert!(machines[0].remote.get("nothing/there").await.unwrap().is_none());
}
