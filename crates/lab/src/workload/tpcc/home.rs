//! The home of a client.

use super::{DISTRICTS, Population};

/// The place of a client's terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Home {
    pub(super) warehouse: i32,
    pub(super) district: i32,
}

impl Home {
    /// That of the client at this place among all clients: warehouses in turn, then their districts.
    pub(super) fn of(client: usize, population: Population) -> Home {
        let warehouses = population.warehouses as usize;
        Home {
            warehouse: (client % warehouses) as i32 + 1,
            district: (client / warehouses % DISTRICTS as usize) as i32 + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_have_homes_in_turn() {
        let population = Population::standard(2);
        let homes: Vec<(i32, i32)> = [0, 1, 2, 5, 19, 20]
            .into_iter()
            .map(|client| Home::of(client, population))
            .map(|home| (home.warehouse, home.district))
            .collect();
        assert_eq!(homes, [(1, 1), (2, 1), (1, 2), (2, 3), (2, 10), (1, 1)]);
    }
}
