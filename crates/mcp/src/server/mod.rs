//! The tools here, served to any client over stdio or HTTP.
