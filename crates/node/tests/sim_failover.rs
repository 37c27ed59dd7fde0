//! Clusters of the shipped [`Decision`] in simulated time: clocks with other rates and origins, nodes that stop and go on
//! (SIGSTOP), crash, end in order and start again, requests to etcd that are lost, before or after they were made, or are made
//! after their node has given them up or begun anew, links between nodes that fail, and pauses. Each run is made from its
//! seed: `SEED=7 cargo test -p clearway-node --test sim_failover`; `RUNS=20000` for a long campaign.
//!
//! | checked | rule |
//! | --- | --- |
//! | acknowledgements of a term never come after one of a later term | F1 to F3, F6, F7 |
//! | a node that begins a term has each acknowledged write, where commits wait for standbys | F4, F5 |
//! | when the network heals there is a primary again, and it acknowledges | liveness |
//!
//! A node's log is a list of writes; a standby copies from the node that it follows, if its own log is a beginning of that one's,
//! and is copied anew otherwise. Caught mutations: `mutations/failover.toml`.

use std::collections::BTreeMap;

use clearway_node::cluster_state::{Change, Condition, Outcome, Role, Transaction, View};
use clearway_node::decision::{Action, Decision, Ns, Options, Own};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

const MS: Ns = 1_000_000;
const TTL: Ns = 5_000 * MS;
const INTERVAL: Ns = 500 * MS;
const DATABASE: u64 = 4711;

/// etcd: transactions one after the other.
#[derive(Default)]
struct Store {
    revision: i64,
    keys: BTreeMap<String, (String, i64)>,
}

impl Store {
    fn apply(&mut self, transaction: &Transaction) -> Outcome {
        let holds = |condition: &Condition| {
            let revision = self.keys.get(condition.key).map_or(0, |(_, revision)| *revision);
            revision == condition.revision
        };
        let succeeded = transaction.conditions.iter().all(holds);
        self.revision += 1;
        if succeeded {
            for change in &transaction.changes {
                match change {
                    Change::Put(key, value) => {
                        self.keys.insert(key.clone(), (value.clone(), self.revision));
                    }
                    Change::Delete(key) => {
                        self.keys.remove(key);
                    }
                }
            }
        }
        if let Some((name, member)) = &transaction.member {
            let text = serde_json::to_string(member).unwrap();
            self.keys.insert(format!("members/{name}"), (text, self.revision));
        }
        let keys = self.keys.iter();
        let view = View::parse(keys.map(|(key, (value, at))| (key.as_str(), value.as_bytes(), *at)));
        Outcome {
            succeeded,
            view: view.unwrap(),
        }
    }
}

/// A write: the timeline of the primary that made it, and its number.
type Write = (u32, u64);

/// A request on its way to etcd, whatever its node does meanwhile.
struct Flight {
    number: u64,
    transaction: Transaction,
    /// The true time at which etcd makes it.
    made_at: Ns,
    outcome: Option<Outcome>,
}

/// The request that a node waits for.
struct Awaited {
    number: u64,
    sent_at: Ns,
    /// The true time at which the node learns of the outcome, if it does.
    known_at: Option<Ns>,
    /// The true time at which the node gives it up.
    given_up_at: Ns,
}

struct Node {
    name: String,
    decision: Decision,
    /// Its clock: origin, and parts in 10,000 by which it is fast.
    origin: Ns,
    rate: i64,
    role: Role,
    log: Vec<Write>,
    timeline: u32,
    /// Of its office.
    term: u64,
    follows: Option<usize>,
    waits_for: Vec<String>,
    answers_until: Ns,
    opens_at: Option<Ns>,
    stops_at: Option<Ns>,
    stopped: bool,
    awaited: Option<Awaited>,
    asks_at: Ns,
    /// Stopped by SIGSTOP until then.
    asleep_until: Ns,
    /// Receives nothing until then, though it is connected.
    slow_until: Ns,
    /// Crashed until then.
    down_until: Option<Ns>,
    /// The part of its log that each node has reported to it.
    reported: BTreeMap<String, u64>,
}

struct World {
    random: SmallRng,
    now: Ns,
    store: Store,
    nodes: Vec<Node>,
    flights: Vec<Flight>,
    /// Requests that were made by etcd after their node had given them up.
    late: u64,
    next_flight: u64,
    synchronous: usize,
    calm: bool,
    /// Cut links: between nodes, and between a node and etcd.
    cut: Vec<(usize, usize)>,
    cut_from_etcd: Vec<usize>,
    acknowledged: Vec<Write>,
    newest_term: u64,
    next_write: u64,
    story: Vec<String>,
}

fn decision(name: &str, synchronous: usize, instance: u64) -> Decision {
    Decision::new(Options {
        name: name.to_owned(),
        instance,
        conninfo: format!("host={name}"),
        checks: None,
        ttl_ns: TTL,
        interval_ns: INTERVAL,
        synchronous,
    })
}

impl Node {
    fn clock(&self, now: Ns) -> Ns {
        let fast = now.cast_signed() / 10_000 * self.rate;
        (self.origin + now).saturating_add_signed(fast)
    }
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = SmallRng::seed_from_u64(seed);
        let synchronous = random.random_range(0..3);
        let nodes = ["alice", "berlin", "cairo"].map(|name| Node {
            name: name.to_owned(),
            decision: decision(name, synchronous, random.random()),
            origin: random.random_range(1_000_000 * MS..2_000_000 * MS),
            rate: random.random_range(-100..=100),
            role: Role::Absent,
            log: Vec::new(),
            timeline: 0,
            term: 0,
            follows: None,
            waits_for: Vec::new(),
            answers_until: Ns::MAX,
            opens_at: None,
            stops_at: None,
            stopped: false,
            awaited: None,
            asks_at: random.random_range(0..INTERVAL),
            asleep_until: 0,
            slow_until: 0,
            down_until: None,
            reported: BTreeMap::new(),
        });
        World {
            random,
            now: 0,
            store: Store::default(),
            nodes: nodes.into(),
            flights: Vec::new(),
            late: 0,
            next_flight: 0,
            synchronous,
            calm: true,
            cut: Vec::new(),
            cut_from_etcd: Vec::new(),
            acknowledged: Vec::new(),
            newest_term: 0,
            next_write: 0,
            story: Vec::new(),
        }
    }

    fn tell(&mut self, what: String) {
        self.story.push(format!("{:9.3} {what}", self.now as f64 / 1e9));
    }

    fn own(&self, number: usize) -> Own {
        let node = &self.nodes[number];
        let streams = |from: usize, to: usize| {
            let (upstream, standby) = (&self.nodes[from], &self.nodes[to]);
            standby.role == Role::Standby
                && standby.follows == Some(from)
                && standby.timeline == upstream.timeline
                && self.is_linked(from, to)
        };
        Own {
            role: node.role,
            database: (node.role != Role::Absent).then_some(DATABASE),
            waits_for: node.waits_for.clone(),
            timeline: node.timeline,
            position: node.log.len() as u64,
            follows: node.follows.map(|other| self.nodes[other].name.clone()),
            streams: node.follows.is_some_and(|upstream| streams(upstream, number)),
            followers: (0..self.nodes.len())
                .filter(|other| *other != number && streams(number, *other))
                .map(|other| self.nodes[other].name.clone())
                .collect(),
            stopped: node.stopped,
        }
    }

    fn is_up(&self, number: usize) -> bool {
        let node = &self.nodes[number];
        node.down_until.is_none() && node.asleep_until <= self.now
    }

    fn is_linked(&self, a: usize, b: usize) -> bool {
        let pair = (a.min(b), a.max(b));
        self.is_up(a) && self.is_up(b) && !self.cut.contains(&pair)
    }

    fn start_again(&mut self, number: usize) {
        let instance = self.random.random();
        let synchronous = self.synchronous;
        let node = &mut self.nodes[number];
        node.decision = decision(&node.name, synchronous, instance);
        node.role = match node.role {
            Role::Absent => Role::Absent,
            Role::Standby => Role::Standby,
            // A copy that was not finished is made again.
            Role::Starting if node.log.is_empty() => Role::Absent,
            _ => Role::Former,
        };
        node.answers_until = Ns::MAX;
        (node.opens_at, node.stops_at, node.stopped) = (None, None, false);
        (node.awaited, node.follows) = (None, None);
        node.waits_for.clear();
        node.reported.clear();
        node.down_until = None;
        node.asks_at = self.now + 100 * MS;
    }

    fn act(&mut self, number: usize, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::AnswerUntil(until) => self.nodes[number].answers_until = until,
                Action::Lead { term } => {
                    self.nodes[number].term = term;
                    let delay = self.random.random_range(10 * MS..400 * MS);
                    self.nodes[number].opens_at = Some(self.now + delay);
                    if self.nodes[number].role == Role::Absent {
                        // The directory is there from the first moment on.
                        self.nodes[number].log.push((0, 0));
                    }
                    self.nodes[number].role = Role::Starting;
                    self.nodes[number].follows = None;
                }
                Action::Follow { name, .. } => {
                    let upstream = self.nodes.iter().position(|node| node.name == name);
                    let node = &mut self.nodes[number];
                    node.follows = upstream;
                    if node.role != Role::Standby {
                        node.role = Role::Starting;
                    }
                }
                Action::WaitFor(names) => self.nodes[number].waits_for = names,
                Action::HandOver => {
                    let delay = self.random.random_range(10 * MS..2_000 * MS);
                    self.nodes[number].stops_at = Some(self.now + delay);
                }
                Action::Fence(_) | Action::End => {
                    self.tell(format!("{} ends: {action:?}", self.nodes[number].name));
                    self.start_again(number);
                }
                Action::Refuse(problem) => panic!("{problem}"),
            }
        }
    }

    /// The primary of `number` takes the log of its standbys' upstream, acknowledges a write, and so on.
    fn work(&mut self, number: usize) {
        let now = self.now;
        let node = &mut self.nodes[number];
        if node.opens_at.is_some_and(|at| at <= now) {
            node.opens_at = None;
            node.role = Role::Primary;
            node.timeline = node.log.iter().map(|write| write.0).max().unwrap_or(0) + 1;
            let (timeline, term, name) = (node.timeline, node.term, node.name.clone());
            // Of what the log of a primary begins with.
            node.log.push((timeline, 0));
            self.tell(format!("{name} begins term {term}"));
            if self.synchronous > 0 {
                for write in &self.acknowledged {
                    assert!(
                        self.nodes[number].log.contains(write),
                        "F4, F5: {name} begins term {term} without the acknowledged {write:?}"
                    );
                }
            }
        }
        let node = &mut self.nodes[number];
        if node.stops_at.is_some_and(|at| at <= now) {
            node.stops_at = None;
            node.stopped = true;
            node.role = Role::Starting;
        }
        if self.nodes[number].role == Role::Primary {
            self.write(number);
        } else if let Some(upstream) = self.nodes[number].follows {
            self.copy(number, upstream);
        }
    }

    fn write(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        self.next_write += 1;
        node.log.push((node.timeline, self.next_write));
        // The newest write that each of those that it waits for has reported.
        let reported = |name: &String| node.reported.get(name).copied().unwrap_or(0);
        let safe = node.waits_for.iter().map(reported).min();
        let end = safe.unwrap_or(node.log.len() as u64).min(node.log.len() as u64);
        let Some(write) = end.checked_sub(1).map(|last| node.log[last as usize]) else {
            return;
        };
        let may_answer = node.clock(self.now) < node.answers_until;
        if may_answer && write.0 == node.timeline && write.1 > 0 {
            let (term, name) = (node.term, node.name.clone());
            assert!(
                term >= self.newest_term,
                "F1 to F3: {name} acknowledges in term {term}, and term {} has acknowledged",
                self.newest_term
            );
            self.newest_term = term;
            if self.acknowledged.last() != Some(&write) {
                self.acknowledged.push(write);
            }
        }
    }

    fn copy(&mut self, number: usize, upstream: usize) {
        let is_source = matches!(self.nodes[upstream].role, Role::Primary | Role::Standby);
        let is_slow = self.nodes[number].slow_until > self.now && self.nodes[number].role == Role::Standby;
        if !is_source || is_slow || !self.is_linked(number, upstream) {
            return;
        }
        let (theirs, timeline) = (self.nodes[upstream].log.clone(), self.nodes[upstream].timeline);
        let node = &mut self.nodes[number];
        let is_beginning = theirs.starts_with(&node.log);
        let upto = match is_beginning {
            true => self.random.random_range(node.log.len()..=theirs.len()),
            false => theirs.len(),
        };
        node.log = theirs[..upto].to_vec();
        node.role = Role::Standby;
        node.timeline = timeline;
        let (name, has) = (node.name.clone(), node.log.len() as u64);
        self.nodes[upstream].reported.insert(name, has);
    }

    /// The node's side of its conversation with etcd.
    fn talk(&mut self, number: usize) {
        let now = self.now;
        let own = self.own(number);
        let clock = self.nodes[number].clock(now);
        let actions = self.nodes[number].decision.tick(clock);
        if !actions.is_empty() {
            return self.act(number, actions);
        }
        if let Some(awaited) = &self.nodes[number].awaited {
            let (sent, given_up) = (awaited.sent_at, awaited.given_up_at <= now);
            let outcome = awaited.known_at.filter(|at| *at <= now).and_then(|_| {
                let flight = self
                    .flights
                    .iter()
                    .find(|flight| flight.number == awaited.number)?;
                flight.outcome.clone()
            });
            if let Some(outcome) = outcome {
                self.nodes[number].awaited = None;
                let actions = self.nodes[number].decision.answered(sent, clock, outcome, &own);
                self.act(number, actions);
            } else if given_up {
                self.nodes[number].decision.unanswered();
                self.nodes[number].awaited = None;
            }
            return;
        }
        if self.nodes[number].asks_at > now {
            return;
        }
        let transaction = self.nodes[number].decision.request(clock, &own, 0);
        let is_cut = self.cut_from_etcd.contains(&number);
        let late = match self.calm {
            true => 20 * MS,
            false if self.random.random_range(0..8) == 0 => 3_000 * MS,
            false => 900 * MS,
        };
        let made = self.random.random_range(MS..late);
        let known = made + self.random.random_range(MS..late);
        let lost = |random: &mut SmallRng| is_cut || (!self.calm && random.random_range(0..20) == 0);
        let (lost_there, lost_back) = (lost(&mut self.random), lost(&mut self.random));
        self.next_flight += 1;
        self.nodes[number].awaited = Some(Awaited {
            number: self.next_flight,
            sent_at: clock,
            known_at: (!lost_there && !lost_back).then_some(now + known),
            given_up_at: now + 1_000 * MS,
        });
        if !lost_there {
            self.flights.push(Flight {
                number: self.next_flight,
                transaction,
                made_at: now + made,
                outcome: None,
            });
        }
        self.nodes[number].asks_at = now + INTERVAL;
    }

    /// etcd makes the transactions that have arrived: those of nodes that are stopped, have crashed or wait no more, too.
    fn store_works(&mut self) {
        let nodes = &self.nodes;
        let is_awaited = |number| {
            let mut awaited = nodes.iter().filter_map(|node| node.awaited.as_ref());
            awaited.any(|awaited| awaited.number == number)
        };
        self.flights
            .retain(|flight| flight.outcome.is_none() || is_awaited(flight.number));
        for flight in &mut self.flights {
            if flight.made_at <= self.now && flight.outcome.is_none() {
                flight.outcome = Some(self.store.apply(&flight.transaction));
                let changes = !flight.transaction.changes.is_empty();
                self.late += u64::from(changes && !is_awaited(flight.number));
            }
        }
    }

    fn disturb(&mut self) {
        let number = self.random.random_range(0..self.nodes.len());
        let other = (number + 1 + self.random.random_range(0..2)) % 3;
        let name = self.nodes[number].name.clone();
        match self.random.random_range(0..11) {
            0 => {
                let span = self.random.random_range(100 * MS..4 * TTL);
                self.nodes[number].asleep_until = self.now + span;
                self.tell(format!("{name} is stopped for {} ms", span / MS));
            }
            1 => {
                let span = self.random.random_range(100 * MS..2 * TTL);
                self.nodes[number].down_until = Some(self.now + span);
                self.tell(format!("{name} crashes for {} ms", span / MS));
            }
            2 => self.cut.push((number.min(other), number.max(other))),
            3 => self.cut_from_etcd.push(number),
            4 => self.cut.clear(),
            5 => self.cut_from_etcd.clear(),
            6 => self.nodes[number].slow_until = self.now + self.random.random_range(100 * MS..2 * TTL),
            7 => {
                let wish = format!("{{\"to\":\"{name}\"}}");
                self.store.revision += 1;
                self.store
                    .keys
                    .insert("switchover".to_owned(), (wish, self.store.revision));
                self.tell(format!("an operator wants {name}"));
            }
            8 => {
                self.store.revision += 1;
                let pause = ("true".to_owned(), self.store.revision);
                if self.store.keys.remove("pause").is_none() {
                    self.store.keys.insert("pause".to_owned(), pause);
                }
                self.tell("a pause begins or ends".to_owned());
            }
            9 if self.is_up(number) => {
                self.tell(format!("{name} is asked to end"));
                let actions = self.nodes[number].decision.leave();
                self.act(number, actions);
            }
            _ => self.calm = !self.calm,
        }
    }

    fn step(&mut self) {
        self.now += 20 * MS;
        self.store_works();
        for number in 0..self.nodes.len() {
            if self.nodes[number].down_until.is_some_and(|at| at <= self.now) {
                self.start_again(number);
            }
            if !self.is_up(number) {
                continue;
            }
            // A session may be the first to run after a stop, or the node's own thread.
            match self.random.random() {
                true => {
                    self.work(number);
                    self.talk(number);
                }
                false => {
                    self.talk(number);
                    if self.is_up(number) {
                        self.work(number);
                    }
                }
            }
        }
    }

    /// Calm time until a write of this time is acknowledged; what it took.
    fn heal(&mut self) -> Option<Ns> {
        (self.cut, self.cut_from_etcd, self.calm) = (Vec::new(), Vec::new(), true);
        self.store.keys.remove("pause");
        for number in 0..self.nodes.len() {
            (self.nodes[number].asleep_until, self.nodes[number].slow_until) = (0, 0);
            if self.nodes[number].down_until.is_some() {
                self.start_again(number);
            }
        }
        let (began, known) = (self.now, self.next_write);
        while self.now < began + 8 * TTL {
            self.step();
            if self.acknowledged.last().is_some_and(|write| write.1 > known) {
                return Some(self.now - began);
            }
        }
        None
    }
}

/// The terms of a cluster, and its late requests.
fn run(seed: u64) -> (u64, u64) {
    let mut world = World::new(seed);
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        assert!(world.heal().is_some(), "a new cluster has no primary");
        for _ in 0..6 {
            for _ in 0..world.random.random_range(50..500) {
                if world.random.random_range(0..40) == 0 {
                    world.disturb();
                }
                world.step();
            }
            assert!(world.heal().is_some(), "no primary after the network has healed");
        }
    }));
    if let Err(panic) = ran {
        eprintln!(
            "SEED={seed}, synchronous={}:\n{}",
            world.synchronous,
            world.story.join("\n")
        );
        std::panic::resume_unwind(panic);
    }
    (world.newest_term, world.late)
}

/// A number from the environment.
fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn at_most_one_primary_acknowledges_and_nothing_acknowledged_is_lost() {
    let seeds = match given("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..given("RUNS").unwrap_or(300),
    };
    let runs = seeds.end - seeds.start;
    let (terms, late) = seeds
        .map(run)
        .fold((0, 0), |(terms, late), run| (terms + run.0, late + run.1));
    // Failovers happen, and requests come late, or nothing was tested.
    assert!(terms > 2 * runs, "{terms} terms in {runs} runs");
    assert!(late >= runs / 4, "{late} late requests in {runs} runs");
    println!("{runs} clusters, {terms} terms, {late} late requests");
}
