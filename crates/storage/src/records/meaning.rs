//! Records decoded.

use clearway_txn::{Status, Xid};
use smallvec::SmallVec;

use crate::change::{self, PagePart};
use crate::commit::end_record;
use crate::files::created::CreatedRelation;
use crate::files::lengths::{self, Lengths};
use crate::page::{Lsn, PageId, get_u64};
use crate::replication::cleanup;
use crate::replication::running_transactions::{self, RunningRecord};
use crate::wal::record::{Record, RecordKind};

/// A record that is whole, and whose payload makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The meaning of a record.
#[derive(Debug)]
pub(crate) enum Meaning<'a> {
    /// Pages change.
    Change(ChangeRecord<'a>),
    /// The record's transaction has ended.
    End {
        /// Its outcome.
        status: Status,
        /// The time, in microseconds since 2000.
        time_us: i64,
    },
    /// A relation number was handed out, and its file made.
    CreateRel(CreatedRelation),
    /// A page of the commit log as it was about to be written.
    StatusPage {
        /// The page's number.
        number: u32,
        content: &'a [u8],
    },
    /// A checkpoint is complete.
    Checkpoint(CheckpointRecord),
    /// The number of pages of some relations.
    Lengths(Lengths),
    /// Nothing changed.
    Nothing,
    /// Only standbys read it.
    ForStandbys(StandbyRecord<'a>),
    /// The program that embeds this crate knows what.
    Own,
    /// Nothing that this version knows.
    Unknown,
}

/// The pages of a change. They are decoded when they are asked for: the first pass over the log does not need them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeRecord<'a>(&'a [u8]);

/// The parts of a change, each with its page. Most changes have one or two.
pub(crate) type PageParts<'a> = SmallVec<[(PageId, PagePart<'a>); 2]>;

/// A checkpoint of the server that logged it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckpointRecord {
    pub(crate) redo: Lsn,
    /// The number of relations of which it has logged the lengths; `None` if the record does not say.
    pub(crate) relations: Option<u64>,
}

/// A record that only standbys read. It is decoded when they ask for it, so that a malformed one is no reason for a server
/// not to start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StandbyRecord<'a>(Record<'a>);

/// The meaning of a record for standbys.
#[derive(Debug)]
pub(crate) enum ForStandbys {
    /// The transactions that run.
    Running(RunningRecord),
    /// Versions that transactions up to this one deleted are about to be removed.
    Cleanup(Xid),
}

impl<'a> Meaning<'a> {
    /// The meaning of a record.
    pub(crate) fn of(record: &Record<'a>) -> Result<Meaning<'a>, Malformed> {
        let payload = record.payload;
        let ended = |status| {
            let time_us = end_record::time_us(payload).ok_or(Malformed)?;
            Ok(Meaning::End { status, time_us })
        };
        match record.kind {
            RecordKind::CHANGE => Ok(Meaning::Change(ChangeRecord(payload))),
            RecordKind::COMMIT => ended(Status::Committed),
            RecordKind::ABORT => ended(Status::Aborted),
            RecordKind::CREATE_REL => CreatedRelation::decode(payload)
                .map(Meaning::CreateRel)
                .ok_or(Malformed),
            RecordKind::STATUS_PAGE => {
                let (number, content) = payload.split_first_chunk().ok_or(Malformed)?;
                let number = u32::from_le_bytes(*number);
                Ok(Meaning::StatusPage { number, content })
            }
            RecordKind::CHECKPOINT => CheckpointRecord::decode(payload).map(Meaning::Checkpoint),
            RecordKind::LENGTHS => {
                let mut lengths = Lengths::new();
                lengths::decode(payload, &mut lengths).ok_or(Malformed)?;
                Ok(Meaning::Lengths(lengths))
            }
            RecordKind::NOTHING => Ok(Meaning::Nothing),
            RecordKind::RUNNING | RecordKind::CLEANUP => Ok(Meaning::ForStandbys(StandbyRecord(*record))),
            own if own.own_number().is_some() => Ok(Meaning::Own),
            _ => Ok(Meaning::Unknown),
        }
    }
}

impl<'a> ChangeRecord<'a> {
    /// The change as the record has it.
    pub(crate) fn payload(self) -> &'a [u8] {
        self.0
    }

    /// Its pages.
    pub(crate) fn parts(self) -> Result<PageParts<'a>, Malformed> {
        let (mut parts, mut rest) = (PageParts::new(), self.0);
        while !rest.is_empty() {
            parts.push(change::next_part(&mut rest).ok_or(Malformed)?);
        }
        Ok(parts)
    }
}

impl CheckpointRecord {
    fn decode(payload: &[u8]) -> Result<CheckpointRecord, Malformed> {
        if payload.len() < 8 {
            return Err(Malformed);
        }
        Ok(CheckpointRecord {
            redo: Lsn(get_u64(payload, 0)),
            relations: payload.get(8..16).map(|count| get_u64(count, 0)),
        })
    }
}

impl StandbyRecord<'_> {
    /// The meaning of the record.
    pub(crate) fn decode(&self) -> Result<ForStandbys, Malformed> {
        let payload = self.0.payload;
        match self.0.kind {
            RecordKind::RUNNING => running_transactions::decode(payload)
                .map(ForStandbys::Running)
                .map_err(|_| Malformed),
            _ => cleanup::decode(payload)
                .map(ForStandbys::Cleanup)
                .ok_or(Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::created::Lifetime;
    use crate::page::RelId;
    use crate::wal::link::LogLink;

    fn meaning(kind: RecordKind, payload: &[u8]) -> Result<Meaning<'_>, Malformed> {
        Meaning::of(&Record {
            kind,
            xid: Xid(7),
            durable: Lsn(0),
            link: LogLink::FIRST,
            next_link: LogLink::FIRST,
            payload,
        })
    }

    #[test]
    fn payloads_say_what_was_logged() {
        let time = 5_i64.to_le_bytes();
        for (kind, expected) in [
            (RecordKind::COMMIT, Status::Committed),
            (RecordKind::ABORT, Status::Aborted),
        ] {
            let Ok(Meaning::End { status, time_us }) = meaning(kind, &time) else {
                panic!("{kind:?}");
            };
            assert_eq!((status, time_us), (expected, 5));
        }
        let created = |payload: &[u8]| match meaning(RecordKind::CREATE_REL, payload) {
            Ok(Meaning::CreateRel(created)) => Some((created.rel, created.lifetime)),
            _ => None,
        };
        for lifetime in [Lifetime::Lasting, Lifetime::Temporary] {
            let rel = RelId(9);
            let payload = CreatedRelation { rel, lifetime }.encode();
            assert_eq!(created(&payload), Some((rel, lifetime)));
        }
        assert_eq!(created(&[9, 0, 0, 0]), Some((RelId(9), Lifetime::Lasting)));
        for malformed in [&[9, 0, 0][..], &[9, 0, 0, 0, 2], &[9, 0, 0, 0, 1, 1]] {
            assert_eq!(created(malformed), None);
        }
        let Ok(Meaning::StatusPage { number, content }) =
            meaning(RecordKind::STATUS_PAGE, &[3, 0, 0, 0, 1, 2])
        else {
            panic!("a page of the commit log");
        };
        assert_eq!((number, content), (3, &[1, 2][..]));
        let payload = [64_u64.to_le_bytes(), 4_u64.to_le_bytes()].concat();
        for (length, relations) in [(8, None), (16, Some(4))] {
            let Ok(Meaning::Checkpoint(checkpoint)) = meaning(RecordKind::CHECKPOINT, &payload[..length])
            else {
                panic!("a checkpoint");
            };
            let redo = Lsn(64);
            assert_eq!(checkpoint, CheckpointRecord { redo, relations });
        }
        assert!(matches!(
            meaning(RecordKind::NOTHING, &[1; 9]),
            Ok(Meaning::Nothing)
        ));
    }

    /// A payload that makes no sense is an error; if only standbys read it, it is one for them alone.
    #[test]
    fn malformed_payloads_are_errors() {
        for (kind, payload) in [
            (RecordKind::COMMIT, &[0; 7][..]),
            (RecordKind::ABORT, &[]),
            (RecordKind::CREATE_REL, &[0; 3]),
            (RecordKind::CREATE_REL, &[0; 5]),
            (RecordKind::STATUS_PAGE, &[0; 3]),
            (RecordKind::CHECKPOINT, &[0; 7]),
            (RecordKind::LENGTHS, &[0; 12]),
        ] {
            assert!(meaning(kind, payload).is_err(), "{kind:?} {payload:?}");
        }
        let Ok(Meaning::Change(change)) = meaning(RecordKind::CHANGE, &[0; 9]) else {
            panic!("a change");
        };
        assert!(change.parts().is_err());
        for (kind, payload) in [
            (RecordKind::RUNNING, &[0; 3][..]),
            (RecordKind::CLEANUP, &[1, 2, 3]),
        ] {
            let Ok(Meaning::ForStandbys(record)) = meaning(kind, payload) else {
                panic!("{kind:?}");
            };
            assert!(record.decode().is_err(), "{kind:?}");
        }
    }
}
