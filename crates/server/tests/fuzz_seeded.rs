//! The bodies of the fuzz targets over seeded random input. `SEED=` replays a run.

// The bodies themselves, not a package: the fuzz package would compile everything a second time.
#[path = "../../../fuzz/src/lib.rs"]
mod bodies;
#[path = "support/seeded.rs"]
mod seeded;

use bodies::{log_reader, wire_decoder};
use seeded::Random;

#[test]
fn wire_decoder_over_noise_and_over_damaged_messages() {
    let mut random = Random::begin(1);
    for _ in 0..200_000 {
        let count = random.below(80);
        let mut data = random.bytes(count);
        if count >= 5 {
            // A kind that exists and a length that fits, so that the bodies are reached.
            let kinds = b"QPBDECHSXdcfFp";
            data[0] = kinds[random.below(kinds.len() as u64) as usize];
            data[1..5].copy_from_slice(&(count as u32 - 1).to_be_bytes());
            for byte in &mut data[5..] {
                // Zeros end strings and are the counts' upper halves: without many, little is decoded.
                if random.next().is_multiple_of(3) {
                    *byte = random.below(3) as u8;
                }
            }
        }
        wire_decoder(&data);
    }
    let message = b"B\0\0\0\x1dp\0s\0\0\x01\0\x01\0\x02\0\0\0\x04\0\0\0\x07\xff\xff\xff\xff\0\0S\0\0\0\x04";
    for place in 0..message.len() {
        for value in 0..=255 {
            let mut data = message.to_vec();
            data[place] = value;
            wire_decoder(&data);
        }
    }
}

#[test]
fn log_reader_over_noise_and_over_damaged_logs() {
    let mut random = Random::begin(1);
    for _ in 0..1_500 {
        let count = random.below(400);
        log_reader(&random.bytes(count));
    }
}
