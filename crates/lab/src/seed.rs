//! The seeds of the clients' random numbers.

/// A seed of its own for each client: the finaliser of splitmix64 over both numbers.
pub(crate) fn seed_of(seed: u64, number: u64) -> u64 {
    let mut mixed = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_have_seeds_of_their_own() {
        let seeds: std::collections::HashSet<u64> = (0..1_000).map(|number| seed_of(42, number)).collect();
        assert_eq!(seeds.len(), 1_000);
        assert_ne!(seed_of(1, 0), seed_of(2, 0));
    }
}
