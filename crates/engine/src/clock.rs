//! Wall-clock time as SQL sees it.

pub(crate) use clearway_storage::wall_clock::now_us;
