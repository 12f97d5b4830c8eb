//! The HTTP edge: verifies a delivery, stores it, answers.
