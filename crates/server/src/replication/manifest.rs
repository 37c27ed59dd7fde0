//! The list of a backup's files, in the form that `pg_verifybackup` reads.
//!
//! The checksums of files are CRC-32C, as hexadecimal digits of the number's little-endian bytes; the list's own is
//! SHA-256 of everything before its line.

use clearway_storage::Lsn;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

/// A list under way.
#[derive(Debug)]
pub(super) struct Manifest {
    text: String,
    files: usize,
    time: String,
    with_checksums: bool,
}

impl Manifest {
    pub(super) fn new(time: Timestamp, with_checksums: bool) -> Manifest {
        Manifest {
            text: "{ \"PostgreSQL-Backup-Manifest-Version\": 1,\n\"Files\": [".to_owned(),
            files: 0,
            time: time.strftime("%Y-%m-%d %H:%M:%S GMT").to_string(),
            with_checksums,
        }
    }

    /// Adds a file of the backup. Its name has only letters, digits and slashes.
    pub(super) fn add(&mut self, path: &str, size: u64, crc: u32) {
        self.text.push_str(if self.files == 0 { "\n" } else { ",\n" });
        self.files += 1;
        let checksum = if self.with_checksums {
            let digits: String = crc
                .to_le_bytes()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            format!(", \"Checksum-Algorithm\": \"CRC32C\", \"Checksum\": \"{digits}\"")
        } else {
            String::new()
        };
        self.text.push_str(&format!(
            "{{ \"Path\": \"{path}\", \"Size\": {size}, \"Last-Modified\": \"{}\"{checksum} }}",
            self.time
        ));
    }

    /// The whole list; the backup needs this log: timeline, start and end of each piece.
    pub(super) fn finish(mut self, log: &[(u32, Lsn, Lsn)]) -> String {
        let ranges: Vec<String> = log
            .iter()
            .map(|(timeline, start, end)| {
                format!(
                    "{{ \"Timeline\": {timeline}, \"Start-LSN\": \"{}\", \"End-LSN\": \"{}\" }}",
                    start, end
                )
            })
            .collect();
        self.text
            .push_str(&format!("\n],\n\"WAL-Ranges\": [\n{}\n],\n", ranges.join(",\n")));
        let sum: String = Sha256::digest(self.text.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.text
            .push_str(&format!("\"Manifest-Checksum\": \"{sum}\"}}\n"));
        self.text
    }
}
