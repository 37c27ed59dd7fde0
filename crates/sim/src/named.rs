//! The description of a machine by its name: built in, this host's, or in a file.

use std::path::Path;

use crate::host::this_machine;
use crate::model::{MachineModel, ModelError, PRESETS};

impl MachineModel {
    /// A built-in machine, `this`, or the description in a file (whose name ends in `.toml`).
    pub fn load(name: &str) -> Result<Self, ModelError> {
        if name == "this" {
            return this_machine();
        }
        if name.ends_with(".toml") {
            let text = std::fs::read_to_string(Path::new(name)).map_err(|source| ModelError::Read {
                path: name.to_owned(),
                source,
            })?;
            return Self::parse(name, &text);
        }
        match PRESETS.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Self::parse(name, text),
            None => Err(ModelError::Unknown {
                name: name.to_owned(),
                known: PRESETS.iter().map(|(known, _)| *known).collect(),
            }),
        }
    }
}
