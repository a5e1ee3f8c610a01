//! A lean MongoDB wire client for the lab and the tools.
