//! The record of a relation that is made.

use smallvec::SmallVec;

use crate::page::RelId;

/// The byte behind the number of a temporary relation.
const TEMPORARY: u8 = 1;

/// A relation that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CreatedRelation {
    pub(crate) rel: RelId,
    pub(crate) lifetime: Lifetime,
}

/// The longest time that a relation may last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// Until it is dropped.
    Lasting,
    /// No longer than a session: standbys, which have no such session, do without it.
    Temporary,
}

impl CreatedRelation {
    /// The payload: the number, and a byte behind it if the relation is temporary.
    pub(crate) fn encode(self) -> SmallVec<[u8; 5]> {
        let mut payload = SmallVec::from_slice(&self.rel.0.to_le_bytes());
        if self.lifetime == Lifetime::Temporary {
            payload.push(TEMPORARY);
        }
        payload
    }

    /// `None` if it makes no sense.
    pub(crate) fn decode(payload: &[u8]) -> Option<CreatedRelation> {
        let (number, rest) = payload.split_first_chunk()?;
        let lifetime = match rest {
            [] => Lifetime::Lasting,
            [TEMPORARY] => Lifetime::Temporary,
            _ => return None,
        };
        Some(CreatedRelation {
            rel: RelId(u32::from_le_bytes(*number)),
            lifetime,
        })
    }
}
