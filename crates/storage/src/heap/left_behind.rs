//! Pruning what a row has left behind on a page.
//!
//! An update that finds no room takes another page, and no update of the row comes back. Its versions stay on the old page,
//! and index entries lead to them, so each look-up of the row walks through them until vacuum comes. A row that many
//! sessions update leaves a hundred of them on each page: a session that waits for the row keeps all that the others make
//! meanwhile.
//!
//! So a look-up that has passed at least [`LONG`] versions of a chain, and seen none of them, prunes the page, if the
//! first of them is removable. It holds no latch then. What stays is a line pointer, which the next look-up reads in
//! place of the chain.
//!
//! A look-up does not fail because the log has no room: then the chain stays. A standby prunes nothing: it follows its
//! primary's pages.
//!
//! Origin: PostgreSQL prunes pages in scans as well, those that are nearly full.

use crate::buffer::PageShared;
use crate::error::Result;
use crate::heap::TxnContext;
use crate::heap::layout::Tuple;
use crate::heap::prune::prune;
use crate::heap::visibility::{Removable, removable};

/// The least number of versions in vain that a look at the horizon is worth, and an exclusive latch.
pub(super) const LONG: usize = 16;

/// Prunes `page`, of which a look-up has passed the chain that begins at `first` in vain.
#[cold]
pub(super) fn prune_chain(ctx: &TxnContext<'_>, page: PageShared<'_>, first: u16) -> Result<()> {
    let storage = ctx.storage;
    if storage.is_standby() {
        return Ok(());
    }
    let horizon = storage.proc_array.horizon();
    let Some(first) = Tuple::at(page.hinted(), first) else {
        return Ok(());
    };
    if let Removable::No | Removable::OnceDurable(_) = removable(storage, &page, &first, horizon)? {
        return Ok(());
    }
    let id = page.page_id();
    drop(page);
    let pruned = storage.make_log_room().and_then(|()| {
        let mut page = storage.pin(id)?.into_exclusive();
        prune(storage, &mut page, horizon)
    });
    match pruned {
        Err(error) if !error.wants_room() => Err(error),
        _ => Ok(()),
    }
}
