//! Byte strings longer than a page, in pieces: ordinary rows of a heap of their own.
//!
//! A string is written once, read as a whole any number of times, and deleted as a whole. Its pieces are rows that its
//! transaction inserts and that the transaction which deletes it deletes, so a crash, a rollback, a savepoint, vacuum and
//! a standby treat them as they treat every row. Nothing but a row elsewhere that has the *pointer* leads to them.
//!
//! ```text
//! pointer ──► piece                                      up to PIECE_MAX bytes
//! pointer ──► directory ──next──► directory              more
//!               │ │ │               │ │
//!               ▼ ▼ ▼               ▼ ▼
//!             piece piece piece   piece piece
//! ```
//!
//! Every row begins with its kind, the string's owner (the transaction, and a number among the strings that it has
//! written) and its number in the string. A directory goes on with the place of the next one and those of its pieces.
//!
//! # Rules
//! - P1: an owner is never used again. Transactions' numbers are not, and a transaction counts its strings.
//! - P2: a row that has the pointer is deleted by the transaction that deletes the string, and no earlier than that. So
//!   a snapshot that sees the row finds the string: the horizon that keeps the row's version for a snapshot keeps the
//!   pieces too (R4 of [`heap`](super)), for they are deleted by the same transaction.
//! - P3: pieces are therefore read without asking whether the snapshot sees them. It may not: a statement of READ
//!   COMMITTED that follows a row to its newest version meets a pointer of a later transaction than its snapshot.
//! - P4: a piece that does not say that it is the one wanted is damage (XX002), never another string's bytes.
//!
//! A tree over owner and number, as PostgreSQL has it, would lead to the pieces too. It would cost a second file for each
//! table, an entry for each piece, and a pass of vacuum over it; and nothing ever looks for a piece by anything but its
//! pointer, since pieces never move. The directories give any part of a string in one step, like a tree.
//!
//! Origin: PostgreSQL's TOAST, for the pieces as ordinary rows; directories of places in their stead of the index are
//! ours.

use clearway_txn::Xid;

use crate::error::{Result, StorageError};
use crate::heap::layout::Tuple;
use crate::heap::{DeleteOutcome, Heap, ROW_MAX, Tid, TxnContext};
use crate::page::PageId;
use crate::storage::Storage;

/// Bytes in front of a row's own: kind, transaction, number of the string, number of the row.
const HEADER: usize = 1 + 8 + 4 + 4;
/// The most bytes of a string that one row has.
const PIECE_MAX: usize = ROW_MAX - HEADER;
/// Bytes of a place.
const PLACE: usize = 6;
/// The most pieces that a directory leads to.
const PLACES_MAX: usize = (PIECE_MAX - PLACE) / PLACE;

const DATA: u8 = 1;
const DIRECTORY: u8 = 2;

/// The place of no row: line pointers count from 1.
const NOWHERE: Tid = Tid { block: 0, slot: 0 };

/// The owner of a string in pieces (P1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PiecesOwner {
    /// The transaction that has written it.
    pub writer: Xid,
    /// Its number among those of the transaction.
    pub number: u32,
}

/// A string in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pieces {
    /// Its owner.
    pub owner: PiecesOwner,
    /// Its length, in bytes.
    pub length: u32,
    /// The row that the pointer leads to.
    pub first: Tid,
}

impl Pieces {
    /// Number of its rows.
    pub fn row_count(&self) -> u64 {
        let pieces = (self.length as usize).div_ceil(PIECE_MAX).max(1);
        let directories = match pieces {
            1 => 0,
            pieces => pieces.div_ceil(PLACES_MAX),
        };
        (pieces + directories) as u64
    }
}

/// Writes a string whose bytes come one after the other.
#[derive(Debug)]
pub struct PieceWriter<'w> {
    heap: Heap,
    ctx: TxnContext<'w>,
    owner: PiecesOwner,
    /// The row that is being filled, with its header.
    row: Vec<u8>,
    places: Vec<Tid>,
    length: u64,
}

impl<'w> PieceWriter<'w> {
    /// Begins a string in the heap of pieces. The transaction has an xid.
    pub fn new(heap: Heap, ctx: TxnContext<'w>, number: u32) -> PieceWriter<'w> {
        PieceWriter {
            heap,
            owner: PiecesOwner {
                writer: ctx.writing_xid(),
                number,
            },
            ctx,
            row: Vec::with_capacity(ROW_MAX),
            places: Vec::new(),
            length: 0,
        }
    }

    /// Appends bytes.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.length += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.row.len() == ROW_MAX {
                self.store_piece()?;
            }
            if self.row.is_empty() {
                header(DATA, self.owner, self.places.len() as u32, &mut self.row);
            }
            let (now, rest) = bytes.split_at(bytes.len().min(ROW_MAX - self.row.len()));
            self.row.extend_from_slice(now);
            bytes = rest;
        }
        Ok(())
    }

    fn store_piece(&mut self) -> Result<()> {
        let place = self.heap.insert(&self.ctx, &self.row)?;
        self.places.push(place);
        self.row.clear();
        Ok(())
    }

    /// Ends the string.
    pub fn finish(mut self) -> Result<Pieces> {
        if !self.row.is_empty() || self.places.is_empty() {
            if self.row.is_empty() {
                header(DATA, self.owner, 0, &mut self.row);
            }
            self.store_piece()?;
        }
        let first = match &self.places[..] {
            [only] => *only,
            places => {
                // The last directory first: each has the place of the next.
                let mut next = NOWHERE;
                for (number, places) in places.chunks(PLACES_MAX).enumerate().rev() {
                    self.row.clear();
                    header(DIRECTORY, self.owner, number as u32, &mut self.row);
                    push_place(next, &mut self.row);
                    places.iter().for_each(|place| push_place(*place, &mut self.row));
                    next = self.heap.insert(&self.ctx, &self.row)?;
                }
                next
            }
        };
        let length = u32::try_from(self.length).map_err(|_| StorageError::TooLarge {
            what: "value",
            size: usize::try_from(self.length).unwrap_or(usize::MAX),
            max: u32::MAX as usize,
        })?;
        Ok(Pieces {
            owner: self.owner,
            length,
            first,
        })
    }
}

fn header(kind: u8, owner: PiecesOwner, number: u32, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&owner.writer.0.to_le_bytes());
    out.extend_from_slice(&owner.number.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
}

fn push_place(place: Tid, out: &mut Vec<u8>) {
    out.extend_from_slice(&place.block.to_le_bytes());
    out.extend_from_slice(&place.slot.to_le_bytes());
}

fn places_in(bytes: &[u8]) -> impl Iterator<Item = Tid> + '_ {
    bytes.chunks_exact(PLACE).map(|place| Tid {
        block: u32::from_le_bytes([place[0], place[1], place[2], place[3]]),
        slot: u16::from_le_bytes([place[4], place[5]]),
    })
}

impl Heap {
    /// The bytes of the row version at a place, whether or not any snapshot sees it; `None` if there is none.
    pub fn bytes_at(&self, storage: &Storage, tid: Tid, out: &mut Vec<u8>) -> Result<Option<()>> {
        let id = PageId {
            rel: self.rel,
            block: tid.block,
        };
        let page = storage.pin(id)?.into_shared();
        let tuple = Tuple::at(page.hinted(), tid.slot);
        Ok(tuple.map(|tuple| {
            out.clear();
            out.extend_from_slice(tuple.row());
        }))
    }

    /// Reads a string: `take` gets its bytes, one piece after the other (P3), and says `false` if they are not what they
    /// should be. `stop` is asked before each piece and ends the work early.
    pub fn read_pieces(
        &self,
        storage: &Storage,
        pieces: &Pieces,
        stop: &dyn Fn() -> bool,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        let mut row = Vec::new();
        let mut length = 0;
        self.each_row_of(storage, pieces, |kind, place, number| {
            if kind == DATA {
                ask(stop)?;
                self.row_of(storage, pieces, place, (DATA, number), &mut row)?;
                length += row.len() - HEADER;
                if !take(&row[HEADER..]) {
                    return Err(self.damaged(place.block, "a piece of a value is not of its form"));
                }
            }
            Ok(())
        })?;
        match length == pieces.length as usize {
            true => Ok(()),
            false => Err(self.damaged(pieces.first.block, "a value in pieces has another length")),
        }
    }

    /// Deletes a string; the caller has deleted the row that has its pointer, or replaced it by one without (P2).
    /// `stop` is asked before each row and ends the work early.
    pub fn delete_pieces(
        &self,
        ctx: &TxnContext<'_>,
        pieces: &Pieces,
        stop: &dyn Fn() -> bool,
    ) -> Result<u64> {
        let mut count = 0;
        self.each_row_of(ctx.storage, pieces, |kind, place, number| {
            ask(stop)?;
            // P4.
            self.row_of(ctx.storage, pieces, place, (kind, number), &mut Vec::new())?;
            match self.delete(ctx, place)? {
                DeleteOutcome::Deleted => count += 1,
                _ => {
                    let what = "a piece of a value was deleted before its row";
                    return Err(self.damaged(place.block, what));
                }
            }
            Ok(())
        })?;
        Ok(count)
    }

    /// Takes back a string that this command has written, and to which no row has the pointer.
    pub fn withdraw_pieces(&self, ctx: &TxnContext<'_>, pieces: &Pieces) -> Result<()> {
        self.each_row_of(ctx.storage, pieces, |kind, place, number| {
            self.row_of(ctx.storage, pieces, place, (kind, number), &mut Vec::new())?;
            self.withdraw(ctx, place)
        })
    }

    /// Calls `visit` for each row of a string: its kind, its place, and its number among those of its kind.
    fn each_row_of(
        &self,
        storage: &Storage,
        pieces: &Pieces,
        mut visit: impl FnMut(u8, Tid, u32) -> Result<()>,
    ) -> Result<()> {
        if pieces.length as usize <= PIECE_MAX {
            return visit(DATA, pieces.first, 0);
        }
        let mut directory = Vec::new();
        let (mut next, mut number, mut piece) = (pieces.first, 0, 0);
        while next != NOWHERE {
            self.row_of(storage, pieces, next, (DIRECTORY, number), &mut directory)?;
            visit(DIRECTORY, next, number)?;
            number += 1;
            let mut places = places_in(&directory[HEADER..]);
            next = places.next().unwrap_or(NOWHERE);
            for place in places {
                visit(DATA, place, piece)?;
                piece += 1;
            }
        }
        Ok(())
    }

    /// The row at a place, which is this one of the string (P4).
    fn row_of(
        &self,
        storage: &Storage,
        pieces: &Pieces,
        place: Tid,
        (kind, number): (u8, u32),
        row: &mut Vec<u8>,
    ) -> Result<()> {
        let mut wanted = Vec::with_capacity(HEADER);
        header(kind, pieces.owner, number, &mut wanted);
        let is_there = place.block < storage.block_count(self.rel)?
            && self.bytes_at(storage, place, row)?.is_some()
            && row.starts_with(&wanted);
        match is_there {
            true => Ok(()),
            false => Err(self.damaged(place.block, "a piece of a value is missing")),
        }
    }

    #[cold]
    fn damaged(&self, block: u32, problem: &str) -> StorageError {
        StorageError::Inconsistent {
            rel: self.rel.0,
            block,
            problem: problem.to_owned(),
        }
    }
}

/// An error if the work is to end.
fn ask(stop: &dyn Fn() -> bool) -> Result<()> {
    match stop() {
        true => Err(StorageError::StopAsked),
        false => Ok(()),
    }
}
