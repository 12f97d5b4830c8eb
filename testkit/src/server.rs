//! A small HTTP/1.1 server on a runtime of its own, so that it serves while a test blocks, and that can go away and
//! come back on the same port.
//!
//! A handler that answers with [`Cut`] in the response's extensions closes the connection without a byte: the peer
//! cannot know whether its request was performed.

use axum::Router;
use axum::body::Body;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;
use tower::ServiceExt;

/// Mark of a response that must never be sent: the connection is closed instead.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the connection is cut on purpose")]
pub(crate) struct Cut;

pub(crate) struct Server {
    address: SocketAddr,
    app: Router,
    runtime: Mutex<Option<Runtime>>,
}

impl Server {
    /// Binds `listen` (port 0 chooses one) and serves.
    pub(crate) fn start(listen: SocketAddr, app: impl FnOnce(SocketAddr) -> Router) -> std::io::Result<Self> {
        let listener = TcpListener::bind(listen)?;
        let address = listener.local_addr()?;
        let app = app(address);
        let runtime = Mutex::new(Some(serve_on_a_runtime(listener, app.clone())?));
        Ok(Self { address, app, runtime })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes every connection and the port: from now on connecting is refused.
    pub(crate) fn stop(&self) {
        end(self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take());
        for _ in 0..200 {
            if TcpStream::connect_timeout(&self.address, Duration::from_millis(50)).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Serves again, on the same port. Does nothing when it still does.
    pub(crate) fn start_again(&self) -> std::io::Result<()> {
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        if runtime.is_none() {
            *runtime = Some(serve_on_a_runtime(TcpListener::bind(self.address)?, self.app.clone())?);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// A runtime with one worker thread, for things that must go on whatever the test's own runtime does.
pub(crate) fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("testkit")
        .enable_all()
        .build()
}

/// Ends a runtime from anywhere, an asynchronous test included (dropping one there would panic).
pub(crate) fn end(runtime: Option<Runtime>) {
    if let Some(runtime) = runtime {
        runtime.shutdown_background();
    }
}

fn serve_on_a_runtime(listener: TcpListener, app: Router) -> std::io::Result<Runtime> {
    listener.set_nonblocking(true)?;
    let runtime = runtime()?;
    let entered = runtime.enter();
    let listener = tokio::net::TcpListener::from_std(listener)?;
    drop(entered);
    runtime.spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => drop(tokio::spawn(serve_connection(stream, app.clone()))),
                // Out of descriptors, say: give the others time to close theirs.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    });
    Ok(runtime)
}

async fn serve_connection(stream: tokio::net::TcpStream, app: Router) {
    let _ = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let app = app.clone();
        async move {
            let answer: Result<axum::response::Response, Infallible> = app.oneshot(request.map(Body::new)).await;
            match answer {
                Ok(response) if response.extensions().get::<Cut>().is_none() => Ok(response),
                Ok(_) => Err(Cut),
                Err(never) => match never {},
            }
        }
    });
    // What goes wrong here is the peer's doing, or a cut of ours.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
