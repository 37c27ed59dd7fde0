//! The program, and whether the loader would put a library into it.
//!
//! | a program that | has no library put into it, since |
//! | --- | --- |
//! | is linked statically | it has no loader |
//! | gets other rights than its caller's | the loader drops `LD_PRELOAD` then, and says nothing |
//! | is for another machine, or for musl | the loader cannot load it |
//! | is a script of such a program | that one is what runs |

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, getxattr};
use rustix::process::{getegid, geteuid};

use crate::error::{CommandError, Result};

/// Scripts whose interpreter is a script; the kernel follows five.
const SCRIPTS_MAX: u32 = 5;

/// Bytes of the first line of a script that the kernel looks at.
const FIRST_LINE_SIZE: usize = 256;

/// Program headers that are looked at; a program has about a dozen.
const HEADERS_MAX: u16 = 512;

/// Kinds of segments, of the ELF format.
const LOADER: u32 = 3;

/// The file that the name means, by `PATH` if it names no directory.
pub(super) fn find(name: &OsStr) -> Result<PathBuf> {
    let path = Path::new(name);
    if name.as_bytes().contains(&b'/') {
        return match path.metadata() {
            Ok(_) => Ok(path.to_owned()),
            Err(error) => Err(CommandError::NoProgram(format!("{}: {error}", path.display()))),
        };
    }
    let directories = env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
    let places = env::split_paths(&directories).map(|directory| {
        // An empty one is the directory that this process is in.
        let is_here = directory.as_os_str().is_empty();
        if is_here {
            Path::new(".").join(path)
        } else {
            directory.join(path)
        }
    });
    let mut found = places.filter(|place| place.is_file());
    match found.find(|place| access(place, Access::EXEC_OK).is_ok()) {
        Some(place) => Ok(place),
        None => Err(CommandError::NoProgram(format!(
            "no program {} in the directories of PATH",
            path.display()
        ))),
    }
}

/// Refuses the program at `path` if the library, whose code is for `machine`, would not get into it.
pub(super) fn check(path: &Path, machine: Machine) -> Result<()> {
    let mut path = path.to_owned();
    for _ in 0..SCRIPTS_MAX {
        let refuse = |why: &str| CommandError::CannotRun(format!("{} {why}", path.display()));
        let read = |error: io::Error| CommandError::CannotRun(format!("{}: {error}", path.display()));
        let metadata = path.metadata().map_err(read)?;
        if metadata.is_dir() {
            return Err(refuse("is a directory"));
        }
        if let Err(error) = access(&path, Access::EXEC_OK) {
            return Err(read(error.into()));
        }
        // Before it is opened: one that may not be read can have such a mark.
        if let Some(right) = other_rights(&path, &metadata) {
            return Err(refuse(&format!(
                "runs with other rights than yours ({right}), and the loader leaves LD_PRELOAD out then; run it as the user whose \
                 rights it gets, or a copy without the mark"
            )));
        }
        // What cannot be read can run, and then nothing else is known of it.
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
            other => other.map_err(read)?,
        };
        let Some(interpreter) = interpreter(&file).map_err(read)? else {
            return check_elf(&path, &file, machine);
        };
        path = interpreter;
    }
    Err(CommandError::CannotRun(format!(
        "{} is a script of a script, and so on",
        path.display()
    )))
}

fn check_elf(path: &Path, file: &File, machine: Machine) -> Result<()> {
    let refuse = |why: String| CommandError::CannotRun(format!("{} {why}", path.display()));
    let elf = Elf::read(file).map_err(|error| refuse(format!("cannot be read: {error}")))?;
    let Some(elf) = elf else {
        return Err(refuse(
            "is neither a program nor a script that begins with #!".to_owned(),
        ));
    };
    if elf.machine != machine {
        return Err(refuse(
            "is for another kind of machine than the library".to_owned(),
        ));
    }
    let Some(loader) = elf.loader else {
        return Err(refuse(
            "is linked statically: its locks are inside of it, and no library gets under them".to_owned(),
        ));
    };
    if loader
        .file_name()
        .is_some_and(|name| name.as_bytes().starts_with(b"ld-musl"))
    {
        return Err(refuse(format!(
            "is loaded by {}: the library is for glibc",
            loader.display()
        )));
    }
    Ok(())
}

/// The mark by which the program gets other rights than those of this process.
fn other_rights(path: &Path, metadata: &std::fs::Metadata) -> Option<&'static str> {
    let mode = metadata.mode();
    if mode & 0o4000 != 0 && metadata.uid() != geteuid().as_raw() {
        return Some("set-user-ID");
    }
    if mode & 0o2010 == 0o2010 && metadata.gid() != getegid().as_raw() {
        return Some("set-group-ID");
    }
    let has_capabilities = getxattr(path, c"security.capability", &mut [0_u8; 64][..]).is_ok();
    (has_capabilities && !geteuid().is_root()).then_some("capabilities of its file")
}

/// As much of the file's beginning as there is and as `bytes` has room for.
fn beginning<'a>(file: &File, bytes: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], length as u64)? {
            0 => break,
            more => length += more,
        }
    }
    Ok(&bytes[..length])
}

/// The program that runs a script, without its argument; `None` if the file is no script.
fn interpreter(file: &File) -> io::Result<Option<PathBuf>> {
    let mut bytes = [0; FIRST_LINE_SIZE];
    let beginning = beginning(file, &mut bytes)?;
    let Some(line) = beginning.strip_prefix(b"#!") else {
        return Ok(None);
    };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or(line);
    let mut words = line
        .split(|byte| matches!(byte, b' ' | b'\t'))
        .filter(|word| !word.is_empty());
    Ok(words
        .next()
        .map(|word| PathBuf::from(OsString::from_vec(word.to_vec()))))
}

/// The machine of a file of the ELF format: class, byte order and number of the architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Machine {
    class: u8,
    order: u8,
    architecture: u16,
}

/// The parts of an ELF file's headers that matter here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Elf {
    pub(super) machine: Machine,
    /// The loader that a program asks for; none if it is linked statically, and in a library.
    loader: Option<PathBuf>,
}

/// The header's fields, of a class of 32 or 64 bits.
struct Fields<'a> {
    bytes: &'a [u8],
    is_big_endian: bool,
}

impl Fields<'_> {
    /// The number of `size` bytes at `position`; 0 where there is nothing.
    fn number(&self, position: usize, size: usize) -> u64 {
        let bytes = self.bytes.get(position..position + size).unwrap_or(&[]);
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        if self.is_big_endian {
            bytes.iter().fold(0, add)
        } else {
            bytes.iter().rev().fold(0, add)
        }
    }
}

impl Elf {
    /// Reads the headers. `None` if it is no ELF file.
    pub(super) fn read(file: &File) -> io::Result<Option<Self>> {
        let mut header = [0; 64];
        let header = beginning(file, &mut header)?;
        if header.len() < 52 || !header.starts_with(b"\x7fELF") {
            return Ok(None);
        }
        let (class, order) = (header[4], header[5]);
        let is_big_endian = order == 2;
        let fields = Fields {
            bytes: header,
            is_big_endian,
        };
        let is_wide = class == 2;
        let (table, size, count) = if is_wide { (32, 54, 56) } else { (28, 42, 44) };
        let table = fields.number(table, if is_wide { 8 } else { 4 });
        let (size, count) = (fields.number(size, 2), fields.number(count, 2) as u16);
        let machine = Machine {
            class,
            order,
            architecture: fields.number(18, 2) as u16,
        };
        let mut loader = None;
        for number in 0..u64::from(count.min(HEADERS_MAX)) {
            let mut entry = [0; 56];
            let entry = &mut entry[..if is_wide { 56 } else { 32 }];
            file.read_exact_at(entry, table.saturating_add(number * size))?;
            let fields = Fields {
                bytes: entry,
                is_big_endian,
            };
            if fields.number(0, 4) == u64::from(LOADER) {
                let (position, length) = if is_wide {
                    (fields.number(8, 8), fields.number(32, 8))
                } else {
                    (fields.number(4, 4), fields.number(16, 4))
                };
                // A path, with a zero behind it.
                let mut path = vec![0; length.min(4096) as usize];
                file.read_exact_at(&mut path, position)?;
                path.truncate(path.iter().position(|byte| *byte == 0).unwrap_or(path.len()));
                loader = Some(PathBuf::from(OsString::from_vec(path)));
            }
        }
        Ok(Some(Self { machine, loader }))
    }
}
