//! Files for other tools.

pub mod csv;
pub mod difference;
pub mod folded;
pub mod json;
pub mod svg;
pub mod wakers;

pub use folded::Coverage;
