//! Passwords: made here, hashed with argon2id, compared in constant time. A hash takes some 25 ms, so it runs off the loop.

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash};
use rand::RngExt as _;

/// Letters that nobody confuses when reading them aloud.
const LETTERS: &[u8] = b"abcdefghjkmnpqrstuvwxyz23456789";
/// 20 letters of 31: 99 bits.
const LENGTH: usize = 20;

/// Why a password could not be hashed.
#[derive(Debug, thiserror::Error)]
#[error("the password could not be hashed")]
pub struct HashError;

/// A new password, in groups of five for reading.
#[must_use]
pub fn random() -> String {
    let mut random = rand::rng();
    let letters: Vec<char> = (0..LENGTH)
        .map(|_| char::from(LETTERS[random.random_range(0..LETTERS.len())]))
        .collect();
    letters
        .chunks(5)
        .map(|group| group.iter().collect::<String>())
        .collect::<Vec<_>>()
        .join("-")
}

/// The hash as text, with its salt and parameters.
///
/// # Errors
/// When the machine has no memory or no random numbers left.
pub async fn hash(password: String) -> Result<String, HashError> {
    tokio::task::spawn_blocking(move || {
        Argon2::default()
            .hash_password(password.as_bytes())
            .map(|hash| hash.to_string())
            .map_err(|_| HashError)
    })
    .await
    .map_err(|_| HashError)?
}

/// Whether the password is the one of the hash. A hash that cannot be read fits none.
pub async fn fits(password: String, hash: String) -> bool {
    tokio::task::spawn_blocking(move || {
        PasswordHash::new(&hash).is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
    })
    .await
    .unwrap_or(false)
}

/// Whether a name may be used to sign in; the reason when not.
///
/// # Errors
/// What is allowed, in words.
pub fn check_name(name: &str) -> Result<(), &'static str> {
    let fine = (1..=40).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b));
    if fine {
        Ok(())
    } else {
        Err("allowed are 1 to 40 lower-case letters, digits, `-`, `_` and `.`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_fits_its_own_hash_and_no_other() {
        let (one, other) = (random(), random());
        let hash = hash(one.clone()).await.expect("it hashes");
        assert!(hash.starts_with("$argon2id$") && !hash.contains(&one));
        assert!(fits(one, hash.clone()).await);
        assert!(!fits(other, hash).await);
        assert!(!fits("x".to_owned(), "no hash".to_owned()).await);
    }

    #[test]
    fn a_random_password_is_long_and_readable() {
        let password = random();
        assert_eq!(password.len(), 23);
        assert_ne!(password, random());
    }
}
