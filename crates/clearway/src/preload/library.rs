//! The place of `libclearway_pthread.so`.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::program::{Elf, Machine};
use crate::error::{CommandError, Result};

const NAME: &str = "libclearway_pthread.so";

/// The library.
pub(super) struct Library {
    path: PathBuf,
    /// The machine of its code.
    pub(super) machine: Machine,
}

/// The library at `named`; or beside this program, as in cargo's target directory; or in `../lib`, as after an
/// installation.
pub(super) fn find(named: Option<&Path>) -> Result<Library> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => beside_this_program()?,
    };
    let refuse = |why: String| CommandError::Usage(format!("the library {}: {why}", path.display()));
    let path = path.canonicalize().map_err(|error| refuse(error.to_string()))?;
    let file = File::open(&path).map_err(|error| refuse(error.to_string()))?;
    match Elf::read(&file) {
        Ok(Some(elf)) => Ok(Library {
            machine: elf.machine,
            path,
        }),
        Ok(None) => Err(refuse("no shared library".to_owned())),
        Err(error) => Err(refuse(error.to_string())),
    }
}

fn beside_this_program() -> Result<PathBuf> {
    let program = env::current_exe().map_err(CommandError::io("finding this program's directory"))?;
    let directory = program.parent().unwrap_or(Path::new("/"));
    let places = [
        directory.join(NAME),
        directory.parent().unwrap_or(directory).join("lib").join(NAME),
    ];
    let [beside, in_lib] = &places;
    match places.iter().find(|place| place.is_file()) {
        Some(place) => Ok(place.clone()),
        None => Err(CommandError::Usage(format!(
            "{} and {} are not there; `cargo build --release -p clearway-preload` makes the library, and --library names \
             another place",
            beside.display(),
            in_lib.display()
        ))),
    }
}

impl Library {
    /// The value of `LD_PRELOAD`: the library before those that are there already.
    pub(super) fn preload(&self) -> Result<OsString> {
        // The loader splits the value there, and nothing escapes them.
        if self
            .path
            .as_os_str()
            .as_bytes()
            .iter()
            .any(|byte| matches!(byte, b' ' | b':' | b'\t' | b'\n' | b'$'))
        {
            return Err(CommandError::Usage(format!(
                "{:?} has a blank, a colon or a dollar sign in it, with which the loader does not find it; copy the library to \
                 another place, and name it with --library",
                self.path
            )));
        }
        let mut value = self.path.clone().into_os_string();
        if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            value.push(":");
            value.push(others);
        }
        Ok(value)
    }
}
