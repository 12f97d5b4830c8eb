//! Building and verifying the job image.
