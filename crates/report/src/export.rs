//! Files for other tools.

pub mod csv;
pub mod folded;
pub mod json;
pub mod svg;

pub use folded::Coverage;
