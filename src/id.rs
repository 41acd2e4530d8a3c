//! Names that outlive a snapshot.

/// Names an endpoint in tables that outlive a snapshot. Address and port, never the address alone: two ranks of one
/// machine have separate caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(pub u64);
