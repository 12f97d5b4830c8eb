//! The web panel and its JSON API over the queue.
