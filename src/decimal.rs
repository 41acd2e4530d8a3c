//! Numbers with a fraction, as text.
//!
//! The standard library's way to print them is exact to the last of a thousand digits, and takes a fortieth of the module
//! for it. Nothing here needs that.

use std::fmt;

use serde_json::Number;

/// A number with three digits behind the point, as seconds and scores are shown. One that is too large for that is shown as
/// the largest that is not, and what is no number as 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thousandths(pub(crate) f64);

impl fmt::Display for Thousandths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thousandths = (self.0.abs() * 1e3).round() as u64;
        let sign = if self.0 < 0.0 && thousandths > 0 { "-" } else { "" };
        write!(f, "{sign}{}.{:03}", thousandths / 1000, thousandths % 1000)
    }
}

/// A number as somebody wrote it.
#[derive(Clone, Copy)]
pub(crate) struct Written(pub(crate) f64);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.fract() == 0.0 && self.0.abs() < 1e16 {
            return write!(f, "{}", self.0 as i64);
        }
        match Number::from_f64(self.0) {
            Some(number) => f.write_str(&number.to_string().replace("e+", "e")),
            None => f.write_str("no number"),
        }
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_shown() {
        let shown = [0.0, -0.0, 0.0004, 0.0005, 1.2, -0.05, 12.3456, 9.9999].map(|n| Thousandths(n).to_string());
        assert_eq!(shown, ["0.000", "0.000", "0.000", "0.001", "1.200", "-0.050", "12.346", "10.000"]);
        assert_eq!(Thousandths(f64::NAN).to_string(), "0.000");
        assert_eq!(Thousandths(f64::INFINITY).to_string(), "18446744073709551.615");
    }

    #[test]
    fn what_was_written_is_read_again() {
        let shown = [3.0, -2.0, 1.5, 1024.5, 1e20, 1e300, 1e15].map(|n| Written(n).to_string());
        assert_eq!(shown, ["3", "-2", "1.5", "1024.5", "1e20", "1e300", "1000000000000000"]);
    }
}
