//! Costs of a machine, set by hand: `coherence.cross=200`, `os.tick_us=4000`; and its properties that are true or false:
//! `os.wakeup_preemption=false`.

use clearway_sim::MachineModel;

use crate::error::{LabError, Result};

/// True if a setting is one of a machine's costs, whose names have a dot; else it is one of the experiment's numbers.
pub fn is_cost(setting: &str) -> bool {
    setting
        .split_once('=')
        .map_or(setting, |(name, _)| name)
        .contains('.')
}

/// Sets costs, each as `NAME=NUMBER` in the unit of its name, or `NAME=true`, and checks the machine when all are set.
pub fn set_costs<S: AsRef<str>>(
    machine: &mut MachineModel,
    settings: impl IntoIterator<Item = S>,
) -> Result<()> {
    for setting in settings {
        set_cost(machine, setting.as_ref())?;
    }
    Ok(machine.check()?)
}

fn set_cost(machine: &mut MachineModel, setting: &str) -> Result<()> {
    let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
    if let Some(name) = set_flag(machine, name, value)? {
        machine.sources.insert(name.to_owned(), "set by hand".to_owned());
        return Ok(());
    }
    let parsed = value.parse::<f64>().ok();
    let flags = machine.flags_mut().map(|(name, _)| name);
    let mut costs = machine.costs_mut();
    let Some((name, cost)) = costs.iter_mut().find(|(known, _)| *known == name) else {
        return Err(LabError::UnknownName {
            what: "cost",
            name: name.to_owned(),
            available: costs
                .iter()
                .map(|(name, _)| *name)
                .chain(flags)
                .collect::<Vec<_>>()
                .join(", "),
        });
    };
    **cost = parsed.ok_or_else(|| LabError::BadNumber {
        what: "a cost",
        value: setting.to_owned(),
        must: "NAME=NUMBER",
    })?;
    let name = *name;
    machine.sources.insert(name.to_owned(), "set by hand".to_owned());
    Ok(())
}

/// Sets a property that is true or false, and returns its name; `None`: there is none of this name.
fn set_flag(machine: &mut MachineModel, name: &str, value: &str) -> Result<Option<&'static str>> {
    let mut flags = machine.flags_mut().into_iter();
    let Some((name, flag)) = flags.find(|(known, _)| *known == name) else {
        return Ok(None);
    };
    *flag = value.parse().map_err(|_| LabError::BadNumber {
        what: name,
        value: format!("\"{value}\""),
        must: "true or false",
    })?;
    Ok(Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_that_go_together_are_checked_together() {
        let mut machine = MachineModel::load("cloud-16").unwrap();
        set_costs(&mut machine, ["os.tick_us=4000", "os.tick=2000"]).unwrap();
        assert_eq!((machine.os.tick_us, machine.os.tick), (4_000.0, 2_000.0));
        set_costs(&mut machine, ["os.wakeup_preemption=false"]).unwrap();
        assert!(!machine.os.wakeup_preemption && machine.sources.contains_key("os.wakeup_preemption"));
        for (settings, hint) in [
            (&["os.tick=0"][..], "go together"),
            (&["os.tick_us=1", "os.tick=2000"], "not below"),
            (&["os.tick_ms=1"], "os.tick_us"),
            (&["coherence.cross=far"], "NUMBER"),
            (&["coherence.cross=-1"], "not a cost"),
            (&["os.wakeup_preemption=0"], "true or false"),
            (&["os.wakeup=1"], "os.wakeup_preemption"),
        ] {
            let error = set_costs(&mut machine.clone(), settings).unwrap_err().to_string();
            assert!(error.contains(hint), "{settings:?}: {error}");
        }
    }

    #[test]
    fn a_name_with_a_dot_is_a_cost() {
        assert!(is_cost("os.tick_us=4000") && is_cost("coherence.cross"));
        assert!(!is_cost("work_us=1.5") && !is_cost("lwlock=queued"));
    }
}
