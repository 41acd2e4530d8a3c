//! What replays came to, in figures and as tables.

mod summary;
mod table;
#[cfg(test)]
mod tests;

pub use summary::{Summary, TPOT_GOAL, TTFT_GOAL};
pub(super) use table::markdown;
pub use table::table;
