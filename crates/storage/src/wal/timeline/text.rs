//! The form of a history file: a line for each timeline before, the oldest first.
//!
//! ```text
//!   # identity of timeline 2: 5f0c3e6a91b2d748
//!   1    0/5000028    promoted
//!   2    0/9000100    before 2026-11-24 12:00:00+00
//!   │      │      └── why, for readers: anything to the end of the line
//!   │      └───────── where its log ends
//!   └──────────────── the timeline
//! ```
//!
//! Blank lines, and lines that begin with `#`, say nothing, except those that name an identity (R5 of the module above).
//! PostgreSQL's programs pass over these as over any other remark. Fields are separated by blanks of any kind and
//! number. PostgreSQL's files have a blank line before each new one.

use std::collections::HashMap;
use std::fmt::Write;

use super::{EndedTimeline, FIRST_TIMELINE, History, TimelineIdentity};

/// The beginning of a line that names a timeline's identity.
const IDENTITY: &str = "# identity of timeline ";

/// The reason why a text is no history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct HistoryProblem {
    /// The line, from 1.
    pub line: usize,
    /// The fault in it.
    pub problem: String,
}

pub(super) fn parse(text: &str, timeline: u32) -> Result<History, HistoryProblem> {
    let mut ended: Vec<EndedTimeline> = Vec::new();
    let mut identities = HashMap::new();
    for (index, line) in text.lines().enumerate() {
        let content = line.trim();
        let malformed = |problem| HistoryProblem {
            line: index + 1,
            problem,
        };
        if let Some(named) = content.strip_prefix(IDENTITY) {
            let (timeline, identity) = identity(named).map_err(malformed)?;
            identities.insert(timeline, identity);
        }
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        ended.push(entry(content, timeline, ended.last()).map_err(malformed)?);
    }
    if timeline > FIRST_TIMELINE && ended.is_empty() {
        return Err(HistoryProblem {
            line: text.lines().count().max(1),
            problem: format!("it ends without saying which timeline {timeline} comes from"),
        });
    }
    for ended in &mut ended {
        ended.identity = identities.get(&ended.timeline).copied();
    }
    Ok(History {
        ended,
        current: timeline,
        identity: identities.get(&timeline).copied(),
    })
}

/// The timeline that a line speaks of, and its identity.
fn identity(named: &str) -> Result<(u32, TimelineIdentity), String> {
    let read = || {
        let (timeline, identity) = named.split_once(": ")?;
        Some((timeline.parse().ok()?, identity.parse().ok()?))
    };
    read().ok_or_else(|| {
        format!("\"{named}\" is no timeline with its identity, which has 16 hexadecimal digits")
    })
}

/// The entry in a line, which is behind `last`.
fn entry(line: &str, timeline: u32, last: Option<&EndedTimeline>) -> Result<EndedTimeline, String> {
    let (number, rest) = field(line);
    let parent: u32 = number
        .parse()
        .map_err(|_| format!("\"{number}\" stands where the number of a timeline should"))?;
    let (end, reason) = field(rest);
    let end = end
        .parse()
        .map_err(|_| format!("\"{end}\" stands where a position such as 0/5000028 should"))?;
    if parent < FIRST_TIMELINE || parent >= timeline {
        return Err(format!(
            "timeline {parent} cannot be one that timeline {timeline} comes from"
        ));
    }
    if let Some(last) = last
        && (parent <= last.timeline || end < last.end)
    {
        return Err(format!(
            "timeline {parent} that ends at {end} cannot follow timeline {} that ends at {}",
            last.timeline, last.end
        ));
    }
    Ok(EndedTimeline {
        timeline: parent,
        identity: None,
        end,
        reason: reason.to_owned(),
    })
}

/// The first field of a line, and the rest behind it.
fn field(line: &str) -> (&str, &str) {
    let (field, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    (field, rest.trim_start())
}

pub(super) fn write(history: &History) -> String {
    let mut text = String::new();
    for (timeline, identity, _) in history.lives() {
        if let Some(identity) = identity {
            let _ = writeln!(text, "{IDENTITY}{timeline}: {identity}");
        }
    }
    for ended in &history.ended {
        let _ = writeln!(text, "{}\t{}\t{}", ended.timeline, ended.end, ended.reason);
    }
    text
}

/// A reason in the form of a file's line.
pub(super) fn one_line(reason: &str) -> String {
    reason.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Lsn;

    #[test]
    fn a_history_is_read_as_it_was_written() {
        let history = History::first().forked(2, Lsn(0x500_0028), "promoted").forked(
            7,
            Lsn(0x1_0000_00F8),
            "before  2026-11-24\t12:00:00+00\n",
        );
        let text = history.to_text();
        let identities = [(2, history.ended()[1].identity), (7, history.identity())];
        let [second, seventh] = identities.map(|(timeline, identity)| {
            format!("# identity of timeline {timeline}: {}\n", identity.unwrap())
        });
        let lines = "1\t0/5000028\tpromoted\n2\t1/F8\tbefore 2026-11-24 12:00:00+00\n";
        assert_eq!(text, format!("{second}{seventh}{lines}"));
        assert_eq!(parse(&text, 7).as_ref(), Ok(&history));
        // As an earlier version wrote it.
        let without = parse(lines, 7).unwrap();
        assert_eq!((without.identity(), without.ended()[1].identity), (None, None));
        assert!(!without.continues(&history) && without.continues(&without));
        assert_eq!(parse("", 1), Ok(History::first()));
    }

    /// As PostgreSQL's server writes it, and with what its reader allows.
    #[test]
    fn postgresqls_files_are_read() {
        let text = "1\t0/3000148\tno recovery target specified\n\n  # a remark\n2 0/A000060\r\n\n";
        let history = parse(text, 3).unwrap();
        let found: Vec<_> = history
            .ended()
            .iter()
            .map(|ended| (ended.timeline, ended.end.0, ended.reason.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (1, 0x300_0148, "no recovery target specified"),
                (2, 0xA00_0060, "")
            ]
        );
    }

    #[test]
    fn what_is_no_history_is_named_with_its_line() {
        for (text, timeline, line, part) in [
            ("x\t0/8\t", 2, 1, "\"x\" stands where the number"),
            ("-1\t0/8\t", 2, 1, "\"-1\" stands"),
            ("\n1", 2, 2, "\"\" stands where a position"),
            ("1\t08\t", 2, 1, "\"08\" stands where a position"),
            ("1\t0/+8\t", 2, 1, "position"),
            ("1\t0/000000008\t", 2, 1, "position"),
            ("#\n\n1\t0/8\n2\t0/8\n", 2, 4, "timeline 2 cannot be one"),
            ("0\t0/8\t", 2, 1, "timeline 0 cannot be one"),
            ("2\t0/8\n1\t0/9\n", 3, 2, "cannot follow timeline 2"),
            ("1\t0/8\n1\t0/9\n", 3, 2, "cannot follow timeline 1"),
            ("1\t0/9\n2\t0/8\n", 3, 2, "that ends at 0/8 cannot follow"),
            ("", 2, 1, "it ends without saying"),
            ("# nothing\n\n", 2, 2, "it ends without saying"),
            ("1\t0/8\n", 1, 1, "timeline 1 cannot be one"),
            (
                "# identity of timeline 2: 12\n1\t0/8\n",
                2,
                1,
                "16 hexadecimal digits",
            ),
            (
                "# identity of timeline x: 0123456789abcdef\n",
                2,
                1,
                "16 hexadecimal digits",
            ),
            ("99999999999\t0/8\n", 2, 1, "number of a timeline"),
        ] {
            let found = parse(text, timeline).unwrap_err();
            assert_eq!(found.line, line, "{text:?}: {found}");
            assert!(found.problem.contains(part), "{text:?}: {found}");
        }
    }
}
