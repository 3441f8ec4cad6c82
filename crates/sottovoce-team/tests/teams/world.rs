//! The members of a simulation, what each of them does, and what must be true after it

use std::collections::BTreeSet;

use reqwest::StatusCode;
use serde_json::json;
use sottovoce_sync::{Problem, SyncReport};
use sottovoce_team::{Level, Role, TeamError};
use sottovoce_team_server::api::{Id, Rid};

use crate::house::{House, PLANS, Person, scope};
use crate::mallory::{Mallory, Seen};
use crate::proxy::Fate;

pub(crate) const OLDER: &str = "older state";
const UNOPENED: &str = "ask for a new link";
const HELD_BACK: &str = "holds back";
const EMPTIED: &str = "emptied records";
const REPEATED: &str = "repeats records";
const OTHERS_NAME: &str = "another message's name";
const NO_ACCESS: &str = "no access to it any more";

/// Random numbers of xorshift64*, by Vigna.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % most
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len().max(1) as u64) as usize)
    }
}

/// Whether the team's owner has let somebody in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Standing {
    In,
    WithoutGrant,
    Removed,
}

/// A member, and what is known of its store.
pub(crate) struct One {
    pub(crate) person: Person,
    pub(crate) standing: Standing,
    /// How many of the conversation's keys are here, and how many were when the store was saved.
    keys: u32,
    saved_keys: u32,
    /// How many keys there were when it was shut out, and what others have said since.
    out_at: u32,
    hidden: BTreeSet<String>,
    /// What it has said since it last exchanged everything, and since the store was saved.
    unsent: BTreeSet<String>,
    since_saved: BTreeSet<String>,
    /// What it has forgotten and nobody has heard of.
    untold: BTreeSet<String>,
    /// How many exchanges it needs to publish again and to tell which numbers it used in vain, since the server was put back.
    owes: u8,
}

pub(crate) struct World {
    pub(crate) house: House,
    pub(crate) random: Random,
    pub(crate) seed: u64,
    pub(crate) step: u32,
    pub(crate) is_server_restored: bool,
    /// Whether Mallory writes what the program never would.
    pub(crate) is_hostile: bool,
    pub(crate) all: Vec<One>,
    /// How many keys the conversation has had.
    keys: u32,
    pub(crate) said: BTreeSet<String>,
    pub(crate) forgotten: BTreeSet<String>,
    /// Those of which others have heard.
    pub(crate) told: BTreeSet<String>,
    /// Words that may be nowhere: said since a store was saved that was restored before it exchanged them.
    pub(crate) lost: BTreeSet<String>,
    /// Words whose records a hostile member has emptied without telling, or written in the wrong place: some have them.
    pub(crate) spoiled: BTreeSet<String>,
    pub(crate) is_title_spoiled: bool,
    /// What a hostile member can have others told for ever.
    pub(crate) lasting: BTreeSet<&'static str>,
    /// What they are told once, or each time that everything is read again.
    passing: BTreeSet<&'static str>,
    /// Whether a member was shut out in between, or the server was put back meanwhile.
    is_gone_untold: bool,
}

impl World {
    pub(crate) async fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let house = House::new().await;
        let anna = house.anna().await;
        let mut people = vec![anna];
        for name in ["Ben", "Carl", "Mallory"] {
            people.push(house.guest(&people[0], name, Level::Write).await);
        }
        house.save_server().await;
        let is_server_restored = seed % 2 == 1;
        if !is_server_restored && random.below(2) == 0 {
            house.one_more_server().await;
        }
        let one = |person: Person| {
            person.save();
            One {
                person,
                standing: Standing::In,
                keys: 1,
                saved_keys: 1,
                out_at: 0,
                hidden: BTreeSet::new(),
                unsent: BTreeSet::new(),
                since_saved: BTreeSet::new(),
                untold: BTreeSet::new(),
                owes: 0,
            }
        };
        Self {
            house,
            random,
            seed,
            step: 0,
            is_server_restored,
            is_hostile: seed.is_multiple_of(3),
            all: people.into_iter().map(one).collect(),
            keys: 1,
            said: BTreeSet::from(["We meet on Monday".to_owned()]),
            forgotten: BTreeSet::new(),
            told: BTreeSet::new(),
            lost: BTreeSet::new(),
            spoiled: BTreeSet::new(),
            is_title_spoiled: false,
            lasting: BTreeSet::new(),
            passing: BTreeSet::new(),
            is_gone_untold: false,
        }
    }

    pub(crate) fn at(&self) -> String {
        format!("seed {}, step {}", self.seed, self.step)
    }

    pub(crate) async fn says(&mut self, who: usize) {
        let words = format!("{} {}", self.all[who].person.name, self.step);
        self.all[who].person.says(PLANS, &words).await;
        self.said.insert(words.clone());
        self.all[who].unsent.insert(words.clone());
        self.all[who].since_saved.insert(words.clone());
        let keys = self.all[who].keys;
        for (n, one) in self.all.iter_mut().enumerate() {
            // A server that was put back may have let them in again. Only the key keeps words from them then.
            let is_kept = one.standing != Standing::In && n != who;
            if is_kept && (!self.is_server_restored || keys > one.out_at) {
                one.hidden.insert(words.clone());
            }
        }
    }

    pub(crate) async fn forgets(&mut self, who: usize) {
        let there = self.all[who].person.words(PLANS).await;
        if there.len() > 2
            && let Some(words) = self.random.one_of(&there)
        {
            self.all[who].person.forgets(PLANS, words).await;
            self.forgotten.insert(words.clone());
            self.all[who].untold.insert(words.clone());
        }
    }

    pub(crate) async fn restore_server(&mut self) {
        self.house.restore_server().await;
        // Who is out cannot tell again what the server has forgotten.
        self.is_gone_untold |= self.all.iter().any(|one| one.standing != Standing::In);
        self.all.iter_mut().for_each(|one| one.owes = 2);
    }

    pub(crate) fn save(&mut self, who: usize) {
        let one = &mut self.all[who];
        one.person.save();
        one.since_saved.clear();
        one.saved_keys = one.keys;
    }

    pub(crate) fn restore(&mut self, who: usize) {
        let one = &mut self.all[who];
        // Its own forgettings that nobody heard of are undone too.
        one.person.restore();
        self.lost.extend(one.unsent.intersection(&one.since_saved).cloned());
        one.unsent.clear();
        one.untold.clear();
        one.keys = one.saved_keys;
    }

    /// One request of the next exchange goes wrong.
    pub(crate) fn disturb(&mut self, may_die: bool) {
        let (at, kind) = (self.random.below(12), self.random.below(if may_die { 4 } else { 3 }));
        let mut count = 0;
        self.house.proxy.decide(move |_| {
            count += 1;
            match (count == at, kind) {
                (false, _) => Fate::Pass,
                (_, 0) => Fate::Lose,
                (_, 1) => Fate::LoseAnswer,
                (_, 2) => Fate::CutAnswer,
                _ => Fate::Die,
            }
        });
    }

    pub(crate) async fn syncs(&mut self, who: usize) {
        let report = self.all[who].person.sync_or_die().await;
        self.house.proxy.calm();
        if let Some(report) = report {
            self.synced(who, report).await;
        }
    }

    /// Two processes of one store, and of another one, at the same time.
    pub(crate) async fn all_sync_at_once(&mut self, who: usize) {
        let twin = self.house.person(&self.all[who].person.name);
        let syncing = self.all.iter().map(|one| one.person.teams.sync(|_| {}));
        let syncing = futures_util::future::join_all(syncing);
        let (reports, again) = tokio::join!(syncing, twin.teams.sync(|_| {}));
        for (n, report) in reports.into_iter().enumerate() {
            self.synced(n, report).await;
        }
        self.synced(who, again).await;
    }

    /// Checks what an exchange has found, and what the member reads now.
    pub(crate) async fn synced(&mut self, who: usize, report: Result<SyncReport, TeamError>) {
        let at = format!("{}, {}", self.at(), self.all[who].person.name);
        let words: BTreeSet<String> = self.all[who].person.words(PLANS).await.into_iter().collect();
        let read = words.intersection(&self.all[who].hidden).collect::<Vec<_>>();
        assert!(read.is_empty(), "{at} was shut out and reads {read:?}");
        let is_in = self.all[who].standing == Standing::In;
        let report = match report {
            Ok(report) => report,
            Err(TeamError::NotAMember { .. }) => {
                let is_due = self.is_server_restored || !is_in;
                return assert!(is_due, "{at} is no member");
            }
            // A request was lost too often.
            Err(error) => {
                return assert!(sottovoce_sync::Failure::is_transient(&error), "{at}: {error}");
            }
        };
        self.check_problems(&report.problems, &self.allowed(who), &at);
        if is_in && self.all[who].person.level().await >= Some(Level::Write) {
            let one = &mut self.all[who];
            self.told.append(&mut one.untold);
            one.unsent.clear();
            one.owes = one.owes.saturating_sub(1);
        } else {
            assert!(!is_in || self.is_server_restored, "{at} has no access");
        }
    }

    /// What may be reported in the end, and to somebody new.
    pub(crate) fn allowed_in_the_end(&self, is_new: bool) -> BTreeSet<&'static str> {
        // Everything is read again now and then, if something is missing.
        let mut allowed = match self.lasting.is_empty() && !is_new {
            true => BTreeSet::new(),
            false => self.lasting.union(&self.passing).copied().collect(),
        };
        if self.is_gone_untold {
            allowed.insert(HELD_BACK);
        }
        allowed
    }

    /// What may be reported to somebody now.
    fn allowed(&self, who: usize) -> BTreeSet<&'static str> {
        let one = &self.all[who];
        let mut allowed = self.lasting.clone();
        if one.keys < self.keys {
            allowed.insert(UNOPENED);
        }
        if one.standing != Standing::In {
            allowed.insert(NO_ACCESS);
        }
        allowed.extend(self.passing.iter());
        // Who publishes again tells a little later which numbers it has used in vain.
        allowed.insert(HELD_BACK);
        if self.is_server_restored {
            allowed.extend([OLDER, NO_ACCESS]);
        }
        allowed
    }

    pub(crate) fn check_problems(
        &self,
        problems: &[Problem],
        allowed: &BTreeSet<&'static str>,
        at: &str,
    ) {
        for problem in problems {
            let text = problem.to_string();
            assert!(allowed.iter().any(|part| text.contains(part)), "{at}: {text}");
        }
    }

    /// Anna shuts somebody out of the conversation, or of the team.
    pub(crate) async fn shuts_out(&mut self, who: usize) {
        let is_removed = self.random.below(2) == 0;
        // Who has published again, and is shut out before the next exchange, cannot tell any more which numbers it used in vain.
        self.is_gone_untold |= self.all[who].owes > 0;
        let Ok(id) = self.all[who].person.id().await else { return };
        let plans = scope(PLANS);
        let place = (!is_removed).then_some(&plans);
        self.disturb(false);
        let anna = &self.all[0].person.teams;
        let mut out = anna.revoke(None, &id, place).await;
        self.house.proxy.calm();
        if out.is_err() {
            out = anna.revoke(None, &id, place).await;
        }
        match out {
            Ok(_) | Err(TeamError::NoSuch { .. }) => {}
            Err(error) => panic!("{}: {error}", self.at()),
        }
        self.all[who].out_at = self.keys;
        self.all[who].standing =
            if is_removed { Standing::Removed } else { Standing::WithoutGrant };
        self.keys += 1;
        self.all[0].keys = self.keys;
        // An owner's copy without the newest key could not let anybody in.
        self.save(0);
    }

    /// Anna lets somebody in, or gives a member the newest key.
    pub(crate) async fn lets_in(&mut self, who: usize) {
        self.disturb(false);
        let mut let_in = self.gives_link(who).await;
        self.house.proxy.calm();
        if let_in.is_err() {
            let_in = self.gives_link(who).await;
        }
        let_in.unwrap_or_else(|error| panic!("{}: {error}", self.at()));
        let one = &mut self.all[who];
        (one.standing, one.keys) = (Standing::In, self.keys);
        one.hidden.clear();
        self.save(who);
    }

    async fn gives_link(&self, who: usize) -> Result<(), TeamError> {
        let (anna, person) = (&self.all[0].person.teams, &self.all[who].person);
        let link = match person.id().await {
            Ok(id) => anna.grant(&id, &scope(PLANS), Level::Write).await?,
            Err(TeamError::NotAMember { .. }) => {
                anna.invite(None, &[scope(PLANS)], (Role::Member, Level::Write), None).await?
            }
            Err(error) => return Err(error),
        };
        person.teams.join(&link.reveal().parse().unwrap(), &person.name).await.map(drop)
    }

    pub(crate) fn needs_link(&self, who: usize) -> bool {
        self.all[who].standing != Standing::In || self.all[who].keys < self.keys
    }

    /// Mallory, who is the last one, writes what the program never would.
    pub(crate) async fn attack(&mut self) {
        let who = self.all.len() - 1;
        let mallory = Mallory::of(&self.house, &self.all[who].person).await;
        let log = mallory.log().await;
        let readable: Vec<Seen> =
            log.iter().filter(|seen| seen.contents.is_some()).cloned().collect();
        let Some(seen) = self.random.one_of(&readable).cloned() else { return };
        let contents = seen.contents.clone().unwrap();
        let random_rid = || Rid::random().unwrap();
        // Under the number of another store, which is then far ahead.
        let mut ahead = json!({ "writer": seen.writer(), "n": 1_000_000, "by": "Anna" });
        let kinds = ["message", "setting", "forgetting"];
        // Most numbers of a store that are not its own are missing.
        let (mut lasting, mut words) = (vec![HELD_BACK], None);
        let mut spoils = None;
        let records = match self.random.below(9) {
            0 => {
                lasting.push(UNOPENED);
                let kind = kinds[self.random.below(2) as usize];
                vec![Mallory::garbage(kind)]
            }
            1 => {
                self.is_title_spoiled = true;
                ahead["set"] = json!({ "name": "title", "value": "Anna's", "edition": u64::MAX });
                vec![mallory.record("setting", None, &ahead)]
            }
            2 => {
                ahead["void"] = json!(u64::MAX);
                vec![mallory.record("setting", None, &ahead)]
            }
            // Under numbers of no store, of which most are missing.
            3 => {
                let far = |n: u64| json!({ "writer": Id::random().unwrap(), "n": n, "by": "", "void": 0 });
                [u64::MAX, u64::MAX, 7].map(|n| mallory.record("setting", None, &far(n))).to_vec()
            }
            4 if seen.words().is_some() => {
                let text = format!("as {} {}", seen.writer().unwrap_or_default(), self.step);
                words = Some(text.clone());
                vec![mallory.words_like(&contents, &text)]
            }
            // The same record, under its own name, under another one, and sealed anew.
            5 => {
                lasting.clear();
                let mut again = seen.record.clone();
                let record = again.as_object_mut().unwrap();
                record.retain(|name, _| ["rid", "kind", "sealed"].contains(&name.as_str()));
                if record["kind"] == "forgetting" {
                    record.insert("forgets".to_owned(), seen.record["forgets"].clone());
                }
                vec![again]
            }
            6 => {
                lasting.push(UNOPENED);
                let sealed = seen.record["sealed"].clone();
                vec![
                    json!({ "rid": random_rid(), "kind": "message", "sealed": sealed }),
                    mallory.record("message", None, &contents),
                ]
            }
            7 => {
                lasting.push(EMPTIED);
                spoils = Some(seen.clone());
                vec![
                    json!({ "rid": random_rid(), "kind": "forgetting", "forgets": [seen.record["rid"], random_rid()] }),
                ]
            }
            // It says what it forgets, and has the server empty something else.
            _ => {
                let said = readable.iter().filter(|seen| seen.words().is_some());
                let said: Vec<Seen> = said.cloned().collect();
                let Some(gone) = self.random.one_of(&said) else { return };
                lasting.push(EMPTIED);
                self.forgotten.insert(gone.words().unwrap().to_owned());
                let origin = &gone.contents.as_ref().unwrap()["said"]["origin"];
                let forgot = json!({
                    "writer": Id::random().unwrap(), "n": 1, "by": "", "forgot": { "messages": [origin] }
                });
                let mut record = mallory.record("forgetting", None, &forgot);
                record["forgets"] = json!([random_rid()]);
                vec![record]
            }
        };
        let status = mallory.appends(&records).await;
        if self.all[who].standing != Standing::In && !self.is_server_restored {
            let is_refused = [StatusCode::UNAUTHORIZED, StatusCode::NOT_FOUND].contains(&status);
            return assert!(is_refused, "{}: {status}", self.at());
        }
        // A member of a server that was put back may be none.
        let is_taken = status == StatusCode::OK || self.is_server_restored;
        assert!(is_taken, "{}: {status}", self.at());
        self.lasting.extend(lasting);
        self.passing.extend([REPEATED, OTHERS_NAME]);
        if let Some(words) = words {
            self.said.insert(words.clone());
            // Under a number of its own that it has used, whoever has read that one does not take them.
            self.spoiled.insert(words);
        }
        match spoils {
            Some(seen) if seen.words().is_some() => {
                self.spoiled.insert(seen.words().unwrap().to_owned());
            }
            Some(_) => self.is_title_spoiled = true,
            None => {}
        }
    }
}
