//! The behaviour of the clients in all simulated workloads of the engine: work, and wait for the next request.

use std::rc::Rc;
use std::sync::atomic::Ordering::Acquire;

use clearway_machine::{Machine, WaitEvent, WaitScope, Work};
use clearway_sim::{Simulated, Simulation, client_round_trip, clock_ns, random_below};

use crate::simulate::meter::Meter;

/// A client: it arrives in the first 2 ms, and sends one transaction after the other, as long as the meter wants any.
/// `transaction` is told the time at which it begins.
pub(super) fn spawn(
    simulation: &mut Simulation,
    meter: &Rc<Meter>,
    client_ns: u64,
    mut transaction: impl FnMut(u64) + 'static,
) {
    let meter = Rc::clone(meter);
    simulation.spawn(move || {
        Simulated::charge(Work::Nanos(random_below(2_000_000)));
        Simulated::fence(Acquire);
        while meter.goes_on() {
            transaction(clock_ns());
            answer(client_ns);
        }
    });
}

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
