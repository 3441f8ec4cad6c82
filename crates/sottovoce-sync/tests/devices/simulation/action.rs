//! What can happen

/// The generator SplitMix64: small, and the same everywhere.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x5175_1a1d)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.next() % count.max(1)
    }
}

/// A device is a number; of those that there are, it means the one at the remainder.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// A person says something in one of three conversations.
    Say {
        device: u64,
        scope: u64,
    },
    /// Somebody forgets one of the messages that the device has.
    Forget {
        device: u64,
        scope: u64,
        which: u64,
    },
    ForgetAll {
        device: u64,
        scope: u64,
    },
    Title {
        device: u64,
        scope: u64,
        title: Option<u64>,
    },
    Clear {
        device: u64,
        scope: u64,
    },
    AddArtifact {
        device: u64,
        scope: u64,
    },
    DeleteArtifact {
        device: u64,
        scope: u64,
    },
    /// A conversation is forgotten on another device, to which the contents of an artifact have hardly arrived.
    ForgetArriving {
        device: u64,
        other: u64,
        scope: u64,
    },
    /// Somebody searches, and the index is saved.
    Search {
        device: u64,
        scope: u64,
    },
    Snapshot {
        device: u64,
        scope: u64,
    },
    Sync {
        device: u64,
    },
    Poll {
        device: u64,
    },
    /// The process dies after so many operations at the remote.
    Die {
        device: u64,
        after: u64,
    },
    /// The process dies after so many steps of its work, most of which are operations of its store.
    DieBetween {
        device: u64,
        after: u64,
    },
    /// The same while a conversation is forgotten.
    DieForgetting {
        device: u64,
        scope: u64,
        after: u64,
    },
    Backup {
        device: u64,
    },
    Restore {
        device: u64,
    },
    RestoreScope {
        device: u64,
        scope: u64,
    },
    Clone {
        device: u64,
    },
    Join,
    CopyRemote,
    RollBackRemote,
    WipeRemote,
    Faults {
        thousandths: u64,
    },
    Clock {
        device: u64,
        hours: i64,
    },
    Mend {
        device: u64,
    },
    /// The store gets the other of two keys.
    Rekey {
        device: u64,
    },
    Pack {
        device: u64,
        scope: u64,
    },
    /// The person chooses other conversations.
    Select {
        device: u64,
        which: u64,
    },
    /// The store stops syncing and joins the space again.
    JoinAgain {
        device: u64,
    },
    /// The first device shuts another one out.
    Remove {
        device: u64,
    },
    /// Two devices sync at once, request by request, while one of them hears something.
    Together {
        device: u64,
        other: u64,
        scope: u64,
    },
}

pub(crate) fn choose(random: &mut Random) -> Vec<Action> {
    let count = 8 + random.below(40);
    // Some things happen seldom, and in some lives never.
    let is_wild = random.below(3) == 0;
    let mut actions = vec![Action::Faults { thousandths: random.below(3) * 20 }];
    actions.extend((0..count).map(|_| one(random, is_wild)));
    actions
}

fn one(random: &mut Random, is_wild: bool) -> Action {
    let device = random.below(8);
    let scope = random.below(4);
    if random.below(5) == 0 {
        // A rollback of the remote would bring back a space that was left.
        return match random.below(if is_wild { 8 } else { 10 }) {
            0 | 1 => Action::Select { device, which: random.below(4) },
            2 => Action::JoinAgain { device },
            3..=7 => Action::Together { device, other: random.below(8), scope },
            _ => Action::Remove { device },
        };
    }
    if random.below(8) == 0 {
        return match random.below(8) {
            0 => Action::ForgetArriving { device, other: random.below(8), scope },
            1 | 2 => Action::Search { device, scope },
            3 => Action::DieForgetting { device, scope, after: random.below(12) },
            _ => Action::DieBetween { device, after: random.below(150) },
        };
    }
    match random.below(if is_wild { 46 } else { 36 }) {
        0..=9 => Action::Say { device, scope },
        10..=12 => Action::Forget { device, scope, which: random.next() },
        13 => Action::ForgetAll { device, scope },
        14 | 15 => Action::Title {
            device,
            scope,
            title: (random.below(4) > 0).then(|| random.below(1000)),
        },
        16 => Action::AddArtifact { device, scope },
        17 => Action::DeleteArtifact { device, scope },
        18 => Action::Snapshot { device, scope },
        19..=25 => Action::Sync { device },
        26..=29 => Action::Poll { device },
        30 | 31 => Action::Die { device, after: random.below(12) },
        32 => Action::Clear { device, scope },
        33 => Action::Join,
        34 => match random.below(3) {
            0 => Action::Rekey { device },
            _ => Action::Pack { device, scope },
        },
        35 => Action::Clock { device, hours: [-72, 72, 30, 0][random.below(4) as usize] },
        36 | 37 => Action::Backup { device },
        38 => Action::Restore { device },
        39 => Action::RestoreScope { device, scope },
        40 => Action::Clone { device },
        41 => Action::CopyRemote,
        42 => Action::RollBackRemote,
        43 => Action::WipeRemote,
        44 => Action::Clock { device, hours: [-480_000, 96_000][random.below(2) as usize] },
        _ => Action::Mend { device },
    }
}
