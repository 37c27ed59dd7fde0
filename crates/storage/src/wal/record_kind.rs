//! The kinds of log records: Clearway's, and those of the program that embeds it.
//!
//! | numbers | kinds |
//! | --- | --- |
//! | 1 to 255 | Clearway's; those that are not named here are of a later version |
//! | 256 to 511 | the program's own ([`RecordKind::own`]) |
//! | others | none |

use std::fmt;
use std::sync::OnceLock;

/// The kind of a record: a number in its header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKind(u16);

/// The number of the first kind of the program's own.
const OWN_FIRST: u16 = 256;
/// The number of these kinds.
const OWN_COUNT: usize = 256;

/// The names of the program's own kinds.
static OWN_NAMES: [OnceLock<&'static str>; OWN_COUNT] = [const { OnceLock::new() }; OWN_COUNT];

impl RecordKind {
    /// Pages changed (see the `change` module).
    pub const CHANGE: RecordKind = RecordKind(1);
    /// A transaction committed; payload: when, in microseconds since 2000 (`i64`).
    pub const COMMIT: RecordKind = RecordKind(2);
    /// A transaction rolled back; payload as of `COMMIT`.
    pub const ABORT: RecordKind = RecordKind(3);
    /// A relation number was handed out and its file made; payload: the number.
    pub const CREATE_REL: RecordKind = RecordKind(4);
    /// A page of the commit log as it was about to be written; payload: its number and the page.
    pub const STATUS_PAGE: RecordKind = RecordKind(5);
    /// A checkpoint is complete; payload: its redo position, and how many relations its `LENGTHS` records speak of.
    pub const CHECKPOINT: RecordKind = RecordKind(6);
    /// The number of pages of some relations (see the `lengths` module).
    pub const LENGTHS: RecordKind = RecordKind(7);
    /// Nothing changed. Logged when nothing else was for a while: the header says that the log before it is durable.
    /// Also what fills the place of a record that had to be built again (`wal/insert/ring.rs`).
    pub const NOTHING: RecordKind = RecordKind(8);
    /// The transactions that run: a standby begins its snapshots from them (see `running_transactions`).
    pub const RUNNING: RecordKind = RecordKind(9);
    /// Versions that a transaction up to this one deleted are about to be removed from pages: snapshots of a standby that
    /// may still see them end first (see `cleanup`). Payload: that transaction's xid.
    pub const CLEANUP: RecordKind = RecordKind(10);

    /// One of the 256 kinds of the program that embeds this crate. The number is in the log, so it means the same for as long
    /// as there is log with it; the payload is the program's.
    ///
    /// ```
    /// use clearway_storage::wal::record::RecordKind;
    ///
    /// const WORD_ADDED: RecordKind = RecordKind::own(3);
    ///
    /// WORD_ADDED.name_as("WordAdded")?;
    /// assert_eq!(WORD_ADDED.to_string(), "WordAdded");
    /// assert_eq!(RecordKind::own(4).to_string(), "Own(4)");
    /// assert!(RecordKind::COMMIT.name_as("Mine").is_err());
    /// # Ok::<(), clearway_storage::wal::record::KindNotNamed>(())
    /// ```
    pub const fn own(number: u8) -> RecordKind {
        RecordKind(OWN_FIRST + number as u16)
    }

    /// The number that [`own`](Self::own) has made the kind of; `None` of any other kind.
    pub const fn own_number(self) -> Option<u8> {
        match self.0.checked_sub(OWN_FIRST) {
            Some(number) if (number as usize) < OWN_COUNT => Some(number as u8),
            _ => None,
        }
    }

    /// The number in a record's header.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The kind with this number in a record's header, whether or not this version knows it; `None` for 0, which no record
    /// has.
    pub fn from_number(number: u16) -> Option<RecordKind> {
        (number != 0).then_some(RecordKind(number))
    }

    fn own_name(self) -> Option<&'static OnceLock<&'static str>> {
        self.own_number().map(|number| &OWN_NAMES[usize::from(number)])
    }

    /// Gives one of the program's own kinds the name that messages show, for good. Naming it so again changes nothing.
    pub fn name_as(self, name: &'static str) -> Result<(), KindNotNamed> {
        let slot = self.own_name().ok_or(KindNotNamed::NotOwn(self))?;
        let there = *slot.get_or_init(|| name);
        if there == name {
            Ok(())
        } else {
            Err(KindNotNamed::Named(there))
        }
    }

    /// The kind's name: `None` of a kind of the program's own that has none, and of one that this version does not know.
    pub fn name(self) -> Option<&'static str> {
        match self {
            RecordKind::CHANGE => Some("Change"),
            RecordKind::COMMIT => Some("Commit"),
            RecordKind::ABORT => Some("Abort"),
            RecordKind::CREATE_REL => Some("CreateRel"),
            RecordKind::STATUS_PAGE => Some("StatusPage"),
            RecordKind::CHECKPOINT => Some("Checkpoint"),
            RecordKind::LENGTHS => Some("Lengths"),
            RecordKind::NOTHING => Some("Nothing"),
            RecordKind::RUNNING => Some("Running"),
            RecordKind::CLEANUP => Some("Cleanup"),
            own => own.own_name()?.get().copied(),
        }
    }
}

impl fmt::Display for RecordKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.own_number()) {
            (Some(name), _) => formatter.write_str(name),
            (None, Some(number)) => write!(formatter, "Own({number})"),
            (None, None) => write!(formatter, "Unknown({})", self.0),
        }
    }
}

impl fmt::Debug for RecordKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// A kind does not get a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KindNotNamed {
    /// It is none of the program's own.
    #[error("{0} is no kind of the program's own, as RecordKind::own makes them")]
    NotOwn(RecordKind),
    /// It has this name already.
    #[error("the kind has the name {0:?} already")]
    Named(&'static str),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are in logs on disks: none of them may ever change.
    #[test]
    fn numbers_and_names_are_those_on_disk() {
        let clearways = [
            (1, RecordKind::CHANGE, "Change"),
            (2, RecordKind::COMMIT, "Commit"),
            (3, RecordKind::ABORT, "Abort"),
            (4, RecordKind::CREATE_REL, "CreateRel"),
            (5, RecordKind::STATUS_PAGE, "StatusPage"),
            (6, RecordKind::CHECKPOINT, "Checkpoint"),
            (7, RecordKind::LENGTHS, "Lengths"),
            (8, RecordKind::NOTHING, "Nothing"),
            (9, RecordKind::RUNNING, "Running"),
            (10, RecordKind::CLEANUP, "Cleanup"),
        ];
        for (number, kind, name) in clearways {
            assert_eq!((kind.number(), kind.name()), (number, Some(name)));
            assert_eq!(kind.own_number(), None);
            assert_eq!(kind.name_as("other"), Err(KindNotNamed::NotOwn(kind)));
        }
        assert_eq!([0, 255].map(|own| RecordKind::own(own).number()), [256, 511]);
    }

    #[test]
    fn a_kind_of_the_programs_own_keeps_its_name() {
        for (number, own) in [
            (1, None),
            (255, None),
            (256, Some(0)),
            (511, Some(255)),
            (512, None),
        ] {
            assert_eq!(RecordKind::from_number(number).unwrap().own_number(), own);
        }
        assert_eq!(RecordKind::from_number(0), None);
        let kind = RecordKind::own(200);
        assert_eq!((kind.to_string(), kind.name()), ("Own(200)".to_owned(), None));
        assert_eq!(kind.name_as("Counted"), Ok(()));
        assert_eq!(kind.name_as("Counted"), Ok(()));
        assert_eq!(kind.name_as("Other"), Err(KindNotNamed::Named("Counted")));
        assert_eq!(format!("{kind} {kind:?}"), "Counted Counted");
        assert_eq!(RecordKind::from_number(11).unwrap().to_string(), "Unknown(11)");
    }
}
