//! `clearway mechanisms`: what `--set` can switch.

use clap::Args;
use clearway_engine::Mechanisms;
use clearway_machine::SwitchDescription;

use crate::error::Result;
use crate::output;

/// List the switches, their variants, and what each preset chooses
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Also print the evidence for the choice of the preset clearway, and where the figures are
    #[arg(long)]
    why: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    output::print(format_args!("{}", listing(arguments.why)))?;
    Ok(())
}

fn listing(why: bool) -> String {
    let mut text = String::new();
    let width = name_width();
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
            text.push_str(&format!(
                "    {:<width$}{preset:<14}{}\n",
                variant.name, variant.text
            ));
            if why {
                text.push_str(&evidence(switch, variant.name, variant.name == clearway));
            }
        }
        if let Some(beside) = switch.only_beside {
            let variants = beside.variants.join(", ");
            text.push_str(&format!("    only beside {} = {variants}\n", beside.switch));
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

/// Characters of the column of names: the longest, and two between the columns.
fn name_width() -> usize {
    let variants = Mechanisms::SWITCHES.iter().flat_map(|switch| switch.variants);
    variants
        .map(|variant| variant.name.len() + 2)
        .max()
        .unwrap_or_default()
}

/// The evidence for or against a variant, a line each; empty if none is on record.
fn evidence(switch: &SwitchDescription, variant: &str, chosen: bool) -> String {
    if switch.variants.len() == 1 {
        return "        Why: it is the only variant that is built.\n".to_owned();
    }
    let heading = if chosen { "Why" } else { "Why not" };
    let evidence = switch.why.iter().filter(|evidence| evidence.variant == variant);
    evidence
        .map(|evidence| format!("        {heading}: {} ({})\n", evidence.text, evidence.section))
        .collect()
}

#[cfg(test)]
mod tests {
    /// With `--why` a preset's variant is followed by a line that says why.
    #[test]
    fn every_chosen_variant_has_its_reason() {
        let text = super::listing(true);
        let chosen = clearway_engine::Mechanisms::CLEARWAY.list();
        for (name, variant) in chosen {
            let mut lines = text
                .lines()
                .skip_while(|line| !line.starts_with(&format!("{name}: ")))
                .skip_while(|line| !line.starts_with(&format!("    {variant} ")));
            let reason = lines.nth(1).unwrap_or_default();
            assert!(reason.starts_with("        Why: "), "{name} in {text}");
        }
        assert!(text.contains("        Why not: "), "{text}");
    }

    /// Mutation seen to fail: a column of fixed width.
    #[test]
    fn presets_stand_in_one_column() {
        let text = super::listing(false);
        let columns = ["both presets", "classic", "clearway"].map(|preset| {
            let wanted = format!(" {preset}  ");
            let mut found: Vec<usize> = text.lines().filter_map(|line| line.find(&wanted)).collect();
            found.sort_unstable();
            found.dedup();
            found
        });
        assert_eq!(columns[0].len(), 1, "{text}");
        assert!(columns.iter().all(|column| *column == columns[0]), "{text}");
        let names = text.lines().filter(|line| line.starts_with("    "));
        assert!(
            names
                .filter(|line| !line.contains("only beside") && !line.contains("to come:"))
                .all(|line| line.chars().nth(columns[0][0]) == Some(' ')),
            "a name reaches into the column of presets:\n{text}"
        );
    }

    #[test]
    fn every_switch_and_variant_has_its_line() {
        let text = super::listing(false);
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
