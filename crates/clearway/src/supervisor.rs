//! The supervisor that has started the server and asked to be told of its state: systemd, for a unit of `Type=notify`.
//!
//! | told | when |
//! | --- | --- |
//! | `READY=1`, with the addresses | clients are answered: recovery is over, or a standby's copy is there; of a node, each time |
//! | `RELOADING=1`, then `READY=1` | the configuration is read again, and was, by SIGHUP; whether it was taken or not |
//! | `STOPPING=1` | the shutdown has begun |
//!
//! A supervisor that asks names a socket in `NOTIFY_SOCKET`; without that nothing is told. One that does not listen is no
//! reason to end.

use sd_notify::NotifyState;

use crate::output::notice;

/// Clients are answered on these addresses.
pub(crate) fn ready(addresses: &[String]) {
    let status = format!("ready on {}", addresses.join(" and "));
    tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
}

/// The configuration is read again.
pub(crate) fn reloading() {
    // systemd wants to know of when this is, to tell one reload from the next.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => notice(format_args!("the supervisor is not told of a reload: {error}")),
    }
}

/// The configuration has been read again.
pub(crate) fn reloaded() {
    tell(&[NotifyState::Ready]);
}

/// The shutdown has begun.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    // The variable stays: a node that begins anew executes its program again.
    if let Err(error) = sd_notify::notify(false, states) {
        notice(format_args!(
            "the supervisor (NOTIFY_SOCKET) does not listen: {error}"
        ));
    }
}
