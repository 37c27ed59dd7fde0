//! Roman numerals.

const LETTERS: [(i32, &str); 13] = [
    (1000, "M"),
    (900, "CM"),
    (500, "D"),
    (400, "CD"),
    (100, "C"),
    (90, "XC"),
    (50, "L"),
    (40, "XL"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (4, "IV"),
    (1, "I"),
];

/// The numeral of a number of 1 to 3,999; `None` for the others.
pub(super) fn numeral(mut number: i32) -> Option<String> {
    if !(1..=3_999).contains(&number) {
        return None;
    }
    let mut numeral = String::new();
    for (value, letters) in LETTERS {
        while number >= value {
            numeral.push_str(letters);
            number -= value;
        }
    }
    Some(numeral)
}
