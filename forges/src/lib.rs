//! One module per forge: verify a delivery, read it into an event, call its API.
