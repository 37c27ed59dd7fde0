//! The spin policy of a class, kept in a word. How a worker polls is the subject of `spin`.

/// The way in which a worker polls before it sleeps on a latch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpinPolicy {
    /// Sleep at once: for latches that are held long.
    None,
    /// Poll for at most this many pauses of the CPU.
    Fixed(u32),
    /// Poll for the worker's learned number of pauses, which grows after a wait that polling ended and
    /// shrinks after a wait with a sleep.
    #[default]
    Adaptive,
}

const ADAPTIVE: u32 = u32::MAX;

impl SpinPolicy {
    pub(crate) const fn to_word(self) -> u32 {
        match self {
            SpinPolicy::None => 0,
            SpinPolicy::Fixed(ADAPTIVE) => ADAPTIVE - 1,
            SpinPolicy::Fixed(polls) => polls,
            SpinPolicy::Adaptive => ADAPTIVE,
        }
    }

    pub(crate) const fn from_word(word: u32) -> Self {
        match word {
            0 => SpinPolicy::None,
            ADAPTIVE => SpinPolicy::Adaptive,
            polls => SpinPolicy::Fixed(polls),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_kept_in_a_word() {
        for policy in [
            SpinPolicy::None,
            SpinPolicy::Fixed(1),
            SpinPolicy::Fixed(30),
            SpinPolicy::Adaptive,
        ] {
            assert_eq!(SpinPolicy::from_word(policy.to_word()), policy);
        }
        assert_eq!(
            SpinPolicy::from_word(SpinPolicy::Fixed(0).to_word()),
            SpinPolicy::None
        );
        assert_ne!(
            SpinPolicy::from_word(SpinPolicy::Fixed(u32::MAX).to_word()),
            SpinPolicy::Adaptive
        );
    }
}
