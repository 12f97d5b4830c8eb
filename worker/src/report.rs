//! What a job says on the forge.
