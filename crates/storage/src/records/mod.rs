//! Log records that tell of more than pages: what each says, and when it is logged.

pub mod cleanup;
pub mod running_transactions;
