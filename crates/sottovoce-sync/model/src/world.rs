//! The devices and the remote, what can happen, and what must hold

use std::collections::{BTreeMap, BTreeSet};

use stateright::{Model, Property};

use crate::device::{Change, Device, Head, Message, Pending, Record, Stream};

/// How often each thing may happen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) says: u8,
    pub(crate) forgets: u8,
    pub(crate) crashes: u8,
    pub(crate) restores: u8,
    pub(crate) clones: u8,
    pub(crate) rollbacks: u8,
    pub(crate) wipes: u8,
    pub(crate) removals: u8,
    pub(crate) selections: u8,
}

impl From<[u8; 9]> for Limits {
    fn from(limits: [u8; 9]) -> Self {
        let [says, forgets, crashes, restores, clones, rollbacks, wipes, removals, selections] =
            limits;
        Self { says, forgets, crashes, restores, clones, rollbacks, wipes, removals, selections }
    }
}

/// The protocol, with all of its rules or without some.
#[derive(Clone, Debug)]
pub(crate) struct Protocol {
    /// A device whose stream is not as it left it begins a new one.
    pub(crate) renews: bool,
    /// A device whose stream another takes the place of begins a new one.
    pub(crate) moves_on: bool,
    /// A reader whose last publish is not in the stream's line reads it from the start.
    pub(crate) checks_line: bool,
    /// A new stream begins with what no other has.
    pub(crate) completes: bool,
    /// A device that sees another's stream go back begins a new one.
    pub(crate) follows: bool,
    /// A device that shares the conversation again looks at what nobody has.
    pub(crate) looks_again: bool,
    /// A stream stays that has a conversation which its device shares no more.
    pub(crate) keeps: bool,
    pub(crate) limits: Limits,
}

impl Default for Protocol {
    fn default() -> Self {
        let limits = Limits::default();
        let all = true;
        Self {
            renews: all,
            moves_on: all,
            checks_line: all,
            completes: all,
            follows: all,
            looks_again: all,
            keeps: all,
            limits,
        }
    }
}

/// How far a device is with publishing.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle,
    /// Its intent is noted.
    Noted,
    /// The head is written, and the device does not know it yet.
    Written,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(crate) struct World {
    devices: Vec<Device>,
    phases: Vec<Phase>,
    backup: Option<Device>,
    /// All heads of each stream; the last one is there now.
    heads: BTreeMap<Stream, Vec<Head>>,
    next_stream: Stream,
    next_token: u8,
    next_message: Message,
    space: u8,
    happened: [u8; 9],
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Say(usize),
    Forget(usize),
    /// Compares the stream with what was written last, and notes what is to be published.
    Note(usize),
    Write(usize),
    Adopt(usize),
    Crash(usize),
    Read(usize),
    /// Applies what is new, and dies before noting that.
    ReadAndCrash(usize),
    Backup,
    Restore,
    Clone,
    RollBack(Stream),
    Wipe(Stream),
    /// The first device shuts out a lost one: what is at the remote goes, and the others join again.
    Remove,
    /// A device shares the conversation no more, or again.
    Select(usize),
}

impl World {
    /// The streams that there are now and that no other takes the place of.
    fn live(&self) -> Vec<(Stream, Head)> {
        let now = self.heads.iter().filter_map(|(stream, heads)| Some((*stream, heads.last()?)));
        let live: Vec<_> = now.map(|(stream, head)| (stream, head.clone())).collect();
        let replaced: BTreeSet<Stream> =
            live.iter().flat_map(|(_, head)| head.replaces.iter().copied()).collect();
        live.into_iter().filter(|(stream, _)| !replaced.contains(stream)).collect()
    }

    fn head(&self, stream: Stream) -> Option<&Head> {
        self.heads.get(&stream)?.last()
    }

    /// Whether a stream that a device has read is gone, and none takes its place.
    fn misses(&self, number: usize) -> bool {
        let device = &self.devices[number];
        let replaced = |stream| self.heads.values().flatten().any(|h| h.replaces.contains(stream));
        device.read.iter().any(|(stream, at)| {
            at.0 > 0
                && *stream != device.stream
                && self.head(*stream).is_none()
                && !replaced(stream)
        })
    }

    fn forgotten(&self) -> BTreeSet<Message> {
        self.devices.iter().flat_map(|device| device.forgotten.iter().copied()).collect()
    }
}

impl Protocol {
    fn read(&self, world: &mut World, number: usize, notes: bool) {
        Self::follow(world, number);
        let live = world.live();
        let device = &mut world.devices[number];
        let mut went_back = false;
        for (stream, head) in live {
            if stream == device.stream {
                continue;
            }
            let at = device.read.get(&stream).copied().unwrap_or_default();
            let is_known = at.0 == 0 || !self.checks_line || head.line.contains(&at);
            went_back |= !is_known;
            let from = if is_known { usize::from(at.0).min(head.changes.len()) } else { 0 };
            for change in &head.changes[from..] {
                if !device.is_private {
                    device.apply(*change);
                }
            }
            if notes {
                device.read.insert(stream, (head.changes.len() as u8, head.token));
            }
        }
        if went_back && notes && self.follows && !device.is_beginning {
            self.begin(world, number);
        }
    }

    /// A device that finds its space closed joins the one that follows.
    fn follow(world: &mut World, number: usize) {
        if world.devices[number].space != world.space {
            world.devices[number].join(world.space, world.next_stream);
            world.next_stream += 1;
        }
    }

    fn select(&self, world: &mut World, number: usize) {
        let device = &mut world.devices[number];
        device.is_private = !device.is_private;
        if !device.kept.is_empty() {
            self.begin(world, number);
        } else if !device.is_private && self.looks_again {
            device.is_beginning = true;
            device.read.clear();
        }
    }

    fn begin(&self, world: &mut World, number: usize) {
        let device = &mut world.devices[number];
        device.begin_stream(world.next_stream);
        device.is_beginning = self.completes;
        world.next_stream += 1;
    }

    fn note(&self, world: &mut World, number: usize) {
        Self::follow(world, number);
        let there = world.head(world.devices[number].stream).map_or(0, |head| head.token);
        let device = &mut world.devices[number];
        if let Some(pending) = device.pending.take()
            && pending.head.token == there
        {
            device.adopt(pending);
        }
        let stream = device.stream;
        let mut others = world.heads.values().filter_map(|heads| heads.last());
        let is_replaced = self.moves_on && others.any(|head| head.replaces.contains(&stream));
        if is_replaced || (self.renews && there != world.devices[number].head.token) {
            self.begin(world, number);
        }
        if world.devices[number].is_beginning {
            self.read(world, number, true);
        }
        let heads = world.heads.clone();
        let live = world.live();
        let device = &mut world.devices[number];
        if device.is_private && self.keeps {
            let has_words = |stream: &Stream| {
                heads
                    .get(stream)
                    .and_then(|heads| heads.last())
                    .is_some_and(|head| !head.changes.is_empty())
            };
            let kept: BTreeSet<Stream> =
                device.replaces.iter().copied().filter(has_words).collect();
            device.replaces.retain(|stream| !kept.contains(stream));
            device.kept.extend(kept);
        }
        let others = live.iter().filter(|(stream, _)| !device.replaces.contains(stream));
        let heard: BTreeSet<Message> = others
            .flat_map(|(_, head)| &head.changes)
            .filter_map(|change| match change {
                Change::Said(message) => Some(*message),
                Change::Forgotten(_) | Change::TakenOut => None,
            })
            .collect();
        let changes = device.changes(&heard);
        if changes == device.head.changes && !device.is_beginning {
            return;
        }
        let token = world.next_token;
        world.next_token += 1;
        let mut line = device.head.line.clone();
        line.insert((changes.len() as u8, token));
        let head = Head { token, changes, line, replaces: device.replaces.clone() };
        // What it does not share is not looked at.
        let (records, forgotten) = match device.is_private {
            true => (device.published, device.published_forgotten.clone()),
            false => (device.records.len() as u8, device.forgotten.clone()),
        };
        device.pending = Some(Pending { head, records, forgotten });
        world.phases[number] = Phase::Noted;
    }

    fn write(world: &mut World, number: usize) {
        let device = &world.devices[number];
        let is_closed = device.space != world.space;
        if let Some(pending) = device.pending.as_ref().filter(|_| !is_closed) {
            world.heads.entry(device.stream).or_default().push(pending.head.clone());
            world.phases[number] = Phase::Written;
        } else {
            world.phases[number] = Phase::Idle;
        }
    }

    fn adopt(world: &mut World, number: usize) {
        let device = &mut world.devices[number];
        let was_beginning = std::mem::take(&mut device.is_beginning);
        if let Some(pending) = device.pending.take() {
            device.adopt(pending);
        }
        if was_beginning {
            // What the streams had that this one takes the place of is in it, or in others.
            for stream in &device.replaces {
                world.heads.remove(stream);
            }
        }
        world.phases[number] = Phase::Idle;
    }

    /// Everything that goes wrong has ended, and every device syncs.
    fn settled(&self, world: &World) -> World {
        let mut world = world.clone();
        world.phases.fill(Phase::Idle);
        for number in 0..world.devices.len() {
            if world.devices[number].is_private {
                self.select(&mut world, number);
            }
        }
        for round in 0..7 {
            for number in 0..world.devices.len() {
                // A warning told the person to mend.
                if round == 3 && world.misses(number) {
                    self.begin(&mut world, number);
                }
                self.note(&mut world, number);
                if world.phases[number] == Phase::Noted {
                    Self::write(&mut world, number);
                    Self::adopt(&mut world, number);
                }
                self.read(&mut world, number, true);
            }
        }
        world
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            devices: vec![Device::new(1), Device::new(2)],
            phases: vec![Phase::Idle; 2],
            backup: None,
            heads: BTreeMap::new(),
            next_stream: 3,
            next_token: 1,
            next_message: 1,
            space: 0,
            happened: [0; 9],
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        let Limits { says, forgets, crashes, restores, clones, rollbacks, wipes, .. } = self.limits;
        let [said, forgot, crashed, restored, cloned, rolled, wiped, removed, selected] =
            world.happened;
        if removed < self.limits.removals && world.phases[0] == Phase::Idle {
            actions.push(Action::Remove);
        }
        for number in 0..world.devices.len() {
            if said < says {
                actions.push(Action::Say(number));
            }
            if forgot < forgets && !world.devices[number].present().is_empty() {
                actions.push(Action::Forget(number));
            }
            match world.phases[number] {
                Phase::Idle => {
                    actions.extend([Action::Note(number), Action::Read(number)]);
                    if crashed < crashes {
                        actions.push(Action::ReadAndCrash(number));
                    }
                    if selected < self.limits.selections {
                        actions.push(Action::Select(number));
                    }
                }
                Phase::Noted => actions.push(Action::Write(number)),
                Phase::Written => actions.push(Action::Adopt(number)),
            }
            if crashed < crashes && world.phases[number] != Phase::Idle {
                actions.push(Action::Crash(number));
            }
        }
        if restores > 0 && world.backup.is_none() {
            actions.push(Action::Backup);
        }
        if restored < restores && world.backup.is_some() {
            actions.push(Action::Restore);
        }
        if cloned < clones {
            actions.push(Action::Clone);
        }
        for (stream, heads) in &world.heads {
            if rolled < rollbacks && heads.len() > 1 {
                actions.push(Action::RollBack(*stream));
            }
            if wiped < wipes && !heads.is_empty() {
                actions.push(Action::Wipe(*stream));
            }
        }
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Say(number) => {
                world.happened[0] += 1;
                let message = world.next_message;
                world.next_message += 1;
                let record = Record { message, is_own: true, is_forgotten: false };
                world.devices[number].records.push(record);
            }
            Action::Forget(number) => {
                world.happened[1] += 1;
                let message = *world.devices[number].present().first()?;
                world.devices[number].apply(Change::Forgotten(message));
            }
            Action::Note(number) => self.note(&mut world, number),
            Action::Write(number) => Self::write(&mut world, number),
            Action::Adopt(number) => Self::adopt(&mut world, number),
            Action::Crash(number) => {
                world.happened[2] += 1;
                world.phases[number] = Phase::Idle;
            }
            Action::Read(number) => self.read(&mut world, number, true),
            Action::ReadAndCrash(number) => {
                world.happened[2] += 1;
                self.read(&mut world, number, false);
            }
            Action::Backup => world.backup = Some(world.devices[0].clone()),
            Action::Restore => {
                world.happened[3] += 1;
                world.devices[0] = world.backup.clone()?;
                world.phases[0] = Phase::Idle;
            }
            Action::Clone => {
                world.happened[4] += 1;
                let clone = world.devices[0].clone();
                world.devices.push(clone);
                world.phases.push(Phase::Idle);
            }
            Action::RollBack(stream) => {
                world.happened[5] += 1;
                world.heads.get_mut(&stream)?.pop();
            }
            Action::Wipe(stream) => {
                world.happened[6] += 1;
                world.heads.get_mut(&stream)?.clear();
            }
            Action::Remove => {
                world.happened[7] += 1;
                self.note(&mut world, 0);
                if world.phases[0] == Phase::Noted {
                    Self::write(&mut world, 0);
                    Self::adopt(&mut world, 0);
                }
                self.read(&mut world, 0, true);
                world.heads.clear();
                world.space += 1;
                self.note(&mut world, 0);
                Self::write(&mut world, 0);
                Self::adopt(&mut world, 0);
            }
            Action::Select(number) => {
                world.happened[8] += 1;
                self.select(&mut world, number);
            }
        }
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("nothing is there twice", |protocol: &Self, world: &World| {
                let settled = protocol.settled(world);
                let twice =
                    |device: &Device| device.present().windows(2).any(|two| two[0] == two[1]);
                !settled.devices.iter().any(twice)
            }),
            Property::always("all end with the same", |protocol: &Self, world: &World| {
                let settled = protocol.settled(world);
                settled.devices.windows(2).all(|two| two[0].present() == two[1].present())
            }),
            Property::always(
                "nothing that a device has is lost",
                |protocol: &Self, world: &World| {
                    let held: BTreeSet<Message> =
                        world.devices.iter().flat_map(Device::present).collect();
                    let settled = protocol.settled(world);
                    let forgotten = settled.forgotten();
                    settled.devices.iter().all(|device| {
                        let present = device.present();
                        held.iter()
                            .all(|message| forgotten.contains(message) || present.contains(message))
                    })
                },
            ),
            Property::always("what was forgotten stays so", |protocol: &Self, world: &World| {
                let forgotten = world.forgotten();
                let settled = protocol.settled(world);
                let comes_back =
                    |device: &Device| device.present().iter().any(|m| forgotten.contains(m));
                !settled.devices.iter().any(comes_back)
            }),
            Property::always(
                "and is in no stream of a device",
                |protocol: &Self, world: &World| {
                    let forgotten = world.forgotten();
                    let settled = protocol.settled(world);
                    // A stream that a restored store no longer knows stays until its device is removed.
                    let mut live = settled.live();
                    live.retain(|(stream, _)| settled.devices.iter().any(|d| d.stream == *stream));
                    let said = live.into_iter().flat_map(|(_, head)| head.changes);
                    let mut said = said.filter_map(|change| match change {
                        Change::Said(message) => Some(message),
                        Change::Forgotten(_) | Change::TakenOut => None,
                    });
                    !said.any(|message| forgotten.contains(&message))
                },
            ),
        ]
    }
}
