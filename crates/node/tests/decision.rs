//! Single decisions of a node, told as stories: `sim_failover` has the many. Caught mutations: `mutations/failover.toml`.

use clearway_node::cluster_state::{
    Change, Entry, LEADER, Leader, Member, Outcome, Role, SYNCHRONOUS, Switchover, Synchronous, Transaction,
    View,
};
use clearway_node::decision::{Action, Decision, Ns, Options, Own};

const S: Ns = 1_000_000_000;

fn node(name: &str, synchronous: usize) -> Decision {
    Decision::new(Options {
        name: name.to_owned(),
        instance: 11,
        conninfo: format!("host={name}"),
        checks: None,
        ttl_ns: 10 * S,
        interval_ns: S,
        synchronous,
    })
}

fn own(role: Role, position: u64) -> Own {
    Own {
        role,
        database: Some(7),
        waits_for: Vec::new(),
        timeline: 1,
        position,
        follows: None,
        streams: false,
        followers: Vec::new(),
        stopped: false,
    }
}

fn member(name: &str, role: Role, position: u64) -> (String, Entry<Member>) {
    let value = Member {
        conninfo: format!("host={name}"),
        checks: None,
        role,
        timeline: 1,
        position,
        follows: Some("alice".to_owned()),
        streams: true,
        beats: 1,
        written_at: 0,
    };
    (name.to_owned(), Entry { value, revision: 1 })
}

fn leader(name: &str, instance: u64, revision: i64) -> Option<Entry<Leader>> {
    let value = Leader {
        name: name.to_owned(),
        instance,
        term: 3,
        renewals: 0,
        ttl_ms: 10_000,
        released: false,
        successor: None,
    };
    Some(Entry { value, revision })
}

/// An office that its holder has given up.
fn released(name: &str, instance: u64, revision: i64) -> Option<Entry<Leader>> {
    let mut entry = leader(name, instance, revision)?;
    entry.value.released = true;
    Some(entry)
}

/// A cluster that alice leads, with the standbys that commits wait for.
fn view(revision: i64, standbys: &[&str]) -> View {
    let synchronous = Synchronous {
        leader: "alice".to_owned(),
        required: true,
        standbys: standbys.iter().map(|name| (*name).to_owned()).collect(),
    };
    View {
        leader: leader("alice", 10, revision),
        synchronous: Some(Entry {
            value: synchronous,
            revision: 5,
        }),
        database: Some(7),
        members: [
            member("alice", Role::Primary, 500),
            member("berlin", Role::Standby, 500),
        ]
        .into(),
        ..View::default()
    }
}

fn failed(view: View) -> Outcome {
    Outcome {
        succeeded: false,
        view,
    }
}

fn made(view: View) -> Outcome {
    Outcome {
        succeeded: true,
        view,
    }
}

/// The revision that a transaction asks for.
fn asks_for(transaction: &Transaction, key: &str) -> Option<i64> {
    let found = transaction
        .conditions
        .iter()
        .find(|condition| condition.key == key);
    found.map(|condition| condition.revision)
}

fn puts(transaction: &Transaction, key: &str) -> Option<String> {
    transaction.changes.iter().find_map(|change| match change {
        Change::Put(name, value) if name == key => Some(value.clone()),
        _ => None,
    })
}

/// Alice, who has taken the office at second 0, with revision 20.
fn alice_leads(synchronous: usize) -> Decision {
    let mut alice = node("alice", synchronous);
    let former = own(Role::Former, 500);
    alice.request(0, &former, 0);
    let mut free = view(19, &[]);
    free.leader = released("cairo", 13, 19);
    alice.answered(0, 0, made(free), &former);
    let takeover = alice.request(0, &former, 0);
    assert!(puts(&takeover, LEADER).is_some());
    let mut taken = view(20, &[]);
    taken.leader = leader("alice", 11, 20);
    let actions = alice.answered(0, 0, made(taken), &former);
    assert_eq!(actions[0], Action::AnswerUntil(98 * S / 10));
    assert_eq!(actions[1], Action::Lead { term: 4 });
    alice
}

/// Alice's view while she leads.
fn alices(revision: i64, standbys: &[&str]) -> View {
    View {
        leader: leader("alice", 11, revision),
        ..view(revision, standbys)
    }
}

#[test]
fn a_takeover_asks_for_both_revisions() {
    let mut berlin = node("berlin", 1);
    let standby = own(Role::Standby, 500);
    berlin.request(0, &standby, 0);
    berlin.answered(0, S, failed(view(20, &["berlin"])), &standby);
    // F3: 10.2 s from second 1 on.
    let early = berlin.request(11 * S, &standby, 0);
    assert_eq!(early.changes, Vec::new());
    berlin.answered(11 * S, 11 * S, failed(view(20, &["berlin"])), &standby);
    let takeover = berlin.request(S + 102 * S / 10, &standby, 0);
    assert_eq!(asks_for(&takeover, LEADER), Some(20));
    assert_eq!(asks_for(&takeover, SYNCHRONOUS), Some(5));
    let named = puts(&takeover, SYNCHRONOUS).unwrap();
    assert!(
        named.contains(r#""leader":"berlin","required":true,"standbys":[]"#),
        "{named}"
    );
}

#[test]
fn a_node_that_may_lack_commits_waits_for_ever() {
    let mut berlin = node("berlin", 1);
    let standby = own(Role::Standby, 500);
    for second in 0..100 {
        let request = berlin.request(second * S, &standby, 0);
        assert_eq!(request.changes, Vec::new());
        berlin.answered(second * S, second * S, failed(view(20, &["cairo"])), &standby);
    }
}

#[test]
fn a_primary_that_etcd_does_not_renew_is_fenced_for_good() {
    let mut alice = alice_leads(0);
    let primary = own(Role::Primary, 500);
    alice.request(5 * S, &primary, 0);
    alice.unanswered();
    assert_eq!(alice.tick(97 * S / 10), Vec::new());
    let ended = alice.tick(98 * S / 10);
    assert_eq!(ended[0], Action::AnswerUntil(0));
    assert!(matches!(ended[1], Action::Fence(_)));
    // The renewal has arrived after all.
    let later = alice.answered(5 * S, 99 * S / 10, made(alices(21, &[])), &primary);
    assert_eq!(later, Vec::new());
    assert!(!alice.leads());
    assert_eq!(alice.request(12 * S, &primary, 0).changes, Vec::new());
}

#[test]
fn a_renewal_whose_answer_was_lost_does_not_end_the_office() {
    let mut alice = alice_leads(0);
    let primary = own(Role::Primary, 500);
    alice.request(S, &primary, 0);
    alice.unanswered();
    assert_eq!(asks_for(&alice.request(2 * S, &primary, 0), LEADER), Some(20));
    // It was made, as revision 21. The deadline stays.
    assert_eq!(
        alice.answered(2 * S, 2 * S, failed(alices(21, &[])), &primary),
        Vec::new()
    );
    assert_eq!(asks_for(&alice.request(3 * S, &primary, 0), LEADER), Some(21));
    // The lease counts from before it was sent.
    let actions = alice.answered(3 * S, 5 * S, made(alices(22, &[])), &primary);
    assert_eq!(actions[0], Action::AnswerUntil(3 * S + 98 * S / 10));
}

#[test]
fn a_primary_whose_office_was_taken_is_fenced_at_once() {
    let mut alice = alice_leads(0);
    let primary = own(Role::Primary, 500);
    alice.request(S, &primary, 0);
    let taken = View {
        leader: leader("berlin", 12, 30),
        ..view(30, &[])
    };
    let actions = alice.answered(S, S, failed(taken), &primary);
    assert_eq!(actions[0], Action::AnswerUntil(0));
    assert!(matches!(actions[1], Action::Fence(_)));
}

#[test]
fn a_primary_answers_nothing_before_its_database_is_the_clusters() {
    let mut alice = alice_leads(0);
    let primary = own(Role::Primary, 500);
    let unknown = View {
        database: None,
        ..alices(21, &[])
    };
    alice.request(S, &primary, 0);
    let actions = alice.answered(S, S, made(unknown), &primary);
    assert_eq!(actions[0], Action::AnswerUntil(0));
    let request = alice.request(2 * S, &primary, 0);
    assert_eq!(puts(&request, "database").as_deref(), Some("7"));
    assert_eq!(asks_for(&request, "database"), Some(0));
    let actions = alice.answered(2 * S, 2 * S, made(alices(22, &[])), &primary);
    assert_eq!(actions[0], Action::AnswerUntil(2 * S + 98 * S / 10));
}

#[test]
fn a_directory_of_another_database_is_refused() {
    let mut berlin = node("berlin", 0);
    let other = Own {
        database: Some(8),
        ..own(Role::Former, 900)
    };
    berlin.request(0, &other, 0);
    let actions = berlin.answered(0, 0, failed(view(20, &[])), &other);
    assert!(matches!(&actions[..], [Action::Refuse(_)]), "{actions:?}");
}

#[test]
fn a_standby_is_named_after_commits_wait_for_it_and_it_has_all_from_before() {
    let mut alice = alice_leads(1);
    let mut primary = Own {
        followers: vec!["berlin".to_owned()],
        ..own(Role::Primary, 500)
    };
    let mut second = 1;
    let mut revision = 20;
    let mut round = |alice: &mut Decision, primary: &Own, berlin_has: u64| {
        second += 1;
        revision += 1;
        let request = alice.request(second * S, primary, 0);
        let mut next = alices(revision, &[]);
        next.members
            .insert("berlin".to_owned(), member("berlin", Role::Standby, berlin_has).1);
        next.members.get_mut("berlin").unwrap().revision = revision;
        let actions = alice.answered(second * S, second * S, made(next), primary);
        (puts(&request, SYNCHRONOUS), actions)
    };
    let (named, actions) = round(&mut alice, &primary, 400);
    assert_eq!(named, None);
    assert!(
        actions.contains(&Action::WaitFor(vec!["berlin".to_owned()])),
        "{actions:?}"
    );
    // Commits do not wait yet, whatever berlin has.
    for _ in 0..3 {
        assert_eq!(round(&mut alice, &primary, 9_000).0, None);
    }
    // They wait from 600 on; berlin has 599, then 600.
    primary.waits_for = vec!["berlin".to_owned()];
    primary.position = 600;
    assert_eq!(round(&mut alice, &primary, 599).0, None);
    primary.position = 700;
    assert_eq!(round(&mut alice, &primary, 599).0, None);
    assert_eq!(round(&mut alice, &primary, 600).0, None);
    let (named, _) = round(&mut alice, &primary, 600);
    assert!(named.unwrap().contains(r#""standbys":["berlin"]"#));
}

#[test]
fn a_standby_that_is_gone_is_named_no_more_before_commits_stop_to_wait() {
    let mut alice = alice_leads(1);
    let primary = Own {
        waits_for: vec!["berlin".to_owned()],
        ..own(Role::Primary, 500)
    };
    let mut waited_for = Vec::new();
    let mut is_named = true;
    for second in 1..6 {
        let request = alice.request(second * S, &primary, 0);
        if let Some(value) = puts(&request, SYNCHRONOUS) {
            assert!(value.contains(r#""standbys":[]"#), "{value}");
            is_named = false;
        }
        let named: &[&str] = if is_named { &["berlin"] } else { &[] };
        let revision = 20 + second.cast_signed();
        for action in alice.answered(second * S, second * S, made(alices(revision, named)), &primary) {
            if let Action::WaitFor(names) = action {
                assert_eq!(names.is_empty(), !is_named, "F5");
                waited_for.push(names);
            }
        }
    }
    assert_eq!(waited_for, [vec!["berlin".to_owned()], Vec::new()]);
}

#[test]
fn a_switchover_hands_over_after_the_log_is_closed() {
    let mut alice = alice_leads(0);
    let mut primary = own(Role::Primary, 500);
    let wish = Entry {
        value: Switchover {
            to: "berlin".to_owned(),
        },
        revision: 21,
    };
    let wished = |revision| View {
        switchover: Some(wish.clone()),
        ..alices(revision, &["berlin"])
    };
    alice.request(S, &primary, 0);
    let actions = alice.answered(S, S, made(wished(21)), &primary);
    assert_eq!(actions.last(), Some(&Action::HandOver));
    // While it stops, the office is renewed.
    primary.role = Role::Starting;
    let request = alice.request(2 * S, &primary, 0);
    assert!(puts(&request, LEADER).unwrap().contains(r#""released":false"#));
    alice.answered(2 * S, 2 * S, made(wished(22)), &primary);
    primary.stopped = true;
    let request = alice.request(3 * S, &primary, 0);
    let released = puts(&request, LEADER).unwrap();
    assert!(
        released.contains(r#""released":true,"successor":"berlin""#),
        "{released}"
    );
    assert!(request.changes.contains(&Change::Delete("switchover".to_owned())));
    let actions = alice.answered(3 * S, 3 * S, made(wished(23)), &primary);
    assert_eq!(actions, [Action::End]);
}

/// Alice, asked to end at second 1, whose server has stopped; the answer to her release at second 2 was lost.
fn alice_released() -> (Decision, Own) {
    let mut alice = alice_leads(0);
    let mut primary = own(Role::Primary, 500);
    alice.request(S, &primary, 0);
    alice.answered(S, S, made(alices(21, &[])), &primary);
    assert_eq!(alice.leave(), [Action::HandOver]);
    assert_eq!(alice.leave(), Vec::new());
    (primary.role, primary.stopped) = (Role::Starting, true);
    let request = alice.request(2 * S, &primary, 0);
    assert!(puts(&request, LEADER).unwrap().contains(r#""released":true"#));
    alice.unanswered();
    (alice, primary)
}

#[test]
fn a_release_whose_answer_was_lost_ends_the_node_in_order() {
    let (mut alice, primary) = alice_released();
    let request = alice.request(3 * S, &primary, 0);
    assert_eq!(asks_for(&request, LEADER), Some(21));
    let done = View {
        leader: released("alice", 11, 22),
        ..view(22, &[])
    };
    assert_eq!(
        alice.answered(3 * S, 3 * S, failed(done), &primary),
        [Action::End]
    );
    assert!(!alice.leads());
}

#[test]
fn a_node_that_hands_over_is_fenced_when_etcd_is_gone() {
    let (mut alice, primary) = alice_released();
    assert!(!alice.request(3 * S, &primary, 0).changes.is_empty());
    alice.unanswered();
    assert_eq!(alice.tick(S + 97 * S / 10), Vec::new());
    let ended = alice.tick(S + 98 * S / 10);
    assert_eq!(ended[0], Action::AnswerUntil(0));
    assert!(matches!(ended[1], Action::Fence(_)));
}

#[test]
fn a_wish_for_a_node_that_does_not_follow_is_withdrawn() {
    let mut alice = alice_leads(0);
    let primary = own(Role::Primary, 500);
    let wish = Entry {
        value: Switchover {
            to: "cairo".to_owned(),
        },
        revision: 21,
    };
    alice.request(S, &primary, 0);
    let wished = View {
        switchover: Some(wish),
        ..alices(21, &[])
    };
    let actions = alice.answered(S, S, made(wished), &primary);
    assert!(!actions.contains(&Action::HandOver));
    let request = alice.request(2 * S, &primary, 0);
    assert!(request.changes.contains(&Change::Delete("switchover".to_owned())));
}

#[test]
fn in_a_pause_no_node_takes_over() {
    let mut berlin = node("berlin", 0);
    let standby = own(Role::Standby, 500);
    for second in 0..40 {
        let request = berlin.request(second * S, &standby, 0);
        assert_eq!(request.changes, Vec::new());
        let paused = View {
            paused: true,
            ..view(20, &["berlin"])
        };
        berlin.answered(second * S, second * S, failed(paused), &standby);
    }
    berlin.request(40 * S, &standby, 0);
    berlin.answered(40 * S, 40 * S, failed(view(20, &["berlin"])), &standby);
    assert!(puts(&berlin.request(41 * S, &standby, 0), LEADER).is_some());
}

#[test]
fn in_a_pause_a_primary_that_was_restarted_leads_again() {
    let mut alice = node("alice", 0);
    let former = own(Role::Former, 500);
    let paused = View {
        paused: true,
        ..view(20, &["berlin"])
    };
    alice.request(0, &former, 0);
    alice.answered(0, S, failed(paused.clone()), &former);
    // F3 holds for its earlier process, too.
    assert_eq!(alice.request(11 * S, &former, 0).changes, Vec::new());
    alice.answered(11 * S, 11 * S, failed(paused), &former);
    let takeover = alice.request(12 * S, &former, 0);
    assert_eq!(asks_for(&takeover, LEADER), Some(20));
}

#[test]
fn in_a_pause_no_primary_hands_over_to_another_node() {
    let mut alice = alice_leads(0);
    let primary = own(Role::Primary, 500);
    let wish = Entry {
        value: Switchover {
            to: "berlin".to_owned(),
        },
        revision: 21,
    };
    let wished = View {
        switchover: Some(wish),
        paused: true,
        ..alices(21, &["berlin"])
    };
    alice.request(S, &primary, 0);
    let actions = alice.answered(S, S, made(wished.clone()), &primary);
    assert!(!actions.contains(&Action::HandOver));
    // The pause is over.
    alice.request(2 * S, &primary, 0);
    let wished = View {
        paused: false,
        ..wished
    };
    let actions = alice.answered(2 * S, 2 * S, made(wished), &primary);
    assert!(actions.contains(&Action::HandOver), "{actions:?}");
}

#[test]
fn an_office_whose_key_is_gone_may_still_be_held() {
    let gone = View {
        leader: None,
        ..view(0, &["berlin"])
    };
    let mut berlin = node("berlin", 0);
    let standby = own(Role::Standby, 500);
    berlin.request(0, &standby, 0);
    berlin.answered(0, S, failed(gone.clone()), &standby);
    assert_eq!(berlin.request(11 * S, &standby, 0).changes, Vec::new());
    berlin.answered(11 * S, 11 * S, failed(gone), &standby);
    let takeover = berlin.request(S + 102 * S / 10, &standby, 0);
    assert_eq!(asks_for(&takeover, LEADER), Some(0));
    // Without a database anywhere there is nothing to answer for.
    let mut cairo = node("cairo", 0);
    let absent = Own {
        database: None,
        ..own(Role::Absent, 0)
    };
    cairo.request(0, &absent, 0);
    cairo.answered(0, S, failed(View::default()), &absent);
    assert!(puts(&cairo.request(S, &absent, 0), LEADER).is_some());
    // Nor does a directory with one that has to be rewound first make another.
    let mut david = node("david", 0);
    let unfit = own(Role::Absent, 0);
    assert!(unfit.database.is_some());
    david.request(0, &unfit, 0);
    david.answered(0, S, failed(View::default()), &unfit);
    assert_eq!(puts(&david.request(S, &unfit, 0), LEADER), None);
}

#[test]
fn a_member_of_a_newer_program_is_no_rival_and_keeps_a_database_from_being_made() {
    let mut cairo = node("cairo", 0);
    let absent = Own {
        database: None,
        ..own(Role::Absent, 0)
    };
    let mut next = View {
        members: [member("berlin", Role::Unknown, 900)].into(),
        ..View::default()
    };
    cairo.request(0, &absent, 0);
    cairo.answered(0, 0, failed(next.clone()), &absent);
    assert_eq!(cairo.request(S, &absent, 0).changes, Vec::new());
    let mut alice = node("alice", 0);
    let former = own(Role::Former, 500);
    next.leader = released("cairo", 13, 19);
    alice.request(0, &former, 0);
    alice.answered(0, 0, failed(next), &former);
    assert!(puts(&alice.request(0, &former, 0), LEADER).is_some());
}

#[test]
fn a_time_to_live_that_cannot_be_is_waited_for() {
    let mut endless = view(20, &["berlin"]);
    if let Some(entry) = &mut endless.leader {
        entry.value.ttl_ms = u64::MAX;
    }
    let mut berlin = node("berlin", 0);
    let standby = own(Role::Standby, 500);
    for second in [0, 100, 100_000] {
        assert_eq!(berlin.request(second * S, &standby, 0).changes, Vec::new());
        berlin.answered(second * S, second * S, failed(endless.clone()), &standby);
    }
}

#[test]
fn the_node_with_most_log_comes_first() {
    let mut berlin = node("berlin", 0);
    let standby = own(Role::Standby, 400);
    let mut taken_at = None;
    for second in 0..20 {
        let request = berlin.request(second * S, &standby, 0);
        if puts(&request, LEADER).is_some() {
            taken_at = taken_at.or(Some(second));
        }
        let mut next = view(20, &["berlin", "cairo"]);
        let (name, mut cairo) = member("cairo", Role::Standby, 450);
        cairo.revision = second.cast_signed() + 30;
        next.members.insert(name, cairo);
        berlin.answered(second * S, second * S, failed(next), &standby);
    }
    // 10.2 s, and three intervals for cairo.
    assert_eq!(taken_at, Some(14));
}
