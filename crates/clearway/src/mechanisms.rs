//! `clearway mechanisms`: what `--set` can switch.

use clap::Args;
use clearway_engine::Mechanisms;

use crate::error::Result;
use crate::output;

/// List the switches, their variants, and what each preset chooses
#[derive(Debug, Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: &Arguments) -> Result<()> {
    output::print(format_args!("{}", listing()))?;
    Ok(())
}

fn listing() -> String {
    let mut text = format!(
        "{:<18}{:<14}{:<14}{:<26}{}\n",
        "mechanism", "classic", "clearway", "available", "to come"
    );
    let presets = Mechanisms::CLASSIC
        .list()
        .into_iter()
        .zip(Mechanisms::CLEARWAY.list());
    for (switch, ((_, classic), (_, clearway))) in Mechanisms::SWITCHES.iter().zip(presets) {
        let line = format!(
            "{:<18}{classic:<14}{clearway:<14}{:<26}{}",
            switch.name,
            switch.available.join(", "),
            switch.planned.join(", ")
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str("\nUse --preset NAME and --set MECHANISM=VARIANT, or [mechanisms] in clearway.toml.\n");
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_switch_has_its_line() {
        let text = super::listing();
        for switch in clearway_engine::Mechanisms::SWITCHES {
            assert!(text.lines().any(|line| line.starts_with(switch.name)), "{text}");
        }
    }
}
