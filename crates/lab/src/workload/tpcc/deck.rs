//! The choice of the next transaction: a card from a shuffled deck.
//!
//! Clause 5.2.3 asks for the least share of each transaction but new-order. A deck of 100 cards gives every client
//! exactly these shares in each hundred, so that short runs have the mix too; weights drawn independently would leave a
//! run of a second with twice as many deliveries as another.

use rand::Rng;
use rand::seq::SliceRandom;

/// One of the five transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Enters an order.
    NewOrder,
    /// Takes a customer's payment.
    Payment,
    /// Shows a customer's last order.
    OrderStatus,
    /// Delivers the oldest order of each district.
    Delivery,
    /// Counts the items of recent orders that are low in stock.
    StockLevel,
}

impl Kind {
    /// All of them, in the standard's order.
    pub const ALL: [Kind; 5] = [
        Kind::NewOrder,
        Kind::Payment,
        Kind::OrderStatus,
        Kind::Delivery,
        Kind::StockLevel,
    ];

    /// Their names, in this order.
    pub const NAMES: &'static [&'static str] = &[
        Kind::NewOrder.name(),
        Kind::Payment.name(),
        Kind::OrderStatus.name(),
        Kind::Delivery.name(),
        Kind::StockLevel.name(),
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::NewOrder => "new-order",
            Kind::Payment => "payment",
            Kind::OrderStatus => "order-status",
            Kind::Delivery => "delivery",
            Kind::StockLevel => "stock-level",
        }
    }

    /// Cards of a hundred.
    const fn cards(self) -> usize {
        match self {
            Kind::NewOrder => 45,
            Kind::Payment => 43,
            Kind::OrderStatus | Kind::Delivery | Kind::StockLevel => 4,
        }
    }
}

/// A client's deck.
#[derive(Debug, Default)]
pub(crate) struct Deck {
    cards: Vec<Kind>,
}

impl Deck {
    /// The next card; an empty deck is filled and shuffled.
    pub(crate) fn deal(&mut self, random: &mut impl Rng) -> Kind {
        loop {
            if let Some(card) = self.cards.pop() {
                return card;
            }
            for kind in Kind::ALL {
                self.cards.extend(std::iter::repeat_n(kind, kind.cards()));
            }
            self.cards.shuffle(random);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;

    #[test]
    fn names_are_in_the_order_of_the_kinds() {
        assert_eq!(Kind::NAMES, Kind::ALL.map(Kind::name));
    }

    #[test]
    fn every_hundred_has_the_mix_in_another_order() {
        let mut random = SmallRng::seed_from_u64(1);
        let mut deck = Deck::default();
        let mut hundreds = Vec::new();
        for _ in 0..3 {
            let hundred: Vec<Kind> = (0..100).map(|_| deck.deal(&mut random)).collect();
            let of = |kind| hundred.iter().filter(|card| **card == kind).count();
            assert_eq!(Kind::ALL.map(of), [45, 43, 4, 4, 4]);
            hundreds.push(hundred);
        }
        assert_ne!(hundreds[0], hundreds[1]);
        assert_ne!(hundreds[1], hundreds[2]);
    }
}
