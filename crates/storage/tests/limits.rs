//! The longest rows and keys: what is as long as may be is stored, and one byte more is refused before anything changes.

#[path = "support/chosen.rs"]
mod chosen;

use clearway_storage::btree::{BTree, Direction, InsertOutcome, KEY_MAX};
use clearway_storage::heap::{Heap, PieceWriter, Pieces, ROW_MAX, Tid, TxnContext, UpdateOutcome};
use clearway_storage::{Reader, Storage, StorageError};
use clearway_txn::Snapshot;

/// Runs `test` as one transaction, on a new database.
fn with_session(test: impl FnOnce(&TxnContext<'_>)) {
    let dir = tempfile::tempdir().unwrap();
    let options = chosen::small_database(4);
    let (storage, _) = Storage::open(dir.path(), options).unwrap();
    let proc = storage.proc_array.attach().unwrap();
    let xid = storage.assign_xid(proc).unwrap();
    let mut snapshot = Snapshot::default();
    storage.proc_array.snapshot(proc, &mut snapshot);
    test(&TxnContext {
        storage: &storage,
        proc,
        xid: Some(xid),
        command: 0,
        reader: Reader::of_no_answer(&snapshot),
        changes: None,
    });
    storage.commit(proc, xid, true).unwrap();
    storage.stop_threads();
}

#[track_caller]
fn assert_too_large<T: std::fmt::Debug>(outcome: Result<T, StorageError>, size: usize, max: usize) {
    match outcome {
        Err(StorageError::TooLarge {
            size: found,
            max: most,
            ..
        }) => assert_eq!((found, most), (size, max)),
        other => panic!("{size} bytes: {other:?}"),
    }
}

#[test]
fn a_row_fills_a_page_at_most() {
    with_session(|ctx| {
        let heap = Heap::new(ctx.storage.create_rel().unwrap().0);
        let (longest, longer) = (vec![7; ROW_MAX], vec![7; ROW_MAX + 1]);
        for rows in [&[&longest[..]][..], &[&longest, &longest]] {
            assert_eq!(
                heap.insert_many(ctx, rows, &mut ctx.storage.write_ring())
                    .unwrap()
                    .len(),
                rows.len()
            );
        }
        assert_too_large(heap.insert(ctx, &longer), ROW_MAX + 1, ROW_MAX);
        assert_too_large(
            heap.insert_many(ctx, &[b"a row", &longer], &mut ctx.storage.write_ring()),
            ROW_MAX + 1,
            ROW_MAX,
        );
        // Beside a short row the longest has no room: it goes to another page.
        let tid = heap.insert(ctx, b"a row").unwrap();
        let later = TxnContext { command: 1, ..*ctx };
        assert_too_large(heap.update(&later, tid, &longer, true), ROW_MAX + 1, ROW_MAX);
        let outcome = heap.update(&later, tid, &longest, true).unwrap();
        assert!(matches!(outcome, UpdateOutcome::Updated { .. }), "{outcome:?}");
    });
}

#[test]
fn a_key_has_a_longest_length() {
    with_session(|ctx| {
        let tid = Tid { block: 1, slot: 1 };
        let rel = ctx.storage.create_rel().unwrap();
        BTree::create(ctx.storage, rel).unwrap();
        let tree = BTree::new(rel.0);
        for length in [0, KEY_MAX] {
            assert_eq!(
                tree.insert(ctx, &vec![7; length], tid, None).unwrap(),
                InsertOutcome::Inserted
            );
        }
        assert_too_large(
            tree.insert(ctx, &[7; KEY_MAX + 1], tid, None),
            KEY_MAX + 1,
            KEY_MAX,
        );
        let load = |length: usize| {
            let rel = ctx.storage.create_rel().unwrap();
            BTree::create(ctx.storage, rel).unwrap();
            BTree::bulk_load(ctx.storage, rel, [(vec![7; length], tid)])
        };
        load(KEY_MAX).unwrap();
        assert_too_large(load(KEY_MAX + 1), KEY_MAX + 1, KEY_MAX);
    });
}

/// A page of a tree that is made at once has room for its upper bound, which is as long as the next key.
#[test]
fn keys_of_each_length_can_be_loaded() {
    with_session(|ctx| {
        for lengths in [&[KEY_MAX][..], &[500], &[20], &[8, KEY_MAX, 300, 2_000, 60]] {
            let key = |number: u32| {
                let mut key = number.to_be_bytes().to_vec();
                key.resize(lengths[number as usize % lengths.len()], 7);
                key
            };
            let keys: Vec<Vec<u8>> = (0..400).map(key).collect();
            let rel = ctx.storage.create_rel().unwrap();
            BTree::create(ctx.storage, rel).unwrap();
            let tids = (0..).map(|block| Tid { block, slot: 1 });
            BTree::bulk_load(ctx.storage, rel, keys.iter().cloned().zip(tids)).unwrap();
            let mut cursor = BTree::new(rel.0).range(&[], None, Direction::Forward);
            let mut found = Vec::new();
            while cursor.next_entries(ctx.storage, 100, &mut found).unwrap() {}
            assert!(
                found.iter().map(|(key, _)| key).eq(&keys),
                "{lengths:?}: {} keys",
                found.len()
            );
        }
    });
}

/// Strings in pieces, at the lengths where a piece or a directory is full, and pointers that lead elsewhere (P4 of
/// `pieces`).
///
/// Caught mutation: `row_of` without its look at the header.
#[test]
fn a_string_in_pieces_has_any_length() {
    with_session(|ctx| {
        let heap = Heap::new(ctx.storage.create_rel().unwrap().0);
        let bytes: Vec<u8> = (0..11_100_000u32)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        // 17 bytes in front of each piece; a directory leads to 1,350 of them.
        let piece = ROW_MAX - 17;
        let read = |pieces: &Pieces| {
            let mut read = Vec::new();
            let take = |piece: &[u8]| {
                read.extend_from_slice(piece);
                true
            };
            heap.read_pieces(ctx.storage, pieces, &|| false, take)
                .map(|()| read)
        };
        let mut written = Vec::new();
        for (number, length) in [0, 1, piece, piece + 1, 1_350 * piece, 1_350 * piece + 1]
            .into_iter()
            .enumerate()
        {
            let mut writer = PieceWriter::new(heap, *ctx, number as u32);
            bytes[..length]
                .chunks(70_000)
                .for_each(|chunk| writer.write(chunk).unwrap());
            let pieces = writer.finish().unwrap();
            assert_eq!(pieces.length as usize, length);
            assert!(read(&pieces).unwrap() == bytes[..length], "{length} bytes");
            written.push(pieces);
        }
        let rows: u64 = written.iter().map(Pieces::row_count).sum();
        assert_eq!(rows, 1 + 1 + 1 + 3 + 1_351 + 1_353);
        let [one, two, many] = [written[2], written[3], written[5]];
        for wrong in [
            Pieces {
                first: one.first,
                ..two
            },
            Pieces {
                owner: one.owner,
                ..two
            },
            Pieces {
                length: two.length - 1,
                ..two
            },
            Pieces {
                length: two.length,
                ..many
            },
            Pieces {
                first: Tid {
                    block: 1 << 30,
                    slot: 1,
                },
                ..one
            },
            Pieces {
                first: Tid { block: 0, slot: 0 },
                ..one
            },
        ] {
            let found = read(&wrong);
            assert!(
                matches!(found, Err(StorageError::Inconsistent { .. })),
                "{wrong:?}"
            );
        }
        let later = TxnContext { command: 1, ..*ctx };
        assert_eq!(heap.delete_pieces(&later, &two, &|| false).unwrap(), 3);
        assert!(
            heap.delete_pieces(&later, &two, &|| false).is_err(),
            "deleted twice"
        );
        heap.withdraw_pieces(ctx, &many).unwrap();
        assert!(matches!(
            heap.read_pieces(ctx.storage, &one, &|| true, |_| true),
            Err(StorageError::StopAsked)
        ));
    });
}
