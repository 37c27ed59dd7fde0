//! The advice as a `clearway.toml`.

use std::fmt::Write;

use clearway_engine::Mechanisms;
use clearway_storage::standby::ReplayVariant;

use crate::advise::text::{turns_text, why_text};
use crate::advise::verdict::{Cell, Judged};
use crate::advise::{Advice, Outcome, SwitchAdvice};
use crate::error::Result;

/// A configuration for `clearway serve --config`: every switch, each with a comment on why. `command` is what it says it
/// was written by.
///
/// # Errors
/// None in practice: the variants are those of the switches.
pub fn configuration(advice: &Advice, command: &str) -> Result<String> {
    let machine = &advice.machine;
    let mut text = format!(
        "# Written by: {}\n# For {}: {} ({} CPUs).\n# Advice of a simulation, {} seeds: docs/simulator.md, \"What to \
         believe\". To check natively: clearway bench --vary SWITCH\n# A number is throughput to that of the preset's \
         variant: workload, clients.\n\n",
        one_line(command),
        one_line(&machine.name),
        one_line(&machine.description),
        machine.cpus(),
        advice.seeds
    );
    let mechanisms = advice.mechanisms()?;
    if let Some(workers) = replay_workers(advice, &mechanisms) {
        let _ = writeln!(
            text,
            "# As many as replay was fastest with.\nreplay_workers = {workers}\n"
        );
    }
    text.push_str("[mechanisms]\npreset = \"clearway\"\n");
    for (it, (name, variant)) in advice.switches.iter().zip(mechanisms.list()) {
        for line in reason(it) {
            let _ = writeln!(text, "# {}", one_line(&line));
        }
        let _ = writeln!(text, "{name} = \"{variant}\"");
    }
    Ok(text)
}

/// `text` without control characters, which could end a comment: names come from files.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|it| if it.is_control() { ' ' } else { it })
        .collect()
}

/// Number of workers that change pages if parallel replay is advised: that of its best cell.
fn replay_workers(advice: &Advice, mechanisms: &Mechanisms) -> Option<usize> {
    let replay = advice.switches.iter().find(|it| it.switch.name == "replay")?;
    let best = replay.advised()?.best()?;
    (mechanisms.replay == ReplayVariant::Parallel).then_some(best.clients)
}

fn reason(it: &SwitchAdvice) -> Vec<String> {
    match &it.outcome {
        Outcome::NotSimulated => vec!["not simulated: as in the preset".to_owned()],
        Outcome::NotAsked => vec!["not asked: as in the preset".to_owned()],
        Outcome::NotObeyed { beside } => {
            vec![format!(
                "not obeyed beside the preset's {beside}: as in the preset"
            )]
        }
        Outcome::Judged { advised, turns, .. } => match it.shown() {
            None => vec!["the preset's; it is the only variant".to_owned()],
            Some(shown) if advised.is_some() => vec![
                format!("in place of the preset's {}: {}", it.preset, margin(shown)),
                format!("turned by {}", turns_text(turns)),
            ],
            Some(shown) => {
                let why = why_text(&it.outcome, shown);
                vec![format!(
                    "the preset's; {} {why}: {}",
                    shown.variant,
                    margin(shown)
                )]
            }
        },
    }
}

/// Best, one client, worst.
fn margin(judged: &Judged) -> String {
    let cell = |name: &str, cell: Option<&Cell>| {
        cell.map(|it| {
            format!(
                "{name} {:.3} ± {:.3} ({}, {})",
                it.ratio, it.spread, it.workload, it.clients
            )
        })
    };
    let all = [
        cell("best", judged.best()),
        cell("one client", judged.alone()),
        cell("worst", judged.worst()),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
