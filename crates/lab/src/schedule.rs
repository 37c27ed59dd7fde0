//! The order in which the points of a bench are run.
//!
//! Round after round, in each round every workload × clients, and for each of these all variants side by side. Every
//! other round turns the variants round (A B, then B A), so that "always second" is no advantage either.

/// One measurement to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The round, from 0.
    pub round: usize,
    /// Index into the list of workloads.
    pub workload: usize,
    /// Index into the list of client counts.
    pub clients: usize,
    /// Index into the list of variants.
    pub variant: usize,
}

/// All steps in the order they are run.
pub fn interleaved(rounds: usize, workloads: usize, clients: usize, variants: usize) -> Vec<Step> {
    let mut steps = Vec::with_capacity(rounds * workloads * clients * variants);
    for round in 0..rounds {
        for workload in 0..workloads {
            for client in 0..clients {
                for place in 0..variants {
                    let variant = if round % 2 == 0 {
                        place
                    } else {
                        variants - 1 - place
                    };
                    steps.push(Step {
                        round,
                        workload,
                        clients: client,
                        variant,
                    });
                }
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_stand_side_by_side() {
        let steps = interleaved(2, 1, 2, 2);
        let shape: Vec<_> = steps
            .iter()
            .map(|step| (step.round, step.clients, step.variant))
            .collect();
        assert_eq!(
            shape,
            [
                (0, 0, 0),
                (0, 0, 1),
                (0, 1, 0),
                (0, 1, 1),
                (1, 0, 1),
                (1, 0, 0),
                (1, 1, 1),
                (1, 1, 0)
            ]
        );
    }

    #[test]
    fn every_cell_gets_every_round() {
        let steps = interleaved(3, 3, 5, 2);
        assert_eq!(steps.len(), 90);
        for variant in 0..2 {
            assert_eq!(
                steps
                    .iter()
                    .filter(|step| step.variant == variant && step.clients == 4)
                    .count(),
                9
            );
        }
    }
}
