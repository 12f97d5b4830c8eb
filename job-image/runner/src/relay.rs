//! The loopback listener: what pi sends to its "provider" goes to the gateway's model socket, byte for byte.
//!
//! Anything in the container may connect here, and may say what it likes: the gateway looks at every request.

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::fault::Fault;

/// Connections at a time. A job that opens more is refused here, and nothing else suffers.
const MOST: usize = 32;
/// How long a connection waits for a gateway that is being restarted.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// Listens from now on.
pub(crate) fn listen(port: u16, socket: &str) -> Result<(), Fault> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(|error| Fault::host("the loopback listener cannot be opened", error))?;
    let socket: Arc<Path> = PathBuf::from(socket).into();
    let open = Arc::new(AtomicUsize::new(0));
    std::thread::spawn(move || {
        for client in listener.incoming() {
            // An error here is that of one connection (or too many descriptors, which passes).
            let Ok(client) = client else { continue };
            if open.fetch_add(1, Ordering::SeqCst) >= MOST {
                open.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            let (socket, open) = (Arc::clone(&socket), Arc::clone(&open));
            std::thread::spawn(move || {
                let _the_client_sees_it = forward(client, &socket);
                open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    Ok(())
}

fn forward(client: TcpStream, socket: &Path) -> io::Result<()> {
    client.set_nodelay(true)?;
    let gateway = reach(socket)?;
    let (mut from_client, mut to_gateway) = (client.try_clone()?, gateway.try_clone()?);
    let up = std::thread::spawn(move || {
        let copied = io::copy(&mut from_client, &mut to_gateway);
        let _already_closed = to_gateway.shutdown(Shutdown::Write);
        copied
    });
    let (mut from_gateway, mut to_client) = (gateway, client);
    let copied = io::copy(&mut from_gateway, &mut to_client);
    // When the gateway has said all, the exchange is over, whatever the client still wants to send.
    let _already_closed = to_client.shutdown(Shutdown::Both);
    let _already_closed = from_gateway.shutdown(Shutdown::Both);
    let _said_by_the_other_direction = up.join();
    copied.map(|_| ())
}

/// Connects to the gateway; while a worker is restarted its socket is gone for some seconds.
fn reach(socket: &Path) -> io::Result<UnixStream> {
    let until = Instant::now() + PATIENCE;
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() >= until => return Err(error),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn what_a_client_sends_reaches_the_socket_and_the_answer_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("model.sock");
        let gateway = UnixListener::bind(&socket).unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = gateway.accept().unwrap();
            let mut asked = String::new();
            stream.read_to_string(&mut asked).unwrap();
            stream.write_all(asked.to_uppercase().as_bytes()).unwrap();
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (served, _) = listener.accept().unwrap();
        std::thread::spawn(move || forward(served, &socket));

        client.write_all(b"hello").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "HELLO");
    }
}
