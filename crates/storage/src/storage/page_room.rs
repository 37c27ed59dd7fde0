//! The switch `page_room`. Its variants are described in `heap::prune` and `heap::replace`.

use clearway_machine::switch;

switch! {
    /// The place where an update on a full page finds room.
    pub enum PageRoomVariant = "page_room", best Replace, planned [] {
        /// The page is pruned, and what stays is moved together.
        Compact = "compact",
        /// The place of the version that the update before it has replaced; if that does not fit, as compact.
        Replace = "replace",
    }
    why {
        Compact: "The baseline. A simple-update takes 1.40 times the instructions that it takes under replace, with one \
            client."
            in "docs/mechanisms/page-room.md#numbers-that-matter";
        Replace: "1.19 and 1.07 times compact's commits with 64 clients (simple-update, tpcb-like), 1.05 and 1.03 with 16, \
            level with one."
            in "docs/mechanisms/page-room.md#numbers-that-matter";
    }
}
