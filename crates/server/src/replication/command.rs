//! The commands of a replication connection: a grammar of ten, which is not SQL.
//!
//! ```text
//! IDENTIFY_SYSTEM
//! SHOW name
//! TIMELINE_HISTORY n
//! LOG_DIGEST X/X X/X
//! CREATE_REPLICATION_SLOT name [TEMPORARY] PHYSICAL [RESERVE_WAL | ( [RESERVE_WAL [boolean]] )]
//! DROP_REPLICATION_SLOT name [WAIT]
//! READ_REPLICATION_SLOT name
//! START_REPLICATION [SLOT name] [PHYSICAL] X/X [TIMELINE n]
//! BASE_BACKUP [( option [value] , … )]
//! REWIND { BEGIN X/X | RELATIONS | PAGES rel n … | STATUS n count | LOG X/X length | END }
//! ```
//!
//! All are PostgreSQL's but LOG_DIGEST, which our standbys ask: SHA-256 of the log between two positions; and REWIND.
//!
//! Keywords are the same in upper and lower case. A name may have double quotes around it, a value single ones; the
//! quote itself is written twice. A semicolon may end a command.

use clearway_engine::{EngineError, SqlState};
use clearway_storage::Lsn;

use super::rewind::RewindCommand;

/// A command of a replication connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The identity of the database, and the end of its log.
    IdentifySystem,
    /// A setting's value.
    Show(String),
    /// The history file of a timeline.
    TimelineHistory(u32),
    /// The digest of the log between two positions.
    LogDigest(u64, u64),
    /// A new slot.
    CreateSlot {
        /// Its name.
        name: String,
        /// It ends with the connection.
        temporary: bool,
        /// It keeps log from now on.
        reserve_log: bool,
    },
    /// A slot to remove.
    DropSlot(String),
    /// A slot to read.
    ReadSlot(String),
    /// The log, from a position on.
    Start {
        /// The slot to use.
        slot: Option<String>,
        /// The position to begin at.
        position: u64,
        /// On which timeline; the current one if it does not say.
        timeline: Option<u32>,
    },
    /// A copy of the files.
    BaseBackup(BackupOptions),
    /// A step of a rewind.
    Rewind(RewindCommand),
}

/// The options of a base backup.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BackupOptions {
    /// The client's name for it.
    pub label: String,
    /// The client wants to know how far it is.
    pub progress: bool,
    /// The log that it needs is part of it.
    pub with_log: bool,
    /// With a list of its files.
    pub manifest: bool,
    /// The list is to have no checksums.
    pub without_checksums: bool,
    /// At most this many kilobytes a second.
    pub kilobytes_per_second: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    /// A keyword, a name, a number or a position.
    Bare(&'a str),
    /// `"…"`, without the quotes.
    Name(&'a str),
    /// `'…'`, without the quotes.
    Text(&'a str),
    Mark(char),
}

struct Parser<'a> {
    text: &'a str,
    /// The text that has not been read yet.
    rest: &'a str,
}

type Result<T> = std::result::Result<T, EngineError>;

/// Reads a command.
pub fn parse(text: &str) -> Result<Command> {
    let mut parser = Parser { text, rest: text };
    let command = parser.command()?;
    parser.takes(Token::Mark(';'))?;
    match parser.next()? {
        None => Ok(command),
        Some(token) => Err(parser.unexpected(Some(token))),
    }
}

fn not_supported(what: &str) -> EngineError {
    EngineError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("{what} is not supported"),
    )
}

impl<'a> Parser<'a> {
    fn unexpected(&self, found: Option<Token<'_>>) -> EngineError {
        let what = match found {
            None => "end of input".to_owned(),
            Some(Token::Bare(text)) => format!("\"{text}\""),
            Some(Token::Name(text)) => format!("name \"{text}\""),
            Some(Token::Text(text)) => format!("'{text}'"),
            Some(Token::Mark(mark)) => format!("\"{mark}\""),
        };
        EngineError::new(SqlState::SYNTAX_ERROR, format!("syntax error at {what}")).with_hint(
            "A replication connection takes replication commands; connect without \"replication\" for SQL.",
        )
    }

    fn peek(&self) -> Result<(Option<Token<'a>>, &'a str)> {
        let rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let Some(first) = rest.chars().next() else {
            return Ok((None, rest));
        };
        let is_bare = |found: char| found.is_ascii_alphanumeric() || matches!(found, '_' | '/' | '.' | '-');
        match first {
            '"' | '\'' => {
                let mut from = 1;
                let end = loop {
                    let Some(found) = rest[from..].find(first) else {
                        return Err(EngineError::new(
                            SqlState::SYNTAX_ERROR,
                            format!("unterminated quoted string in \"{}\"", self.text),
                        ));
                    };
                    if rest[from + found + 1..].starts_with(first) {
                        from += found + 2;
                    } else {
                        break from + found;
                    }
                };
                let token = if first == '"' {
                    Token::Name(&rest[1..end])
                } else {
                    Token::Text(&rest[1..end])
                };
                Ok((Some(token), &rest[end + 1..]))
            }
            found if is_bare(found) => {
                let end = rest.find(|found| !is_bare(found)).unwrap_or(rest.len());
                Ok((Some(Token::Bare(&rest[..end])), &rest[end..]))
            }
            mark => Ok((Some(Token::Mark(mark)), &rest[mark.len_utf8()..])),
        }
    }

    fn next(&mut self) -> Result<Option<Token<'a>>> {
        let (token, rest) = self.peek()?;
        self.rest = rest;
        Ok(token)
    }

    fn takes(&mut self, wanted: Token<'_>) -> Result<bool> {
        let (token, rest) = self.peek()?;
        let found = token == Some(wanted);
        if found {
            self.rest = rest;
        }
        Ok(found)
    }

    fn takes_word(&mut self, word: &str) -> Result<bool> {
        let (token, rest) = self.peek()?;
        let found = matches!(token, Some(Token::Bare(bare)) if bare.eq_ignore_ascii_case(word));
        if found {
            self.rest = rest;
        }
        Ok(found)
    }

    fn word(&mut self) -> Result<&'a str> {
        match self.next()? {
            Some(Token::Bare(word)) => Ok(word),
            other => Err(self.unexpected(other)),
        }
    }

    fn name(&mut self) -> Result<String> {
        match self.next()? {
            Some(Token::Bare(word)) => Ok(word.to_ascii_lowercase()),
            Some(Token::Name(name)) => Ok(name.replace("\"\"", "\"")),
            other => Err(self.unexpected(other)),
        }
    }

    fn number(&mut self) -> Result<u32> {
        let word = self.word()?;
        word.parse().map_err(|_| self.unexpected(Some(Token::Bare(word))))
    }

    fn position(&mut self) -> Result<u64> {
        let word = self.word()?;
        match word.parse::<Lsn>() {
            Ok(position) => Ok(position.0),
            Err(_) => Err(self.unexpected(Some(Token::Bare(word)))),
        }
    }

    fn command(&mut self) -> Result<Command> {
        let word = self.word()?;
        match word.to_ascii_uppercase().as_str() {
            "IDENTIFY_SYSTEM" => Ok(Command::IdentifySystem),
            "SHOW" => self.name().map(Command::Show),
            "TIMELINE_HISTORY" => self.number().map(Command::TimelineHistory),
            "LOG_DIGEST" => Ok(Command::LogDigest(self.position()?, self.position()?)),
            "CREATE_REPLICATION_SLOT" => self.create_slot(),
            "DROP_REPLICATION_SLOT" => {
                let name = self.name()?;
                // A slot in use is an error at once.
                self.takes_word("WAIT")?;
                Ok(Command::DropSlot(name))
            }
            "READ_REPLICATION_SLOT" => self.name().map(Command::ReadSlot),
            "START_REPLICATION" => self.start(),
            "BASE_BACKUP" => self.base_backup().map(Command::BaseBackup),
            "REWIND" => self.rewind().map(Command::Rewind),
            _ => Err(self.unexpected(Some(Token::Bare(word)))),
        }
    }

    fn rewind(&mut self) -> Result<RewindCommand> {
        let word = self.word()?;
        match word.to_ascii_uppercase().as_str() {
            "BEGIN" => self.position().map(RewindCommand::Begin),
            "RELATIONS" => Ok(RewindCommand::Relations),
            "PAGES" => {
                let rel = self.number()?;
                let mut blocks = vec![self.number()?];
                while let (Some(Token::Bare(_)), _) = self.peek()? {
                    blocks.push(self.number()?);
                }
                Ok(RewindCommand::Pages(rel, blocks))
            }
            "STATUS" => Ok(RewindCommand::Status(self.number()?, self.number()?)),
            "LOG" => Ok(RewindCommand::Log(self.position()?, self.number()?)),
            "END" => Ok(RewindCommand::End),
            _ => Err(self.unexpected(Some(Token::Bare(word)))),
        }
    }

    fn create_slot(&mut self) -> Result<Command> {
        let name = self.name()?;
        let temporary = self.takes_word("TEMPORARY")?;
        if self.takes_word("LOGICAL")? {
            return Err(not_supported("logical replication"));
        }
        if !self.takes_word("PHYSICAL")? {
            let found = self.next()?;
            return Err(self.unexpected(found));
        }
        let mut reserve_log = self.takes_word("RESERVE_WAL")?;
        for (option, value) in self.options()? {
            match option.as_str() {
                "reserve_wal" => reserve_log = boolean(&option, value.as_deref())?,
                _ => return Err(unknown("CREATE_REPLICATION_SLOT", &option)),
            }
        }
        Ok(Command::CreateSlot {
            name,
            temporary,
            reserve_log,
        })
    }

    fn start(&mut self) -> Result<Command> {
        let slot = match self.takes_word("SLOT")? {
            true => Some(self.name()?),
            false => None,
        };
        if self.takes_word("LOGICAL")? {
            return Err(not_supported("logical replication"));
        }
        self.takes_word("PHYSICAL")?;
        let position = self.position()?;
        let timeline = match self.takes_word("TIMELINE")? {
            true => Some(self.number()?),
            false => None,
        };
        Ok(Command::Start {
            slot,
            position,
            timeline,
        })
    }

    /// Names and values in parentheses; none if there are no parentheses.
    fn options(&mut self) -> Result<Vec<(String, Option<String>)>> {
        let mut options = Vec::new();
        if !self.takes(Token::Mark('('))? || self.takes(Token::Mark(')'))? {
            return Ok(options);
        }
        loop {
            let option = self.name()?;
            let (token, rest) = self.peek()?;
            let value = match token {
                Some(Token::Text(text)) => Some(text.replace("''", "'")),
                Some(Token::Bare(word)) => Some(word.to_owned()),
                Some(Token::Name(name)) => Some(name.replace("\"\"", "\"")),
                _ => None,
            };
            if value.is_some() {
                self.rest = rest;
            }
            options.push((option, value));
            match self.next()? {
                Some(Token::Mark(',')) => {}
                Some(Token::Mark(')')) => return Ok(options),
                other => return Err(self.unexpected(other)),
            }
        }
    }

    fn base_backup(&mut self) -> Result<BackupOptions> {
        let mut wanted = BackupOptions {
            label: "base backup".to_owned(),
            ..BackupOptions::default()
        };
        for (option, value) in self.options()? {
            let text = value.as_deref().unwrap_or_default();
            let is = |word: &str| text.eq_ignore_ascii_case(word);
            let refused = || {
                not_supported(&format!(
                    "{} '{text}' of a base backup",
                    option.to_ascii_uppercase()
                ))
            };
            match option.as_str() {
                "label" => wanted.label = text.to_owned(),
                "progress" => wanted.progress = boolean(&option, value.as_deref())?,
                "wal" => wanted.with_log = boolean(&option, value.as_deref())?,
                // A checkpoint is never spread; there is no archiver to wait for; there are no tablespaces; and pages are
                // not verified on their way, since the copy's recovery and `clearway check` do that.
                "checkpoint" if is("fast") || is("spread") => {}
                "wait" | "tablespace_map" | "verify_checksums" => drop(boolean(&option, value.as_deref())?),
                "manifest" if is("yes") || is("on") || is("true") || value.is_none() => {
                    wanted.manifest = true
                }
                "manifest" if is("no") || is("off") || is("false") => wanted.manifest = false,
                "manifest_checksums" if is("crc32c") => {}
                "manifest_checksums" if is("none") => wanted.without_checksums = true,
                "max_rate" => {
                    let rate = text.parse().ok().filter(|rate| (32..=1 << 20).contains(rate));
                    wanted.kilobytes_per_second = Some(rate.ok_or_else(|| {
                        EngineError::new(
                            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                            format!(
                                "{text} is outside the valid range for parameter \"MAX_RATE\" (32 .. 1048576)"
                            ),
                        )
                    })?);
                }
                "target" if is("client") => {}
                "checkpoint" | "manifest" | "manifest_checksums" | "target" | "target_detail"
                | "compression" | "compression_detail" => return Err(refused()),
                _ => return Err(unknown("base backup", &option)),
            }
        }
        Ok(wanted)
    }
}

fn unknown(of: &str, option: &str) -> EngineError {
    EngineError::new(
        SqlState::SYNTAX_ERROR,
        format!("unrecognized {of} option: \"{option}\""),
    )
}

fn boolean(option: &str, value: Option<&str>) -> Result<bool> {
    match value.map(str::to_ascii_lowercase).as_deref() {
        None | Some("1" | "on" | "true" | "yes") => Ok(true),
        Some("0" | "off" | "false" | "no") => Ok(false),
        Some(_) => Err(EngineError::new(
            SqlState::SYNTAX_ERROR,
            format!("{option} requires a Boolean value"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> std::result::Result<Command, String> {
        parse(text).map_err(|error| error.to_string())
    }

    #[test]
    fn what_version_15s_programs_send() {
        assert_eq!(parsed("IDENTIFY_SYSTEM"), Ok(Command::IdentifySystem));
        assert_eq!(
            parsed("SHOW wal_segment_size"),
            Ok(Command::Show("wal_segment_size".to_owned()))
        );
        assert_eq!(parsed("TIMELINE_HISTORY 3"), Ok(Command::TimelineHistory(3)));
        assert_eq!(
            parsed("LOG_DIGEST 0/8 1/F8"),
            Ok(Command::LogDigest(8, 0x1_0000_00F8))
        );
        let slot = |name: &str, temporary, reserve_log| {
            Ok(Command::CreateSlot {
                name: name.to_owned(),
                temporary,
                reserve_log,
            })
        };
        assert_eq!(
            parsed("CREATE_REPLICATION_SLOT \"pg_basebackup_7\" TEMPORARY PHYSICAL ( RESERVE_WAL)"),
            slot("pg_basebackup_7", true, true)
        );
        assert_eq!(
            parsed("create_replication_slot A physical;"),
            slot("a", false, false)
        );
        assert_eq!(
            parsed("CREATE_REPLICATION_SLOT \"a\" PHYSICAL RESERVE_WAL"),
            slot("a", false, true)
        );
        assert_eq!(
            parsed("CREATE_REPLICATION_SLOT a PHYSICAL (RESERVE_WAL 0)"),
            slot("a", false, false)
        );
        assert_eq!(
            parsed("DROP_REPLICATION_SLOT \"a\"\"b\" WAIT"),
            Ok(Command::DropSlot("a\"b".to_owned()))
        );
        assert_eq!(
            parsed("READ_REPLICATION_SLOT \"a\""),
            Ok(Command::ReadSlot("a".to_owned()))
        );
        for (text, command) in [
            ("REWIND BEGIN 0/8", RewindCommand::Begin(8)),
            ("rewind relations", RewindCommand::Relations),
            (
                "REWIND PAGES 16 0 7 4294967295;",
                RewindCommand::Pages(16, vec![0, 7, u32::MAX]),
            ),
            ("REWIND STATUS 128 5", RewindCommand::Status(128, 5)),
            ("REWIND LOG 1/0 4096", RewindCommand::Log(1 << 32, 4096)),
            ("REWIND END", RewindCommand::End),
        ] {
            assert_eq!(parsed(text), Ok(Command::Rewind(command)), "{text}");
        }
        let start = |slot: Option<&str>, position, timeline| {
            Ok(Command::Start {
                slot: slot.map(str::to_owned),
                position,
                timeline,
            })
        };
        assert_eq!(
            parsed("START_REPLICATION SLOT \"a\" 0/1000000 TIMELINE 1"),
            start(Some("a"), 0x100_0000, Some(1))
        );
        assert_eq!(
            parsed("START_REPLICATION PHYSICAL AB/cD"),
            start(None, 0xAB_0000_00CD, None)
        );
        assert_eq!(
            parsed("START_REPLICATION FFFFFFFF/FFFFFFFF"),
            start(None, u64::MAX, None)
        );
        assert_eq!(
            parsed(
                "BASE_BACKUP ( LABEL 'Alice''s', PROGRESS, CHECKPOINT 'fast', WAIT 0, WAL, MANIFEST 'yes', \
                 MAX_RATE 32, TABLESPACE_MAP, TARGET 'client')"
            ),
            Ok(Command::BaseBackup(BackupOptions {
                label: "Alice's".to_owned(),
                progress: true,
                with_log: true,
                manifest: true,
                without_checksums: false,
                kilobytes_per_second: Some(32),
            }))
        );
    }

    #[test]
    fn what_is_none_of_them_has_its_sqlstate() {
        for (text, sqlstate) in [
            ("", "42601"),
            (";", "42601"),
            ("select 1", "42601"),
            ("IDENTIFY_SYSTEM 1", "42601"),
            ("SHOW", "42601"),
            ("TIMELINE_HISTORY x", "42601"),
            ("LOG_DIGEST 0/8", "42601"),
            ("CREATE_REPLICATION_SLOT a", "42601"),
            ("CREATE_REPLICATION_SLOT a LOGICAL pgoutput", "0A000"),
            ("CREATE_REPLICATION_SLOT a PHYSICAL (TWO_PHASE)", "42601"),
            ("START_REPLICATION 0", "42601"),
            ("START_REPLICATION /", "42601"),
            ("START_REPLICATION 0/", "42601"),
            ("START_REPLICATION 0/+1", "42601"),
            ("START_REPLICATION 000000000/0", "42601"),
            ("START_REPLICATION 0/0 TIMELINE -1", "42601"),
            ("START_REPLICATION SLOT a LOGICAL 0/0", "0A000"),
            ("BASE_BACKUP (", "42601"),
            ("BASE_BACKUP (LABEL 'a' WAL)", "42601"),
            ("BASE_BACKUP (LABEL 'a", "42601"),
            ("BASE_BACKUP (TARGET 'server')", "0A000"),
            ("BASE_BACKUP (COMPRESSION 'gzip')", "0A000"),
            ("BASE_BACKUP (MAX_RATE 1)", "22003"),
            ("BASE_BACKUP (NO_SUCH)", "42601"),
            ("BASE_BACKUP (WAL maybe)", "42601"),
            ("REWIND", "42601"),
            ("REWIND BEGIN", "42601"),
            ("REWIND PAGES 16", "42601"),
            ("REWIND PAGES 16 -1", "42601"),
            ("REWIND STATUS 1", "42601"),
            ("REWIND LOG 0/8 4294967296", "42601"),
            ("REWIND END 1", "42601"),
            ("SHOW \"a", "42601"),
            ("SHÖW a", "42601"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.sqlstate().as_str(), sqlstate, "{text}: {error}");
        }
    }

    /// Any piece of a command, and any character put into it, is a command or an error.
    #[test]
    fn no_text_panics() {
        let whole = "BASE_BACKUP ( LABEL 'ä''', WAL \"x\") START_REPLICATION SLOT \"a\" 0/1 TIMELINE 1;";
        for (from, _) in whole.char_indices() {
            let _ = parse(&whole[from..]);
            let _ = parse(&whole[..from]);
            for put in ['\'', '"', 'é', '\0', '(', '/'] {
                let _ = parse(&format!("{}{put}{}", &whole[..from], &whole[from..]));
            }
        }
    }
}
