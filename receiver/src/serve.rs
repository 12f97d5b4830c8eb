//! The accept loop: HTTP/1 connections, bounded in number, each with a limit for how slowly a head may come.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

/// How long a connection may be silent before a request, and take for its head.
const HEAD_TIME: Duration = Duration::from_secs(60);
/// How long open requests may take after the word to stop.
const STOP_TIME: Duration = Duration::from_secs(10);
/// The pause after a failed accept: usually there are no file descriptors left, and some are about to come back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

pub(crate) async fn serve(
    router: Router,
    listener: TcpListener,
    connections: usize,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let places = Arc::new(Semaphore::new(connections.max(1)));
    let (stop, stopping) = watch::channel(false);
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let Some((stream, place)) = accepted else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (router, stopping) = (router.clone(), stopping.clone());
        tokio::spawn(async move {
            connection(router, stream, stopping).await;
            drop(place);
        });
    }
    drop(listener);
    drop(stopping);
    // Every connection holds a receiver: the channel closes with the last of them.
    let _ = stop.send(true);
    let _ = timeout(STOP_TIME, stop.closed()).await;
    Ok(())
}

/// A place first, then a connection for it: what finds no place waits in the kernel's queue.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            None
        }
    }
}

async fn connection(router: Router, stream: TcpStream, mut stopping: watch::Receiver<bool>) {
    // An answer is one small packet: it must not wait for another one.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(router);
    // `half_close`: a sender that ended its side in the middle of a body still gets its 400.
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .half_close(true)
            .serve_connection(TokioIo::new(stream), service)
    );
    let mut told = false;
    loop {
        tokio::select! {
            // A broken connection is its sender's affair; what it meant for a delivery was logged there.
            _ = connection.as_mut() => return,
            _ = stopping.wait_for(|stop| *stop), if !told => {
                told = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}
