//! The bodies of the fuzz targets over seeded random input. `SEED=` replays a run.

// The bodies themselves, not a package: the fuzz package would compile everything a second time.
#[path = "../../../fuzz/src/lib.rs"]
mod bodies;
#[path = "support/seeded.rs"]
mod seeded;

use bodies::login::Door;
use bodies::{log_reader, sasl, wire_decoder};
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

#[test]
fn sasl_over_noise_and_over_damaged_messages() {
    let mut random = Random::begin(1);
    let messages: [&[u8]; 4] = [
        b"SCRAM-SHA-256\0\0\0\0\x0cn,,n=,r=mine",
        b"SCRAM-SHA-256-PLUS\0\0\0\0\x20p=tls-server-end-point,,n=,r=mine",
        b"y,,n=ann,r=mine,x=more",
        b"c=biws,r=mineyours,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    ];
    for message in messages {
        for _ in 0..20_000 {
            sasl(&damaged(message, &mut random));
        }
    }
    for _ in 0..20_000 {
        let count = random.below(80);
        sasl(&random.bytes(count));
    }
}

/// A message with some of its bytes replaced, left out, or put in, most of them by what has a meaning in SASL.
fn damaged(message: &[u8], random: &mut Random) -> Vec<u8> {
    let mut data = message.to_vec();
    for _ in 0..random.below(4) {
        let place = random.below(data.len() as u64) as usize;
        let byte = match random.below(3) {
            0 => random.next() as u8,
            _ => b",=nyrcpamx\0"[random.below(11) as usize],
        };
        match random.below(3) {
            0 => data[place] = byte,
            1 => drop(data.remove(place)),
            _ => data.insert(place, byte),
        }
    }
    data
}

/// Each stage of a login, with noise and with messages that nearly fit.
#[test]
fn login_over_noise_and_over_damaged_messages() {
    let mut random = Random::begin(1);
    let door = Door::new();
    let packets: [&[u8]; 6] = [
        b"\0\0\0\x08\x04\xd2\x16\x2f",
        b"\0\0\0\x08\x04\xd2\x16\x30",
        b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x01\0\0\0\x01",
        b"\0\0\0\x29\0\x03\0\0user\0guarded\0database\0postgres\0\0",
        b"p\0\0\0\x23SCRAM-SHA-256\0\0\0\0\x0cn,,n=,r=mine\0\0",
        b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    ];
    for stage in 0..=8 {
        for round in 0..60 {
            let rest = match packets.get(round % 8) {
                Some(packet) => damaged(packet, &mut random),
                None => {
                    let count = random.below(100);
                    random.bytes(count)
                }
            };
            door.knock(&[vec![stage], rest].concat());
        }
    }
    door.log_in();
}
