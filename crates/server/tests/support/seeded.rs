//! Random bytes that a seed replays.

/// A small generator, the same on every machine and for ever (`SplitMix64`).
pub struct Random(u64);

impl Random {
    /// Begins at `SEED=` of the environment, or at `default`, and says where.
    pub fn begin(default: u64) -> Self {
        let seed = std::env::var("SEED")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default);
        println!("SEED={seed}");
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn bytes(&mut self, count: u64) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}
