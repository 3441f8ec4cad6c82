//! `Debug` by the fields that may be shown: never words, names or keys.

/// Implements `Debug` for a struct. It shows the listed fields, a value in place of a field where one is given, and `..` for the rest.
/// `debug_shows!(Batch as it: scope, messages = it.messages.len());`
#[doc(hidden)]
#[macro_export]
macro_rules! debug_shows {
    (@value $self:ident, $field:ident) => { &$self.$field };
    (@value $self:ident, $field:ident, $value:expr) => { &$value };
    ($type:ident $(<$life:lifetime>)? $(as $it:ident)? $(: $($field:ident $(= $value:expr)?),+)?) => {
        impl ::std::fmt::Debug for $type $(<$life>)? {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                $(let $it = self;)?
                f.debug_struct(stringify!($type))
                    $($(.field(stringify!($field), $crate::debug_shows!(@value self, $field $(, $value)?)))+)?
                    .finish_non_exhaustive()
            }
        }
    };
}

#[cfg(test)]
mod tests {
    struct Said<'a> {
        seq: u64,
        words: &'a str,
        secret: &'a str,
    }

    debug_shows!(Said<'_> as it: seq, words = it.words.len());

    #[test]
    fn what_is_not_listed_is_not_shown() {
        let said = Said { seq: 7, words: "leek soup", secret: "a key" };
        assert_eq!(format!("{said:?}"), "Said { seq: 7, words: 9, .. }");
        assert_eq!(said.secret, "a key");
    }
}
