//! The settings that dates and times are read and shown by, a thread each.
//!
//! The text of a date is made and read deep inside arrays, records and JSON, where no session is at hand. All of that
//! runs on the thread that runs the statement, so the session tells its thread which settings are in force, as it tells
//! it the types that it knows ([`user_type::in_force`](crate::value::user_type::in_force)).
//!
//! 1. A thread has the defaults (ISO, month before day, UTC) until [`put`] says otherwise. What is kept beside a thread
//!    with the defaults costs nothing: one load tells.
//! 2. A literal is read when its statement is bound; that a prepared statement is bound again later, under the settings
//!    of its beginning, is the matter of [`under`].
//! 3. Text that is kept (the catalog's definitions, statistics) is made and read under the defaults: [`under`]`(None)`.
//!    It means the same to every session, since a text in ISO style has year, month, day in this order under every setting,
//!    and a timestamp with a zone has its distance from Greenwich.
//! 4. [`for_keeping`] reads by the session's settings and writes by the defaults, for a definition that is taken over;
//!    [`reading_by`] reads the text of a view by the settings that it was written under.

use std::cell::RefCell;
use std::sync::Arc;
use std::thread::LocalKey;

use super::session_zone::{SessionZone, ZoneFault};
use super::style::{DateStyle, FieldOrder, read_shown, shown_date_style};

/// The settings that dates and times are read and shown by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DateTimeSettings {
    /// The form that they are shown in.
    pub style: DateStyle,
    /// The order in which the numbers of a date are read.
    pub order: FieldOrder,
    /// The zone that the session's clocks show.
    pub zone: SessionZone,
}

thread_local! {
    /// The settings that texts are read by, and all that depends on the zone; `None` for the defaults.
    static READING: RefCell<Option<Arc<DateTimeSettings>>> = const { RefCell::new(None) };
    /// The settings that texts are made by; `None` for the defaults.
    static SHOWING: RefCell<Option<Arc<DateTimeSettings>>> = const { RefCell::new(None) };
}

impl DateTimeSettings {
    /// The value of `DateStyle`.
    pub fn date_style(&self) -> String {
        shown_date_style(self.style, self.order)
    }

    /// The settings of these values, as SHOW shows them; `None` if they are the defaults.
    pub fn of_shown(date_style: &str, time_zone: &str) -> Result<Option<Arc<DateTimeSettings>>, ZoneFault> {
        let (style, order) = read_shown(date_style);
        let settings = DateTimeSettings {
            style,
            order,
            zone: SessionZone::of_setting(time_zone)?,
        };
        let is_default = (style, order) == Default::default() && settings.zone.is_utc();
        Ok((!is_default).then(|| Arc::new(settings)))
    }
}

/// Puts settings in force for what this thread does from now on; `None` for the defaults.
pub fn put(settings: Option<Arc<DateTimeSettings>>) {
    set(&READING, settings.clone());
    set(&SHOWING, settings);
}

/// The settings that texts are read by; `None` if they are the defaults.
pub fn settings() -> Option<Arc<DateTimeSettings>> {
    READING.with(|current| current.borrow().clone())
}

/// True if the session's clocks show UTC and texts are read by the other defaults, too.
#[inline]
pub fn reads_by_default() -> bool {
    READING.with(|current| current.borrow().is_none())
}

/// Settings that are in force until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Under {
    reading: Option<Arc<DateTimeSettings>>,
    showing: Option<Arc<DateTimeSettings>>,
}

/// Puts settings in force until what it gives is dropped.
pub fn under(settings: Option<Arc<DateTimeSettings>>) -> Under {
    Under {
        reading: set(&READING, settings.clone()),
        showing: set(&SHOWING, settings),
    }
}

/// Until what it gives is dropped, texts are read by the settings in force and made by the defaults.
pub fn for_keeping() -> Under {
    Under {
        reading: settings(),
        showing: set(&SHOWING, None),
    }
}

/// Until what it gives is dropped, texts are read by these settings and made by those in force.
pub fn reading_by(settings: Option<Arc<DateTimeSettings>>) -> Under {
    Under {
        reading: set(&READING, settings),
        showing: SHOWING.with(|current| current.borrow().clone()),
    }
}

impl Drop for Under {
    fn drop(&mut self) {
        set(&READING, self.reading.take());
        set(&SHOWING, self.showing.take());
    }
}

/// Replaces settings; those before.
fn set(
    of: &'static LocalKey<RefCell<Option<Arc<DateTimeSettings>>>>,
    settings: Option<Arc<DateTimeSettings>>,
) -> Option<Arc<DateTimeSettings>> {
    of.with(|current| current.replace(settings))
}

/// Calls `work` with the settings that texts are made by, unless these are the defaults.
#[inline]
pub(super) fn with_shown<T>(work: impl FnOnce(&DateTimeSettings) -> T) -> Option<T> {
    SHOWING.with(|current| current.borrow().as_deref().map(work))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_hold_until_what_they_were_put_under_is_dropped() {
        let of = |style, zone| DateTimeSettings::of_shown(style, zone).unwrap();
        assert_eq!(of("ISO, MDY", "UTC"), None);
        let outer = of("SQL, DMY", "Europe/Berlin");
        put(outer.clone());
        {
            let _inner = under(None);
            assert_eq!(settings(), None);
        }
        {
            let _inner = for_keeping();
            assert_eq!(with_shown(|_| ()), None);
            assert_eq!(settings().unwrap().order, FieldOrder::Dmy);
        }
        {
            let _inner = reading_by(None);
            assert_eq!(with_shown(|shown| shown.style), Some(DateStyle::Sql));
            assert_eq!(settings(), None);
        }
        assert_eq!(settings(), outer);
        put(None);
    }
}
