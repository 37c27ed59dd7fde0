//! Accounts on pages: a hash map with a latch of three modes on each page.
//!
//! It stands for a structure of your own: its latches are Clearway's, its rules are its own, and it is written once for any
//! [`Machine`]. So the code that runs on the host ([`Native`]) is the code that loom and shuttle check.
//!
//! Alice pays Bob, whose account is on another page, while Carol adds up all accounts. Carol waits for no payment that
//! only looks, and sees each payment on both pages or on none.
//!
//! # Rules
//! - M1. The rows of a page are read under its latch in any mode, and changed under it in exclusive mode.
//! - M2. A worker that holds a latch waits only for latches of later pages.
//! - M3. A payment has both latches in update mode before it makes the first one exclusive, and begins with the earlier page.
//!
//! No worker waits for itself. A payment that makes a latch exclusive waits for readers of that page, which wait for later
//! pages (M2), which are exclusive for payments that have all their latches (M3) and wait for readers of pages as late, or
//! later. So a chain of waits goes on to later pages until it ends. Begun with the later page, a payment keeps readers of the
//! earlier one out of the later one, and waits for them.
//!
//! # Costs
//! A look is two atomic read-modify-writes. A payment has four more for each page, and readers of a page wait only while its row
//! is written. A page has room for [`ROWS_MAX`] rows; there are no more pages than at the beginning.

use clearway_latch::{ClassOf, LatchClass, SsuxLock};
use clearway_machine::{DataCell, Machine, Native, WaitEvent};

/// Rows of a page.
pub const ROWS_MAX: usize = 64;

/// The reason why an account was not opened, or a payment not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountError {
    /// There is no account of this number.
    #[error("there is no account {0}")]
    Missing(u64),
    /// There is one already.
    #[error("account {0} is open already")]
    Open(u64),
    /// The page of the account has no room.
    #[error("no room for account {0}")]
    NoRoom(u64),
    /// The account has less than is to be paid.
    #[error("account {0} has too little")]
    TooLittle(u64),
    /// The account would have more than it can.
    #[error("account {0} has too much")]
    TooMuch(u64),
}

/// The class of the pages' latches.
#[derive(Debug)]
pub struct Pages;

impl ClassOf for Pages {
    fn class() -> &'static LatchClass {
        static CLASS: LatchClass = LatchClass::new("AccountPages", WaitEvent::UserLatch, 0);
        &CLASS
    }
}

#[derive(Debug, Clone, Copy)]
struct Row {
    account: u64,
    balance: u64,
}

struct Page<M: Machine> {
    latch: SsuxLock<Pages, M>,
    rows: M::Data<Vec<Row>>,
}

// SAFETY: `rows` is accessed by `read` and `change` alone, whose callers hold the latch (M1).
unsafe impl<M: Machine> Sync for Page<M> {}
// SAFETY: rows are plain data, and belong to no thread.
unsafe impl<M: Machine> Send for Page<M> {}

impl<M: Machine> Page<M> {
    /// # Safety
    /// The caller holds the latch, in any mode.
    unsafe fn read<R>(&self, look: impl FnOnce(&[Row]) -> R) -> R {
        // SAFETY: the latch excludes `change` (M1).
        self.rows.with(|rows| look(unsafe { &*rows }))
    }

    /// # Safety
    /// The caller holds the latch in exclusive mode.
    unsafe fn change<R>(&self, change: impl FnOnce(&mut Vec<Row>) -> R) -> R {
        // SAFETY: the latch excludes all others (M1).
        self.rows.with_mut(|rows| change(unsafe { &mut *rows }))
    }
}

fn balance_in(rows: &[Row], account: u64) -> Option<u64> {
    let row = rows.iter().find(|row| row.account == account);
    row.map(|row| row.balance)
}

fn put(rows: &mut [Row], account: u64, balance: u64) {
    let row = rows.iter_mut().find(|row| row.account == account);
    row.expect("no account is ever closed").balance = balance;
}

/// The accounts.
pub struct Accounts<M: Machine = Native> {
    pages: Box<[Page<M>]>,
}

impl<M: Machine> Accounts<M> {
    /// No accounts, on so many pages, at least one.
    pub fn on_pages(pages: usize) -> Self {
        let page = |_| Page {
            latch: SsuxLock::idle(),
            rows: DataCell::new(Vec::new()),
        };
        Self {
            pages: (0..pages.max(1)).map(page).collect(),
        }
    }

    /// The number of the account's page.
    fn number_of_page(&self, account: u64) -> usize {
        // The remainder is less than the number of pages.
        (account % self.pages.len() as u64) as usize
    }

    /// The balance of an account.
    pub fn balance(&self, account: u64) -> Option<u64> {
        let page = &self.pages[self.number_of_page(account)];
        let _shared = page.latch.shared();
        // SAFETY: held in shared mode.
        unsafe { page.read(|rows| balance_in(rows, account)) }
    }

    /// Opens an account. Readers of its page go on while it looks whether the account is there.
    pub fn open(&self, account: u64, balance: u64) -> Result<(), AccountError> {
        let page = &self.pages[self.number_of_page(account)];
        let update = page.latch.update();
        // SAFETY: held in update mode.
        let (is_open, count) = unsafe { page.read(|rows| (balance_in(rows, account).is_some(), rows.len())) };
        if is_open {
            return Err(AccountError::Open(account));
        }
        if count == ROWS_MAX {
            return Err(AccountError::NoRoom(account));
        }
        // No other worker has changed the page meanwhile: update mode keeps them out.
        let _exclusive = update.exclusive();
        // SAFETY: held in exclusive mode.
        unsafe { page.change(|rows| rows.push(Row { account, balance })) };
        Ok(())
    }

    /// The sum of all balances at one instant.
    pub fn total(&self) -> u128 {
        // M2: in ascending order.
        let held: Vec<_> = self.pages.iter().map(|page| page.latch.shared()).collect();
        let sum_of = |page: &Page<M>| {
            // SAFETY: held in shared mode.
            unsafe { page.read(|rows| rows.iter().map(|row| u128::from(row.balance)).sum::<u128>()) }
        };
        let total = self.pages.iter().map(sum_of).sum();
        drop(held);
        total
    }

    /// Pays `amount` from one account to another. An error changes nothing.
    pub fn pay(&self, from: u64, to: u64, amount: u64) -> Result<(), AccountError> {
        let numbers = [from, to].map(|account| self.number_of_page(account));
        let [payer, payee] = numbers.map(|number| &self.pages[number]);
        let [earlier, later] = [numbers[0].min(numbers[1]), numbers[0].max(numbers[1])];
        // M2, M3.
        let first = self.pages[earlier].latch.update();
        let second = (later != earlier).then(|| self.pages[later].latch.update());
        // SAFETY: held in update mode, both of them.
        let known = unsafe {
            [
                payer.read(|rows| balance_in(rows, from)),
                payee.read(|rows| balance_in(rows, to)),
            ]
        };
        let has = known[0].ok_or(AccountError::Missing(from))?;
        let had = known[1].ok_or(AccountError::Missing(to))?;
        let left = has.checked_sub(amount).ok_or(AccountError::TooLittle(from))?;
        if from == to {
            return Ok(());
        }
        let sum = had.checked_add(amount).ok_or(AccountError::TooMuch(to))?;
        let _first = first.exclusive();
        let _second = second.map(|second| second.exclusive());
        // SAFETY: held in exclusive mode, both of them.
        unsafe {
            payer.change(|rows| put(rows, from, left));
            payee.change(|rows| put(rows, to, sum));
        }
        Ok(())
    }
}
