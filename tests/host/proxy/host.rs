//! What one proxy does differently from another, as data.

/// A proxy's habits as far as the module can notice them.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// Writing shared data with compare-and-set token 0 overwrites; elsewhere it only creates.
    pub cas_zero_overwrites: bool,
    /// The status the proxy makes up for a server that refuses the connection; none: a callback without headers.
    pub refused: Option<u16>,
    /// The same for a server that does not answer in time.
    pub timed_out: Option<u16>,
    /// Most of a body that is held for the filter; a longer one is answered with 413.
    pub buffer_limit: usize,
}

impl Host {
    /// Envoy 1.40 with `allow_on_headers_stop_iteration`.
    pub const ENVOY: Self =
        Self { cas_zero_overwrites: true, refused: Some(503), timed_out: Some(504), buffer_limit: 1 << 20 };
}
