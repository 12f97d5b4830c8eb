//! The world that the stories play in: one private PostgreSQL, one stub forge, one scripted model, and the real services.
