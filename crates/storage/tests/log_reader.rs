//! The log's tail may be torn, flipped or old: reading ends at the last whole record, and never panics. The
//! records behind that place tell whether the log was damaged there.

mod support;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use clearway_machine::Native;
use clearway_storage::Lsn;
use clearway_storage::disk::NativeDisk;
use clearway_storage::wal::link::LogLink;
use clearway_storage::wal::reader::{LogEnd, LogReader, search_behind};
use clearway_storage::wal::record::{self, RecordKind};
use clearway_storage::wal::segment_name::{FIRST_TIMELINE, segment_name};
use clearway_storage::wal::{LogDevice, LogOptions, SEGMENT_SIZE, SegmentFiles, Wal};
use clearway_txn::Xid;
use proptest::prelude::*;
use support::MemoryDevice;

const START: u64 = 64;

/// Inserts `payloads` and returns the device and the position after each record.
fn write_log(payloads: &[Vec<u8>]) -> (MemoryDevice, Vec<u64>) {
    let device = MemoryDevice::default();
    device.0.lock().unwrap().synced = START;
    let options = LogOptions {
        ring_size: 4096,
        ..LogOptions::default()
    };
    let wal = Wal::<Native, _>::new(device.clone(), options, Lsn(START), Lsn(START));
    let ends = payloads
        .iter()
        .map(|payload| wal.insert_any(RecordKind::CHANGE, Xid(7), payload).0)
        .collect();
    wal.flush(wal.reserved());
    (device, ends)
}

/// Bits of a record's header, each of which counts.
const HEADER_BITS: usize = 32 * 8;

/// A record and how far the log was durable when it was inserted.
struct Inserted {
    start: u64,
    durable: u64,
}

/// Inserts `payloads`, some of them followed by a flush, and the last one too.
fn write_log_in_flushes(payloads: &[Vec<u8>], flushes: &[bool]) -> (MemoryDevice, Vec<Inserted>) {
    let device = MemoryDevice::default();
    device.0.lock().unwrap().synced = START;
    let options = LogOptions {
        ring_size: 32 << 10,
        ..LogOptions::default()
    };
    let wal = Wal::<Native, _>::new(device.clone(), options, Lsn(START), Lsn(START));
    let mut records = Vec::new();
    for (payload, flush) in payloads.iter().zip(flushes) {
        records.push(Inserted {
            start: wal.reserved().0,
            durable: wal.flushed().0,
        });
        let end = wal.insert_any(RecordKind::CHANGE, Xid(7), payload);
        if *flush {
            wal.flush(end);
        }
    }
    wal.flush(wal.reserved());
    (device, records)
}

/// The payloads that can be read back, and where reading ended.
fn read_log(device: &MemoryDevice) -> (Vec<Vec<u8>>, u64) {
    let mut reader = LogReader::new(device, Lsn(START)).linked(Some(LogLink::FIRST));
    let mut payloads = Vec::new();
    while let Some((record, _)) = reader.next_record().unwrap() {
        assert_eq!((record.kind, record.xid), (RecordKind::CHANGE, Xid(7)));
        payloads.push(record.payload.to_vec());
    }
    (payloads, reader.position().0)
}

fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 1..40)
}

proptest! {
    #[test]
    fn what_was_inserted_is_read_back(payloads in payloads()) {
        let (device, ends) = write_log(&payloads);
        let (read, end) = read_log(&device);
        prop_assert_eq!(read, payloads);
        prop_assert_eq!(end, ends[ends.len() - 1]);
    }

    #[test]
    fn a_torn_tail_ends_the_log_at_the_last_whole_record(payloads in payloads(), cut in any::<prop::sample::Index>()) {
        let (device, ends) = write_log(&payloads);
        let length = device.0.lock().unwrap().bytes.len();
        let cut = START as usize + cut.index(length - START as usize);
        device.0.lock().unwrap().bytes.truncate(cut);
        let whole = ends.iter().filter(|&&end| end <= cut as u64).count();
        let (read, end) = read_log(&device);
        prop_assert_eq!(&read[..], &payloads[..whole]);
        prop_assert_eq!(end, if whole == 0 { START } else { ends[whole - 1] });
    }

    #[test]
    fn a_flipped_bit_ends_the_log_before_its_record(
        payloads in payloads(),
        at in any::<prop::sample::Index>(),
        bit in 0..8u32,
    ) {
        let (device, ends) = write_log(&payloads);
        let length = device.0.lock().unwrap().bytes.len();
        let at = START as usize + at.index(length - START as usize);
        device.0.lock().unwrap().bytes[at] ^= 1 << bit;
        let hit = ends.iter().filter(|&&end| end <= at as u64).count();
        let start = if hit == 0 { START } else { ends[hit - 1] };
        // The zeros after the payload belong to no checksum; they carry nothing.
        let padding = at as u64 >= start + 32 + payloads[hit].len() as u64;
        let (read, _) = read_log(&device);
        prop_assert_eq!(&read[..], &payloads[..if padding { payloads.len() } else { hit }]);
    }

    /// The last flush is torn: of its sectors any may be missing. Whole records behind the hole are no proof of damage.
    #[test]
    fn a_torn_flush_is_not_damage(
        payloads in payloads(),
        flushes in prop::collection::vec(any::<bool>(), 40),
        missing in prop::collection::vec(any::<bool>(), 64),
    ) {
        let (device, records) = write_log_in_flushes(&payloads, &flushes);
        let durable = records.last().unwrap().durable;
        {
            let bytes = &mut device.0.lock().unwrap().bytes;
            for at in durable as usize..bytes.len() {
                if missing[at / 512 % missing.len()] {
                    bytes[at] = 0;
                }
            }
        }
        let (_, end) = read_log(&device);
        prop_assert!(end >= durable);
        prop_assert_eq!(search_behind(&device, Lsn(end), 1 << 20).unwrap().damage, None);
    }

    /// One bit of the log is flipped. The damage is proven if a later record was inserted when the damaged
    /// record was durable.
    #[test]
    fn damage_is_proven_by_a_record_inserted_after_a_flush(
        payloads in payloads(),
        flushes in prop::collection::vec(any::<bool>(), 40),
        hit in any::<prop::sample::Index>(),
        bit in 0..HEADER_BITS,
    ) {
        let (device, records) = write_log_in_flushes(&payloads, &flushes);
        let hit = hit.index(records.len());
        let start = records[hit].start;
        device.0.lock().unwrap().bytes[start as usize + bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(read_log(&device).1, start);
        let witness = records[hit + 1..].iter().find(|record| record.durable > start);
        let proof = search_behind(&device, Lsn(start), 1 << 20).unwrap().damage;
        prop_assert_eq!(proof.map(|proof| (proof.record.0, proof.durable.0)), witness.map(|w| (w.start, w.durable)));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let device = MemoryDevice::default();
        device.write(0, &bytes).unwrap();
        let mut reader = LogReader::new(&device, Lsn(0));
        while reader.next_record().unwrap().is_some() {}
    }
}

#[test]
fn records_of_an_earlier_life_of_a_segment_are_not_read() {
    let (old, _) = write_log(&[vec![1; 100], vec![2; 100]]);
    let (new, ends) = write_log(&[vec![3; 100]]);
    // A recycled segment: what follows the new log's end is the old log's content, from other positions.
    let stale = old.0.lock().unwrap().bytes[START as usize..].to_vec();
    new.write(ends[0], &stale).unwrap();
    assert_eq!(read_log(&new), (vec![vec![3; 100]], ends[0]));
}

/// Alice's log and Bob's differ in the first record alone. The rest of Bob's, put behind Alice's first record, is whole and in
/// its place, and is no part of her log.
#[test]
fn a_log_ends_where_another_one_was_put_behind_it() {
    let behind = [vec![2; 100], vec![3; 30]];
    let (alice, ends) = write_log(&[&[vec![1; 100]][..], &behind].concat());
    let (bob, _) = write_log(&[&[vec![9; 100]][..], &behind].concat());
    assert_eq!(read_log(&alice).0.len(), 3);
    let rest = bob.0.lock().unwrap().bytes[ends[0] as usize..].to_vec();
    alice.write(ends[0], &rest).unwrap();
    let mut reader = LogReader::new(&alice, Lsn(START));
    assert!(reader.next_record().unwrap().is_some());
    assert!(reader.next_record().unwrap().is_none());
    assert_eq!(
        (reader.end(), reader.position()),
        (LogEnd::Unlinked, Lsn(ends[0]))
    );
    // A reader that begins there has nothing to compare the first link with.
    let mut reader = LogReader::new(&alice, Lsn(ends[0]));
    assert!(reader.next_record().unwrap().is_some() && reader.next_record().unwrap().is_some());
}

/// The header has the lower half of the position: its checksum covers the rest.
#[test]
fn a_record_is_not_taken_for_one_32_gib_further_on() {
    const POSITION: u64 = 1 << 30;
    let header = record::header(RecordKind::NOTHING, Xid::INVALID, POSITION, POSITION, 0, 0);
    assert!(matches!(
        record::decode(&header, POSITION),
        record::Decoded::Record(..)
    ));
    assert_eq!(
        record::decode(&header, POSITION + (8 << 32)),
        record::Decoded::End
    );
}

/// A log of these segments, which hold zeros.
fn segments(dir: &Path, numbers: &[u64]) -> SegmentFiles {
    for number in numbers {
        let segment = File::create(dir.join(segment_name(FIRST_TIMELINE, *number))).unwrap();
        segment.set_len(SEGMENT_SIZE).unwrap();
    }
    SegmentFiles::open(Arc::new(NativeDisk), dir.to_owned(), false).unwrap()
}

/// The proof that is found behind a hole at `hole`, when all that is left is an empty record at `position` which says
/// that the log was durable before it.
fn proof_left_at(log: &SegmentFiles, hole: u64, position: u64) -> Option<u64> {
    let header = record::header(
        RecordKind::NOTHING,
        Xid::INVALID,
        position,
        position,
        0,
        crc32c::crc32c(&[]),
    );
    log.write(position, &header).unwrap();
    let proof = search_behind(log, Lsn(hole), 4 * SEGMENT_SIZE).unwrap().damage;
    log.write(position, &[0; record::HEADER]).unwrap();
    proof.map(|proof| {
        assert_eq!(proof.durable, Lsn(position));
        proof.record.0
    })
}

/// The hole may be long, and the proof may begin at any place behind it: the search leaves none out where it reads the
/// next part of the log, or passes over zeros.
#[test]
fn a_proof_is_found_at_any_place_behind_the_hole() {
    const PART: u64 = 256 << 10;
    let dir = tempfile::tempdir().unwrap();
    let log = segments(dir.path(), &[0, 1]);
    let hole = SEGMENT_SIZE - 3 * PART;
    let first = hole + 8;
    let edges = (0..6).flat_map(|part| (0..10).map(move |step| first + part * PART + step * 8 - 32));
    let blocks = (1..4).map(|block| first + block * 4096 + PART);
    let ends = [2 * SEGMENT_SIZE - 4096, 2 * SEGMENT_SIZE - record::HEADER as u64];
    for position in edges
        .chain(blocks)
        .chain(ends)
        .filter(|&position| position >= first)
    {
        assert_eq!(proof_left_at(&log, hole, position), Some(position));
    }
}

/// Segments that are missing behind the hole do not hide the proof in a later one, wherever the log ends before them.
#[test]
fn a_proof_is_found_behind_missing_segments() {
    let dir = tempfile::tempdir().unwrap();
    let log = segments(dir.path(), &[1, 4]);
    for hole in [
        SEGMENT_SIZE + 64,
        2 * SEGMENT_SIZE - 8,
        2 * SEGMENT_SIZE,
        3 * SEGMENT_SIZE + 4096,
    ] {
        for position in [4 * SEGMENT_SIZE, 4 * SEGMENT_SIZE + 512] {
            assert_eq!(
                proof_left_at(&log, hole, position),
                Some(position),
                "behind {hole}"
            );
        }
    }
}

/// The durable position is known of every record, not only of one that follows a flush.
#[test]
fn a_record_tells_how_far_the_log_was_durable() {
    const POSITION: u64 = 1 << 30;
    for distance in [0, 8, 4_096, 8 << 20] {
        let durable = POSITION - distance;
        let header = record::header(RecordKind::NOTHING, Xid::INVALID, POSITION, durable, 0, 0);
        match record::decode(&header, POSITION) {
            record::Decoded::Record(record, _) => assert_eq!(record.durable, Lsn(durable)),
            other => panic!("{distance}: {other:?}"),
        }
    }
}
