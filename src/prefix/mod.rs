//! Who holds which prefix.
