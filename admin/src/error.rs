//! What can go wrong with a page, and the answer to it.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use queue::StoreError;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// Nobody is signed in. A person is led to the sign-in page, a program gets 401.
    #[error("sign in first")]
    NotSignedIn {
        /// Where to go afterwards; `None` for programs.
        back: Option<String>,
    },
    /// A viewer wanted to do something.
    #[error("only an operator may do this")]
    OperatorsOnly,
    /// No such address.
    #[error("there is no such page")]
    NoPage,
    /// No such row.
    #[error("there is no {0}")]
    NotFound(String),
    /// The address or form holds something that cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The row is in a state in which this cannot be done.
    #[error("{0}")]
    WrongState(String),
    /// Too many live logs are open.
    #[error("too many live logs are open; close one, or read the page without it")]
    TooManyStreams,
    /// PostgreSQL is away or slow.
    #[error("the database does not answer; jobs and deliveries are safe, the panel has to wait")]
    Store(#[source] StoreError),
    /// A template could not be filled: a fault of ours.
    #[error("the page could not be made")]
    Template(#[from] askama::Error),
}

impl From<StoreError> for PageError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound { .. } => {
                Self::NotFound(error.to_string().trim_start_matches("there is no ").to_owned())
            }
            StoreError::WrongState { .. } => Self::WrongState(error.to_string()),
            StoreError::LeaseLost { .. }
            | StoreError::TakenOver { .. }
            | StoreError::Schema { .. }
            | StoreError::Unreadable { .. }
            | StoreError::Migrate(_)
            | StoreError::Database(_) => Self::Store(error),
        }
    }
}

impl PageError {
    fn status(&self) -> StatusCode {
        match self {
            Self::NotSignedIn { .. } => StatusCode::UNAUTHORIZED,
            Self::OperatorsOnly => StatusCode::FORBIDDEN,
            Self::NoPage | Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Unreadable(_) => StatusCode::BAD_REQUEST,
            Self::WrongState(_) => StatusCode::CONFLICT,
            Self::TooManyStreams | Self::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Template(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    status: u16,
    message: String,
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        if let Self::NotSignedIn { back: Some(back) } = &self {
            let query = if back == "/" {
                String::new()
            } else {
                format!("?back={}", crate::show::query(back))
            };
            return Redirect::to(&format!("/sign-in{query}")).into_response();
        }
        let status = self.status();
        if status.is_server_error() {
            tracing::error!(error = %self, source = ?std::error::Error::source(&self).map(ToString::to_string), "a page failed");
        }
        let page = ErrorPage {
            status: status.as_u16(),
            message: self.to_string(),
        };
        match page.render() {
            Ok(html) => (status, Html(html)).into_response(),
            Err(_) => (status, self.to_string()).into_response(),
        }
    }
}
