//! The bodies of the fuzz targets over seeded random input. `SEED=` replays a run.

// The bodies themselves, not a package: the fuzz package would compile everything a second time.
#[path = "../../../fuzz/src/lib.rs"]
mod bodies;

use bodies::{log_reader, wire_decoder};

/// A small generator, the same on every machine (`SplitMix64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn bytes(&mut self, count: u64) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

fn random() -> Random {
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    println!("SEED={seed}");
    Random(seed)
}

#[test]
fn wire_decoder_over_noise_and_over_damaged_messages() {
    let mut random = random();
    for _ in 0..200_000 {
        let count = random.next() % 80;
        let mut data = random.bytes(count);
        if count >= 5 {
            // A kind that exists and a length that fits, so that the bodies are reached.
            let kinds = b"QPBDECHSXdcfFp";
            data[0] = kinds[(random.next() % kinds.len() as u64) as usize];
            data[1..5].copy_from_slice(&(count as u32 - 1).to_be_bytes());
            for byte in &mut data[5..] {
                // Zeros end strings and are the counts' upper halves: without many, little is decoded.
                if random.next().is_multiple_of(3) {
                    *byte = (random.next() % 3) as u8;
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
    let mut random = random();
    for _ in 0..1_500 {
        let count = random.next() % 400;
        log_reader(&random.bytes(count));
    }
}
