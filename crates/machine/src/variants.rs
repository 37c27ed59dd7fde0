//! Dispatch over the variants of a mechanism.
//!
//! A mechanism keeps one value of the variant that was chosen at its start. [`variants!`](crate::variants) makes the
//! switch, the enum of these values, and a macro that calls the value of whichever variant it is: a variant is one line,
//! and a method of the mechanism is written once. The dispatch is one jump that always goes
//! the same way, and what it calls can be inlined, which it could not be through `dyn`.

/// Defines a [`switch!`](crate::switch), each variant of which names the type of what it keeps; the enum of these; and
/// a macro, local to the module, that dispatches over it:
///
/// - `dispatch!(new variant => expression)`: the enum's value for `variant`; the expression is of each variant's type,
///   so it calls a trait's function.
/// - `dispatch!(value, inner => expression)`: the expression, with `inner` as the variant's own value.
/// - `dispatch!(in Other, value, inner => expression)`: as the last, and the result in the variant of the same name of
///   the enum `Other`.
///
/// Generics of the enum stand in brackets.
///
/// ```
/// use clearway_machine::{Switch, variants};
///
/// trait Greeting {
///     fn new() -> Self;
///     fn words(&self) -> &'static str;
/// }
///
/// struct Nod;
/// impl Greeting for Nod {
///     fn new() -> Self {
///         Nod
///     }
///     fn words(&self) -> &'static str {
///         ""
///     }
/// }
///
/// struct Warm;
/// impl Greeting for Warm {
///     fn new() -> Self {
///         Warm
///     }
///     fn words(&self) -> &'static str {
///         "welcome"
///     }
/// }
///
/// variants! {
///     /// The greeting of a guest.
///     pub enum GreetingVariant = "greeting", best Warm, planned [] {
///         /// With a nod.
///         Nod = "nod": Nod,
///         /// With both hands.
///         Warm = "warm": Warm,
///     }
///     why {
///         Warm: "9 of 10 guests came again." in "docs/guests.md#who-came-again";
///     }
///
///     /// The greeting that was chosen.
///     enum Greetings[], called by dispatch;
/// }
///
/// let greeting = dispatch!(new GreetingVariant::Warm => Greeting::new());
/// assert_eq!(dispatch!(&greeting, greeting => greeting.words()), "welcome");
/// ```
#[macro_export]
macro_rules! variants {
    (
        $(#[doc = $about:literal])+
        $visibility:vis enum $switch:ident = $name:literal, best $best:ident, planned $planned:tt
            $(, only beside $other:literal $admitted:tt)?
        {
            $( $(#[doc = $text:literal])+ $variant:ident = $variant_name:literal: $kept:ty ),+ $(,)?
        }
        why $why:tt

        $(#[$attribute:meta])*
        $kept_visibility:vis enum $holder:ident [$($generics:tt)*], called by $dispatch:ident;
    ) => {
        $crate::switch! {
            $(#[doc = $about])+
            $visibility enum $switch = $name, best $best, planned $planned $(, only beside $other $admitted)? {
                $( $(#[doc = $text])+ $variant = $variant_name, )+
            }
            why $why
        }

        $(#[$attribute])*
        $kept_visibility enum $holder<$($generics)*> { $( $variant($kept), )+ }

        // `$chosen`, `$inner` and so on are the parameters of this macro; the outer one has none of these names.
        macro_rules! $dispatch {
            (new $chosen:expr => $made:expr) => {
                match $chosen { $( $switch::$variant => $holder::$variant($made), )+ }
            };
            (in $into:ident, $value:expr, $inner:ident => $call:expr) => {
                match $value { $( $holder::$variant($inner) => $into::$variant($call), )+ }
            };
            ($value:expr, $inner:ident => $call:expr) => {
                match $value { $( $holder::$variant($inner) => $call, )+ }
            };
        }
    };
}
