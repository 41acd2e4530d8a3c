//! A filter that does nothing.

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;

struct Empty;

impl Context for Empty {}

impl HttpContext for Empty {}

impl RootContext for Empty {
    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }

    fn create_http_context(&self, _: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Self))
    }
}

/// What the proxy calls first.
mod entry {
    proxy_wasm::main! {{
        proxy_wasm::set_root_context(|_| Box::new(super::Empty));
    }}
}
