//! Signing in and out, and who a request comes from.
//!
//! A session is a random token in a cookie; the database has only its SHA-256. Sessions end after twelve hours, at sign-out,
//! and when the password changes. Guessing is slow: a name that failed often waits, also with the right password.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use askama::Template;
use axum::Form;
use axum::extract::{FromRequestParts, Query, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use queue::Role;
use rand::RngExt as _;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::Admin;
use crate::error::PageError;
use crate::{password, shell};

const COOKIE: &str = "pi_dispatch_session";
const LASTS: Duration = Duration::from_secs(12 * 3600);
/// Failures of a name before it has to wait, and how long.
const FAILURES: u32 = 5;
const WAIT: Duration = Duration::from_secs(60);
/// Names that are remembered; more are not needed by people.
const REMEMBERED: usize = 1_000;
/// What a name that nobody has is compared with, so that it takes as long as one that somebody has.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$MDEyMzQ1Njc4OWFiY2RlZg$Z2Vlbl93YWNodHdvb3JkX2hvb3J0X2hpZXJiaWo";

/// Somebody who is signed in.
#[derive(Debug, Clone)]
pub struct SignedIn {
    /// The name.
    pub name: String,
    /// What may be done.
    pub role: Role,
}

/// Somebody who may act.
#[derive(Debug, Clone)]
pub struct Operator(pub SignedIn);

impl FromRequestParts<Admin> for SignedIn {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, admin: &Admin) -> Result<Self, PageError> {
        let session = match token(&parts.headers) {
            Some(token) => admin.queue.session(&digest(&token)).await?,
            None => None,
        };
        match session {
            Some(session) => Ok(Self {
                name: session.user.name,
                role: session.user.role,
            }),
            None => {
                let path = parts.uri.path();
                let person = !path.starts_with("/api/") && !path.ends_with("/live");
                Err(PageError::NotSignedIn {
                    back: person.then(|| path.to_owned()),
                })
            }
        }
    }
}

impl FromRequestParts<Admin> for Operator {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, admin: &Admin) -> Result<Self, PageError> {
        let who = SignedIn::from_request_parts(parts, admin).await?;
        match who.role {
            Role::Operator => Ok(Self(who)),
            Role::Viewer => Err(PageError::OperatorsOnly),
        }
    }
}

/// Failed sign-ins by name.
#[derive(Debug, Clone, Default)]
pub struct Attempts(Arc<Mutex<HashMap<String, (u32, Instant)>>>);

impl Attempts {
    fn must_wait(&self, name: &str) -> bool {
        let attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        attempts
            .get(name)
            .is_some_and(|(failures, last)| *failures >= FAILURES && last.elapsed() < WAIT)
    }

    fn failed(&self, name: &str) {
        let mut attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if attempts.len() >= REMEMBERED {
            attempts.retain(|_, (_, last)| last.elapsed() < WAIT);
        }
        if attempts.len() < REMEMBERED || attempts.contains_key(name) {
            let entry = attempts.entry(name.to_owned()).or_insert_with(|| (0, Instant::now()));
            *entry = (entry.0 + 1, Instant::now());
        }
    }

    fn worked(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

#[derive(Template)]
#[template(path = "sign-in.html")]
struct SignInPage {
    back: String,
    message: Option<&'static str>,
}

/// Where to go after the sign-in.
#[derive(Deserialize)]
pub struct Back {
    back: Option<String>,
}

/// `GET /sign-in`.
pub async fn form(Query(back): Query<Back>) -> Result<Response, PageError> {
    shell::page(&SignInPage {
        back: ours(back.back),
        message: None,
    })
}

/// What the form sends.
#[derive(Deserialize)]
pub struct SignIn {
    name: String,
    password: String,
    back: Option<String>,
}

/// `POST /sign-in`.
pub async fn sign_in(State(admin): State<Admin>, Form(form): Form<SignIn>) -> Result<Response, PageError> {
    let back = ours(form.back);
    if form.name.len() > 100 || form.password.len() > 1_000 {
        return refused(back, "name or password is wrong");
    }
    if admin.attempts.must_wait(&form.name) {
        return refused(back, "this name failed too often; wait a minute");
    }
    let user = admin.queue.user(&form.name).await?;
    let hash = user
        .as_ref()
        .map_or_else(|| NOBODY.to_owned(), |user| user.password.clone());
    let fits = password::fits(form.password, hash).await;
    let Some(user) = user.filter(|_| fits) else {
        admin.attempts.failed(&form.name);
        return refused(back, "name or password is wrong");
    };
    admin.attempts.worked(&form.name);
    let token = URL_SAFE_NO_PAD.encode(rand::rng().random::<[u8; 32]>());
    admin.queue.start_session(user.id, &digest(&token), LASTS).await?;
    let cookie = cookie(&admin, &token, LASTS.as_secs());
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(&back)).into_response())
}

fn refused(back: String, message: &'static str) -> Result<Response, PageError> {
    let page = shell::page(&SignInPage {
        back,
        message: Some(message),
    })?;
    Ok((StatusCode::FORBIDDEN, page).into_response())
}

/// `POST /sign-out`.
pub async fn sign_out(State(admin): State<Admin>, headers: HeaderMap) -> Result<Response, PageError> {
    if let Some(token) = token(&headers) {
        admin.queue.end_session(&digest(&token)).await?;
    }
    Ok(([(header::SET_COOKIE, cookie(&admin, "", 0))], Redirect::to("/sign-in")).into_response())
}

fn cookie(admin: &Admin, token: &str, seconds: u64) -> String {
    let https = admin
        .settings
        .public_url
        .as_deref()
        .is_some_and(|url| url.starts_with("https://"));
    let secure = if https { "; Secure" } else { "" };
    // Lax, not Strict: a link in a comment on the forge shall open the run.
    format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}")
}

fn token(headers: &HeaderMap) -> Option<String> {
    axum_extra::extract::CookieJar::from_headers(headers)
        .get(COOKIE)
        .map(|cookie| cookie.value().to_owned())
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// A way back that stays with us: a path of this host, never `//elsewhere`.
fn ours(back: Option<String>) -> String {
    back.filter(|path| path.starts_with('/') && !path.starts_with("//") && !path.contains(['\\', '\r', '\n']))
        .unwrap_or_else(|| "/".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_never_leads_elsewhere() {
        for (asked, back) in [
            ("/runs/7", "/runs/7"),
            ("//evil.example", "/"),
            ("https://evil.example", "/"),
            ("/\\evil", "/"),
        ] {
            assert_eq!(ours(Some(asked.to_owned())), back, "{asked}");
        }
    }

    #[tokio::test]
    async fn the_hash_of_nobody_is_one_that_can_be_compared_with() {
        assert!(argon2::password_hash::phc::PasswordHash::new(NOBODY).is_ok());
        assert!(!password::fits("x".to_owned(), NOBODY.to_owned()).await);
    }
}
