//! The behaviour of the clients in all simulated workloads of the engine: work, and wait for the next request.

use clearway_machine::{Machine, WaitEvent, WaitScope, Work};
use clearway_sim::{Simulated, client_round_trip, random_below};

/// Works for `ns` nanoseconds, a tenth more or less, so that sessions do not march in step.
pub(super) fn work(ns: u64) {
    Simulated::charge(Work::Nanos(ns - ns / 10 + random_below(ns / 5 + 1)));
}

/// Answers the client, which works for `client_ns` and sends the next request. There are no messages if that is 0, as
/// in `clearway bench`, where the client's thread calls the engine.
pub(super) fn answer(client_ns: u64) {
    if client_ns > 0 {
        let _wait = WaitScope::<Simulated>::enter(WaitEvent::ClientRead);
        client_round_trip(client_ns);
    }
}
