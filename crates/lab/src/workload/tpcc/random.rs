//! TPC-C's random values (clauses 2.1.6, 4.3.2 and 4.3.3).
//!
//! NURand makes some values more frequent than others: the OR of two uniform numbers has more ones than either.
//!
//! ```text
//! NURand(A, x, y) = (((random 0..=A) | (random x..=y)) + C) mod (y - x + 1) + x
//! ```
//!
//! C is a constant of the run. That of last names differs between loading and running by a number that clause 2.1.6.1
//! prescribes, so that the names which are asked for most are not those which were loaded most.

use std::ops::RangeInclusive;

use rand::RngExt;
use rand::rngs::SmallRng;

/// C of last names while loading.
pub(super) const LAST_NAME_C_LOAD: i32 = 157;

/// C of last names while running: 65 to 119 away from that of loading, and neither 96 nor 112.
pub(super) const LAST_NAME_C_RUN: i32 = 223;

/// C of customers.
const CUSTOMER_C: i32 = 259;

/// C of items.
const ITEM_C: i32 = 7_911;

/// Different last names.
pub(super) const LAST_NAMES: i32 = 1_000;

const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Rows of which one in ten has this in its data: the items and stocks that are "original".
const ORIGINAL: &[u8] = b"ORIGINAL";

/// A number of `range`, some more often than others.
pub(super) fn nurand(random: &mut SmallRng, a: i32, c: i32, range: RangeInclusive<i32>) -> i32 {
    let (first, last) = (*range.start(), *range.end());
    let either = random.random_range(0..=a) | random.random_range(range);
    (either + c) % (last - first + 1) + first
}

/// One of the `customers` customers of a district.
pub(super) fn customer(random: &mut SmallRng, customers: i32) -> i32 {
    nurand(random, 1_023, CUSTOMER_C, 1..=customers)
}

/// One of the `items` items.
pub(super) fn item(random: &mut SmallRng, items: i32) -> i32 {
    nurand(random, 8_191, ITEM_C, 1..=items)
}

/// The number of a last name, of those that a district with `customers` customers is sure to have.
pub(super) fn last_name_number(random: &mut SmallRng, c: i32, customers: i32) -> i32 {
    nurand(random, 255, c, 0..=customers.min(LAST_NAMES) - 1)
}

/// The last name of a number of three digits: a syllable each.
pub(super) fn last_name(number: i32) -> String {
    [number / 100, number / 10, number]
        .map(|digits| SYLLABLES[digits.rem_euclid(10) as usize])
        .concat()
}

/// Appends letters and digits, `length` of them.
pub(super) fn letters(random: &mut SmallRng, length: RangeInclusive<usize>, text: &mut Vec<u8>) {
    for _ in 0..random.random_range(length) {
        text.push(LETTERS[random.random_range(0..LETTERS.len())]);
    }
}

/// Appends `length` digits.
pub(super) fn digits(random: &mut SmallRng, length: usize, text: &mut Vec<u8>) {
    for _ in 0..length {
        text.push(random.random_range(b'0'..=b'9'));
    }
}

/// Appends the data of an item or stock: 26 to 50 letters, with "ORIGINAL" somewhere in one of ten.
pub(super) fn data(random: &mut SmallRng, text: &mut Vec<u8>) {
    let start = text.len();
    letters(random, 26..=50, text);
    if random.random_range(0..10) == 0 {
        let place = random.random_range(start..=text.len() - ORIGINAL.len());
        text[place..place + ORIGINAL.len()].copy_from_slice(ORIGINAL);
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn nurand_reaches_its_whole_range_and_nothing_else() {
        let mut random = SmallRng::seed_from_u64(3);
        let mut drawn = vec![0u32; 3_001];
        for _ in 0..3_000_000 {
            drawn[customer(&mut random, 3_000) as usize] += 1;
        }
        assert_eq!(drawn[0], 0);
        let never = drawn[1..].iter().filter(|count| **count == 0).count();
        // Those whose low ten bits are all zero come once in three million draws, before C is added.
        assert!(never < 10, "{never} of 3,000 were never drawn");
        // A number whose low ten bits have n ones comes 3^n times as often as one that has none: the 10 % with 7 ones or
        // more are drawn in 62 % of the draws.
        drawn.sort_unstable_by(|a, b| b.cmp(a));
        let tenth: u32 = drawn[..300].iter().sum();
        assert!((1_750_000..1_980_000).contains(&tenth), "{tenth}");
        for _ in 0..100_000 {
            assert!((1..=100_000).contains(&item(&mut random, 100_000)));
            assert!((0..1_000).contains(&last_name_number(&mut random, LAST_NAME_C_RUN, 3_000)));
            assert!((0..60).contains(&last_name_number(&mut random, LAST_NAME_C_LOAD, 60)));
        }
    }

    #[test]
    fn the_constants_of_last_names_differ_as_they_must() {
        let delta = LAST_NAME_C_RUN - LAST_NAME_C_LOAD;
        assert!((65..=119).contains(&delta) && delta != 96 && delta != 112);
    }

    #[test]
    fn last_names_are_a_syllable_a_digit() {
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(999), "EINGEINGEING");
        let names: std::collections::HashSet<String> = (0..LAST_NAMES).map(last_name).collect();
        assert_eq!(names.len(), 1_000);
    }

    #[test]
    fn texts_have_their_lengths_and_one_in_ten_is_original() {
        let mut random = SmallRng::seed_from_u64(5);
        let mut originals = 0;
        for _ in 0..10_000 {
            let mut text = Vec::new();
            data(&mut random, &mut text);
            assert!((26..=50).contains(&text.len()));
            originals += usize::from(text.windows(ORIGINAL.len()).any(|part| part == ORIGINAL));
        }
        assert!((850..1_150).contains(&originals), "{originals}");
        let mut zip = Vec::new();
        digits(&mut random, 4, &mut zip);
        assert!(zip.len() == 4 && zip.iter().all(u8::is_ascii_digit));
    }
}
