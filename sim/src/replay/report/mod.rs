//! What a replay came to.

mod summary;

pub use summary::Summary;
