//! The list of a copy's files, `backup_manifest`: checking that the files are what the server has sent.
//!
//! Pages have no checksums of their own. So a byte that a network or a disk has changed in a copy would be served as it
//! is. The list has the length and the CRC-32C of each file, and ends with the SHA-256 of all before it. It is checked
//!
//! - while a copy is received, before the copy gets its control file (`received_copy`);
//! - before a copy that `pg_basebackup` has made is opened for the first time, when nothing has changed a file yet.
//!
//! The log is not in the list, as in PostgreSQL's: its records have checksums, and the control file says how far they
//! must reach.
//!
//! # Form
//! JSON. Our server writes one file in a line (`server/src/replication/manifest.rs`), and `pg_basebackup` stores what it
//! was sent, byte for byte. This reader knows that form, and takes nothing else:
//!
//! ```text
//! { "PostgreSQL-Backup-Manifest-Version": 1,
//! "Files": [
//! { "Path": "base/16", "Size": 8192, "Last-Modified": "…", "Checksum-Algorithm": "CRC32C", "Checksum": "0a1b2c3d" },
//! …
//! "Manifest-Checksum": "…"}
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::disk::{Disk, OpenMode};
use crate::error::{Result, StorageError};
use crate::files::data_directory::LOG;

/// The list's name in a copy.
pub(crate) const BACKUP_MANIFEST: &str = "backup_manifest";
/// Its name once the files were checked.
const CHECKED_MANIFEST: &str = "backup_manifest.checked";
/// No list is longer: 2 million files.
const BYTES_MAX: u64 = 512 << 20;
/// Bytes that are read at a time.
const PIECE: usize = 256 << 10;

/// Length and checksum of a file: in the list, or of the file that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileSum {
    pub(crate) length: u64,
    /// CRC-32C; `None` if the list has no checksums.
    pub(crate) crc: Option<u32>,
}

/// The files of a copy, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CopyManifest(BTreeMap<String, FileSum>);

impl CopyManifest {
    /// Reads a list; the error says what is wrong with it.
    pub(crate) fn parse(text: &[u8]) -> std::result::Result<CopyManifest, String> {
        let text = str::from_utf8(text).map_err(|_| "the list of its files is no text".to_owned())?;
        let mark = "\"Manifest-Checksum\": \"";
        let Some((listed, rest)) = text.rsplit_once(mark) else {
            return Err("the list of its files has no end".to_owned());
        };
        let mut sum = String::new();
        for byte in Sha256::digest(listed.as_bytes()) {
            let _ = write!(sum, "{byte:02x}");
        }
        if rest.split('"').next() != Some(&sum) {
            return Err("the list of its files has a wrong checksum".to_owned());
        }
        let mut files = BTreeMap::new();
        for line in listed.lines().filter(|line| line.starts_with("{ \"Path\": ")) {
            let (path, known) =
                entry(line).ok_or_else(|| format!("its list of files has the line {line:?}"))?;
            files.insert(path.to_owned(), known);
        }
        Ok(CopyManifest(files))
    }

    /// True if `found`, the files of a copy, are those of the list; if not, what is wrong. Files of the log do not count.
    pub(crate) fn compare(&self, found: &BTreeMap<String, FileSum>) -> std::result::Result<(), String> {
        let is_log = |path: &str| path.strip_prefix(LOG).is_some_and(|rest| rest.starts_with('/'));
        if let Some(path) = found
            .keys()
            .find(|path| !is_log(path) && !self.0.contains_key(*path))
        {
            return Err(format!("\"{path}\" is not in the list of the server's files"));
        }
        for (path, listed) in &self.0 {
            match found.get(path) {
                None => return Err(format!("\"{path}\" is missing")),
                Some(found) if found.length != listed.length => {
                    return Err(format!(
                        "\"{path}\" has {} bytes, and the server's has {}",
                        found.length, listed.length
                    ));
                }
                Some(found) if listed.crc.is_some_and(|crc| found.crc != Some(crc)) => {
                    return Err(format!(
                        "\"{path}\" is damaged: it has not the checksum of the server's"
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// The file of a line.
fn entry(line: &str) -> Option<(&str, FileSum)> {
    let field = |name: &str| {
        let (_, rest) = line.split_once(&format!("\"{name}\": "))?;
        let end = rest.find([',', ' ', '}'])?;
        Some(rest[..end].trim_matches('"'))
    };
    let crc = match field("Checksum") {
        None => None,
        Some(_) if field("Checksum-Algorithm") != Some("CRC32C") => return None,
        // The digits of its little-endian bytes.
        Some(digits) if digits.len() == 8 => Some(u32::from_str_radix(digits, 16).ok()?.swap_bytes()),
        Some(_) => return None,
    };
    let length = field("Size")?.parse().ok()?;
    Some((field("Path")?, FileSum { length, crc }))
}

/// Checks the files of `dir`, a copy that was never opened, against its list; whether there is a list.
pub(crate) fn check_copy(disk: &dyn Disk, dir: &Path) -> Result<bool> {
    let path = dir.join(BACKUP_MANIFEST);
    let Some(text) = read_list(disk, &path)? else {
        return Ok(false);
    };
    let damaged = |problem: String| StorageError::DamagedCopy {
        dir: dir.to_owned(),
        problem,
    };
    let manifest = CopyManifest::parse(&text).map_err(damaged)?;
    let mut found = BTreeMap::new();
    for name in manifest.0.keys() {
        if let Some(sum) = sum_of(disk, &dir.join(name))? {
            found.insert(name.clone(), sum);
        }
    }
    manifest.compare(&found).map_err(damaged)?;
    Ok(true)
}

/// The files are about to be changed: gives the list another name, so that an interrupted start does not make the next one
/// take the copy for damaged. The caller makes names durable before a file is changed.
pub(crate) fn set_aside(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let path = dir.join(BACKUP_MANIFEST);
    disk.rename(&path, &dir.join(CHECKED_MANIFEST))
        .map_err(|error| StorageError::io("rename", &path, error))
}

fn read_list(disk: &dyn Disk, path: &Path) -> Result<Option<Vec<u8>>> {
    let fail = |error| StorageError::io("read", path, error);
    let file = match disk.open(path, OpenMode::Existing) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(fail)?,
    };
    let length = file.length().map_err(fail)?.min(BYTES_MAX);
    let mut text = vec![0; length as usize];
    file.read_exact_at(&mut text, 0).map_err(fail)?;
    Ok(Some(text))
}

/// Length and checksum of a file; `None` if it is not there.
fn sum_of(disk: &dyn Disk, path: &Path) -> Result<Option<FileSum>> {
    let fail = |error| StorageError::io("read", path, error);
    let file = match disk.open(path, OpenMode::Existing) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(fail)?,
    };
    let length = file.length().map_err(fail)?;
    let mut piece = vec![0; PIECE];
    let (mut at, mut crc) = (0, 0);
    while at < length {
        let count = (length - at).min(PIECE as u64) as usize;
        file.read_exact_at(&mut piece[..count], at).map_err(fail)?;
        crc = crc32c::crc32c_append(crc, &piece[..count]);
        at += count as u64;
    }
    Ok(Some(FileSum {
        length,
        crc: Some(crc),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::NativeDisk;

    fn list(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut text = "{ \"PostgreSQL-Backup-Manifest-Version\": 1,\n\"Files\": [".to_owned();
        for (index, (path, content)) in files.iter().enumerate() {
            text.push_str(if index == 0 { "\n" } else { ",\n" });
            let digits = format!("{:08x}", crc32c::crc32c(content).swap_bytes());
            let _ = write!(
                text,
                "{{ \"Path\": \"{path}\", \"Size\": {}, \"Last-Modified\": \"2026-11-27 08:00:00 GMT\", \
                 \"Checksum-Algorithm\": \"CRC32C\", \"Checksum\": \"{digits}\" }}",
                content.len()
            );
        }
        text.push_str("\n],\n\"WAL-Ranges\": [\n\n],\n");
        let digits: String = Sha256::digest(text.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let _ = writeln!(text, "\"Manifest-Checksum\": \"{digits}\"}}");
        text.into_bytes()
    }

    /// Any byte that is changed in the list or in a file of it is found, and a file too many or too few.
    #[test]
    fn a_changed_byte_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path();
        std::fs::create_dir(dir.join("base")).unwrap();
        let files: [(&str, &[u8]); 2] = [("base/16", b"sixteen"), ("control", b"0123456789")];
        let text = list(&files);
        let write = |name: &str, content: &[u8]| std::fs::write(dir.join(name), content).unwrap();
        for (name, content) in files {
            write(name, content);
        }
        assert!(!check_copy(&NativeDisk, dir).unwrap(), "it has no list");
        write(BACKUP_MANIFEST, &text);
        assert!(check_copy(&NativeDisk, dir).unwrap());
        let is_damaged = |expected: &str| {
            let error = check_copy(&NativeDisk, dir).unwrap_err();
            assert!(matches!(error, StorageError::DamagedCopy { .. }), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        };
        for (name, content) in files {
            for at in 0..content.len() {
                let mut changed = content.to_vec();
                changed[at] ^= 1 << (at % 8);
                write(name, &changed);
                is_damaged("is damaged");
            }
            write(name, &content[1..]);
            is_damaged("bytes, and the server's has");
            std::fs::remove_file(dir.join(name)).unwrap();
            is_damaged("is missing");
            write(name, content);
        }
        // The text before the checksum, which is not followed by anything that counts.
        let end = text.len() - "\"}\n".len();
        for at in 0..end {
            let mut changed = text.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(CopyManifest::parse(&changed).is_err(), "byte {at}");
            assert!(CopyManifest::parse(&text[..at]).is_err(), "cut at {at}");
        }
        let mut found = BTreeMap::new();
        for (name, content) in files {
            let crc = Some(crc32c::crc32c(content));
            let length = content.len() as u64;
            found.insert(name.to_owned(), FileSum { length, crc });
        }
        let manifest = CopyManifest::parse(&text).unwrap();
        let other = FileSum { length: 0, crc: None };
        found.insert("pg_wal/000000010000000000000001".to_owned(), other);
        manifest.compare(&found).unwrap();
        found.insert("base/17".to_owned(), other);
        assert!(manifest.compare(&found).unwrap_err().contains("base/17"));
    }
}
