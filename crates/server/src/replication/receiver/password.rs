//! The client's half of a login by password: where the password comes from, and SCRAM-SHA-256.
//!
//! A password stands in the connection string (`password`), or in a file (`passfile`) that only its owner may read, a line a
//! server: `host:port:database:user:password`. `*` fits anything, `\` takes the next character as it is, and the first
//! line that fits counts, as with libpq; the database of a replication connection is `replication`. The file is read at each
//! connection.
//!
//! The exchange is `postgres-protocol`'s. A server that does not prove that it knows the password is not believed: it could
//! be any program that has taken the port.

use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};

/// A password, which is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub(super) String);

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password")
    }
}

/// The password that a file has for this host, port, database and user; an error in words if the file cannot be used.
pub(super) fn of_file(file: &Path, wanted: [&str; 4]) -> Result<Option<Password>, String> {
    let problem = |what: String| format!("password file \"{}\" {what}", file.display());
    let metadata = std::fs::metadata(file).map_err(|error| problem(format!("cannot be read: {error}")))?;
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(problem(
            "has group or world access; permissions should be u=rw (0600) or less".to_owned(),
        ));
    }
    let text = std::fs::read_to_string(file).map_err(|error| problem(format!("cannot be read: {error}")))?;
    Ok(of_lines(&text, wanted))
}

fn of_lines(text: &str, wanted: [&str; 4]) -> Option<Password> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.find_map(|line| {
        let fields = fields(line);
        let (password, known) = fields.split_last().filter(|(_, known)| known.len() == 4)?;
        let fits = known
            .iter()
            .zip(wanted)
            .all(|(known, wanted)| known == "*" || known == wanted);
        fits.then(|| Password(password.clone()))
    })
}

/// The fields of a line; the fifth takes what is left.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields.last_mut().expect("there is one").extend(characters.next()),
            other => fields.last_mut().expect("there is one").push(other),
        }
    }
    fields
}

/// A login that has begun.
pub(super) struct Login {
    mechanism: &'static str,
    exchange: ScramSha256,
    proved: bool,
}

impl Login {
    /// Begins, if the server takes SCRAM-SHA-256; `mechanisms`: what it takes, each with a zero byte behind it. With the hash
    /// of the server's certificate, the login is bound to it where the server can.
    pub(super) fn begin(password: &Password, mechanisms: &[u8], end_point: Option<Vec<u8>>) -> Option<Login> {
        let takes = |wanted: &str| {
            let mut names = mechanisms.split(|byte| *byte == 0);
            names.any(|name| name == wanted.as_bytes())
        };
        let (mechanism, binding) = match end_point {
            Some(hash) if takes(SCRAM_SHA_256_PLUS) => {
                (SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(hash))
            }
            // A machine in the middle that has taken PLUS off the list is found out by the server.
            Some(_) => (SCRAM_SHA_256, ChannelBinding::unrequested()),
            None => (SCRAM_SHA_256, ChannelBinding::unsupported()),
        };
        takes(mechanism).then(|| Login {
            mechanism,
            exchange: ScramSha256::new(password.0.as_bytes(), binding),
            proved: false,
        })
    }

    /// True if it is bound to the server's certificate.
    pub(super) fn is_bound(&self) -> bool {
        self.mechanism == SCRAM_SHA_256_PLUS
    }

    /// The body of the first answer.
    pub(super) fn first(&self) -> Vec<u8> {
        let message = self.exchange.message();
        let length = (message.len() as u32).to_be_bytes();
        [self.mechanism.as_bytes(), b"\0", &length, message].concat()
    }

    /// The body of the answer to the server's first message.
    pub(super) fn last(&mut self, message: &[u8]) -> std::io::Result<Vec<u8>> {
        self.exchange.update(message)?;
        Ok(self.exchange.message().to_vec())
    }

    /// Checks that the server knows the password.
    pub(super) fn finish(&mut self, message: &[u8]) -> std::io::Result<()> {
        self.exchange.finish(message)?;
        self.proved = true;
        Ok(())
    }

    /// True once the server has proved it.
    pub(super) fn is_proved(&self) -> bool {
        self.proved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_counts() {
        let file = "# remark\n127.0.0.1:5433:postgres:copy:no\n127.0.0.1:5433:replication:copy:a\\:b:c\n*:*:*:*:any\n";
        let of = |user| of_lines(file, ["127.0.0.1", "5433", "replication", user]);
        assert_eq!(of("copy"), Some(Password("a:b:c".to_owned())));
        assert_eq!(of("other"), Some(Password("any".to_owned())));
        assert_eq!(of_lines("short:line", ["a", "1", "b", "c"]), None);
        assert_eq!(format!("{:?}", of("copy")), "Some(Password)");
    }
}
