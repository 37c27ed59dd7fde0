//! The bodies of the fuzz targets, apart from libFuzzer so that an ordinary test can run them over seeded input.
//!
//! ```text
//! cargo test -p clearway-server --test fuzz_seeded     # seeded random input: part of scripts/test
//! cargo fuzz run -s none wire_decoder                 # guided by coverage, until stopped; works on stable
//! cargo fuzz run -s none log_reader
//! cargo fuzz run -s none sasl
//! cargo fuzz run -s none login
//! ```
//!
//! Each body may only return or panic, and panicking is a finding.

pub mod login;

use std::io;

use clearway_server::replication::message;
use clearway_server::wire::sasl::{ClientFinal, ClientFirst, initial_response};
use clearway_server::wire::{backend, frame, frontend, startup};
use clearway_storage::Lsn;
use clearway_storage::wal::LogDevice;
use clearway_storage::wal::link::LogLink;
use clearway_storage::wal::reader::LogReader;
use clearway_storage::wal::record::{self, RecordKind};
use clearway_txn::Xid;

/// Reads `data` as what a client sends: as a first packet, then as a stream of frames. What is decoded is looked at to
/// its last byte, and frames must be found alike however the stream is cut.
pub fn wire_decoder(data: &[u8]) {
    if let Ok(startup::Split::Packet(startup::Startup::Session { parameters, .. }, length)) =
        startup::split(data)
    {
        assert!(length <= data.len());
        for (_, value) in &parameters {
            let _ = startup::parse_options(value);
        }
    }
    let mut rest = data;
    while let Ok(frame::Split::Frame(found)) = frame::split(rest) {
        assert!(found.body.end <= rest.len() && found.body.start == frame::HEADER_BYTES);
        for cut in [0, 1, 4, found.body.end - 1] {
            if cut < found.body.end {
                assert!(matches!(
                    frame::split(&rest[..cut]),
                    Ok(frame::Split::NeedMore(_))
                ));
            }
        }
        if let Ok(message) = frontend::decode(found.kind, &rest[found.body.clone()]) {
            look_at(message);
        }
        rest = &rest[found.body.end..];
    }
    // The same bytes as a server's, as a standby reads them.
    let mut rest = data;
    while let Ok(frame::Split::Frame(found)) = backend::split(rest) {
        let body = &rest[found.body.clone()];
        if let Ok(backend::Message::CopyData(piece)) = backend::decode(found.kind, body) {
            let _ = message::decode_sent(piece);
            let _ = message::decode(piece);
        }
        rest = &rest[found.body.end..];
    }
}

fn look_at(message: frontend::Message<'_>) {
    match message {
        frontend::Message::Parse(parse) => assert_eq!(parse.types().count(), parse.types().len()),
        frontend::Message::Bind(bind) => {
            assert_eq!(bind.parameters().count(), bind.parameter_count());
            let text = bind
                .parameters()
                .flatten()
                .filter(|bytes| frontend::text_parameter(bytes).is_ok())
                .count();
            assert!(text <= bind.parameter_count());
            for place in 0..bind.parameter_count() + 1 {
                let _ = (
                    bind.formats.is_binary(place),
                    bind.result_formats.is_binary(place),
                );
            }
            assert!(bind.formats.codes().all(|code| matches!(code, 0 | 1)));
        }
        _ => {}
    }
}

/// Reads `data` as a client's messages of SASL: the parts of a message that is read, put together, are that message.
pub fn sasl(data: &[u8]) {
    if let Ok((mechanism, text)) = initial_response(data) {
        let length = (text.len() as u32).to_be_bytes();
        let again = [mechanism.as_bytes(), b"\0", &length[..], text.as_bytes()].concat();
        assert_eq!(again, data);
        sasl_texts(text);
    }
    if let Ok(text) = std::str::from_utf8(data) {
        sasl_texts(text);
    }
}

fn sasl_texts(text: &str) {
    if let Ok(first) = ClientFirst::parse(text) {
        assert_eq!([first.header, first.bare].concat(), text);
        assert!(first.bare.starts_with("n=") && first.bare.contains(&format!(",r={}", first.nonce)));
        assert!(!first.nonce.is_empty() && !first.nonce.contains(','));
    }
    if let Ok(last) = ClientFinal::parse(text) {
        assert_eq!([last.without_proof, ",p=", last.proof].concat(), text);
        let front = format!("c={},r={}", last.binding, last.nonce);
        assert!(last.without_proof.starts_with(&front), "{last:?}");
        assert!(!last.proof.contains(','));
    }
}

/// A log in memory that begins at position 0.
#[derive(Debug)]
struct Memory(Vec<u8>);

impl LogDevice for Memory {
    fn make_room(&self, _position: u64) -> io::Result<()> {
        Ok(())
    }
    fn write(&self, _position: u64, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }
    fn sync(&self, _from: u64, _to: u64) -> io::Result<()> {
        Ok(())
    }
    fn read(&self, position: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let there = usize::try_from(position)
            .ok()
            .and_then(|start| self.0.get(start..))
            .unwrap_or(&[]);
        let count = there.len().min(bytes.len());
        bytes[..count].copy_from_slice(&there[..count]);
        Ok(count)
    }
    fn forget_before(&self, _position: u64) -> io::Result<()> {
        Ok(())
    }
}

/// How many records can be read, and where they end.
fn read_all(log: Vec<u8>) -> (usize, u64) {
    let length = log.len() as u64;
    let device = Memory(log);
    let mut reader = LogReader::new(&device, Lsn(0)).linked(Some(LogLink::FIRST));
    let mut count = 0;
    let mut end = 0;
    while let Some((_, next)) = reader.next_record().expect("memory has no errors") {
        assert!(
            next.0 > end && next.0 <= length.next_multiple_of(8),
            "{} after {end}, of {length}",
            next.0
        );
        end = next.0;
        count += 1;
    }
    assert_eq!(reader.position().0, end);
    (count, end)
}

/// Reads `data` as a log; then a sound log with `data` in its payloads, whole, cut off and with one bit turned: what
/// comes before the damage is read, and nothing from there on.
pub fn log_reader(data: &[u8]) {
    read_all(data.to_vec());

    let mut log = Vec::new();
    let mut ends = vec![0];
    for (number, payload) in data.chunks(37).enumerate() {
        append(&mut log, number as u64 + 1, payload);
        ends.push(log.len());
    }
    record::enter_links(&mut log, LogLink::FIRST);
    let sound = ends.len() - 1;
    assert_eq!(read_all(log.clone()), (sound, log.len() as u64));
    let [first, second, ..] = *data else { return };
    if log.is_empty() {
        return;
    }
    let place = usize::from(u16::from_le_bytes([first, second])) % log.len();
    let before = ends.iter().filter(|end| **end <= place).count() - 1;
    let cut = read_all(log[..place].to_vec());
    assert!(
        cut.0 == before || cut.0 == before + 1,
        "cut at {place}: {cut:?}, {before} were whole"
    );
    log[place] ^= 1 << (first % 8);
    let turned = read_all(log);
    // A bit turned in the zeros after a payload changes nothing; anywhere else it ends the log at its record.
    assert!(
        turned.0 == before || turned.0 == sound,
        "turned at {place}: {turned:?}, {before} came before"
    );
}

fn append(log: &mut Vec<u8>, xid: u64, payload: &[u8]) {
    let position = log.len() as u64;
    let header = record::header(
        RecordKind::CHANGE,
        Xid(xid),
        position,
        position,
        payload.len(),
        crc32c::crc32c(payload),
    );
    log.extend_from_slice(&header);
    log.extend_from_slice(payload);
    log.resize((position as usize) + record::size(payload.len()), 0);
}
