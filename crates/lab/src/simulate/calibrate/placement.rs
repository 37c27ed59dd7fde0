//! The distances between CPUs that there are on this host.

use serde::Serialize;

use super::probe::{Probe, SAME_PLACE, within};
use crate::stats::median;

/// One distance between two CPUs of this host.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Placement {
    /// Moving a line from one to the other: half of a compare-and-swap round trip, median.
    pub transfer_ns: f64,
    /// True if they slow each other's arithmetic, as hardware threads of one core do.
    pub siblings: bool,
    /// The speed of one while the other polls with pauses, of 1.
    pub speed_beside_pauses: f64,
    /// The cost of an increment while both increment one line, the time of both together: median.
    pub contended_ns: f64,
    /// The same with a little arithmetic between two increments, and with more.
    pub spaced_ns: [f64; 2],
    /// The part of a transfer after which a line has left its owner: the part with which a simulation comes
    /// nearest to `spaced_ns`.
    pub departure: f64,
    /// The most read-modify-writes of an owner whose line was asked for: the number with which a simulation comes to
    /// `contended_ns`, 0 for no limit.
    pub owner_rmws: f64,
    /// Its part of all probes.
    pub share: f64,
}

impl Placement {
    /// In words.
    pub fn name(&self) -> String {
        let what = if self.siblings {
            "one core, two hardware threads"
        } else {
            "two cores"
        };
        format!("{what}, {:.0} ns apart", self.transfer_ns)
    }

    pub(in crate::simulate) fn covers(&self, probe: &Probe) -> bool {
        within(probe.transfer, self.transfer_ns, SAME_PLACE)
    }
}

/// A placement must have this part of all probes: others are moments in which the host did something else.
const SHARE_MIN: f64 = 0.06;

/// The distances among the probes, each given with its
/// [`spaced_increments`](super::line_tenure::spaced_increments). Picks the distance around which most of the
/// remaining probes lie, again and again.
pub(super) fn placements(probes: &[(Probe, [f64; 2])]) -> Vec<Placement> {
    let mut left = probes.to_vec();
    let mut found = Vec::new();
    loop {
        let near = |center: f64| {
            left.iter()
                .filter(move |(probe, _)| within(probe.transfer, center, SAME_PLACE))
        };
        let densest = left.iter().max_by_key(|(probe, _)| near(probe.transfer).count());
        let Some(center) = densest.map(|(probe, _)| probe.transfer) else {
            break;
        };
        let of = |what: fn(&Probe) -> f64| {
            median(&near(center).map(|(probe, _)| what(probe)).collect::<Vec<f64>>())
        };
        let share = near(center).count() as f64 / probes.len() as f64;
        if share < SHARE_MIN {
            break;
        }
        found.push(Placement {
            transfer_ns: of(|probe| probe.transfer),
            siblings: of(|probe| probe.together / probe.alone) > 1.4,
            speed_beside_pauses: of(|probe| probe.alone / probe.beside_pauses).min(1.0),
            contended_ns: of(|probe| probe.contended),
            spaced_ns: [0, 1].map(|which| {
                median(
                    &near(center)
                        .map(|(_, spaced)| spaced[which])
                        .collect::<Vec<f64>>(),
                )
            }),
            departure: 0.0,
            owner_rmws: 0.0,
            share,
        });
        left.retain(|(probe, _)| !within(probe.transfer, center, SAME_PLACE * SAME_PLACE));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(transfer: f64, together: f64) -> Probe {
        Probe {
            transfer,
            alone: 10.0,
            together,
            beside_pauses: 10.0,
            contended: 5.0,
        }
    }

    #[test]
    fn distances_are_told_apart_and_accidents_left_out() {
        let mut probes = Vec::new();
        for turn in 0..40 {
            probes.push((at(100.0 + f64::from(turn), 10.0), [30.0, 60.0]));
            probes.push((at(25.0 + f64::from(turn % 4), 10.0), [15.0, 30.0]));
            if turn % 4 == 0 {
                probes.push((at(10.0, 19.0), [9.0, 18.0]));
            }
        }
        probes.push((at(52.0, 10.0), [20.0, 20.0]));
        probes.push((at(4_000.0, 10.0), [900.0, 900.0]));
        let found = placements(&probes);
        let seen: Vec<(f64, bool)> = found
            .iter()
            .map(|placement| (placement.transfer_ns, placement.siblings))
            .collect();
        assert_eq!(seen.len(), 3, "{found:?}");
        assert!(
            seen.contains(&(10.0, true)) && seen.contains(&(26.5, false)),
            "{found:?}"
        );
        let spaced: Vec<[f64; 2]> = found.iter().map(|placement| placement.spaced_ns).collect();
        assert!(
            spaced.contains(&[30.0, 60.0]) && spaced.contains(&[9.0, 18.0]),
            "{found:?}"
        );
    }
}
