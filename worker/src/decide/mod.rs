//! From a delivery to the jobs that it starts.
