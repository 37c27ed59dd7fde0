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
    let mut text = String::new();
    let presets = Mechanisms::CLASSIC
        .list()
        .into_iter()
        .zip(Mechanisms::CLEARWAY.list());
    for (switch, ((_, classic), (_, clearway))) in Mechanisms::SWITCHES.iter().zip(presets) {
        text.push_str(&format!("{}: {}\n", switch.name, switch.about));
        for variant in switch.variants {
            let preset = match (variant.name == classic, variant.name == clearway) {
                (true, true) => "both presets",
                (true, false) => "classic",
                (false, true) => "clearway",
                (false, false) => "",
            };
            text.push_str(&format!("    {:<16}{preset:<14}{}\n", variant.name, variant.text));
        }
        if !switch.planned.is_empty() {
            text.push_str(&format!("    to come: {}\n", switch.planned.join(", ")));
        }
    }
    text.push_str(
        "\nBeside each variant stands the preset that chooses it; clearway is the default. Use --preset NAME and\n\
         --set MECHANISM=VARIANT, or [mechanisms] in clearway.toml.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_switch_and_variant_has_its_line() {
        let text = super::listing();
        let mut lines = text.lines();
        for switch in clearway_engine::Mechanisms::SWITCHES {
            let heading = format!("{}: {}", switch.name, switch.about);
            assert!(
                lines.any(|line| line == heading),
                "{heading} is missing in {text}"
            );
            for variant in switch.variants {
                let line = lines.next().unwrap_or_default().trim_start();
                assert!(
                    line.starts_with(variant.name) && line.ends_with(variant.text),
                    "{text}"
                );
            }
        }
    }
}
