//! Accepting connections, and the two ways to end them: let answers in flight finish, or reset all at once.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Phase;

/// A listener on `addr`, which may still hold connections of a predecessor in TIME_WAIT.
pub(super) fn bind(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(1024)
}

/// Serves until told to stop; returns when the last connection is gone.
pub(super) async fn serve(listener: TcpListener, router: Router, phase: watch::Receiver<Phase>) {
    let mut connections = JoinSet::new();
    let mut watching = phase.clone();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => { connections.spawn(connection(stream, router.clone(), phase.clone())); }
                // Out of descriptors, most likely: others may close meanwhile.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next() => {}
            _ = watching.changed() => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn connection(stream: TcpStream, router: Router, mut phase: watch::Receiver<Phase>) {
    let _ = stream.set_nodelay(true);
    let connection = Connection::default();
    let io = TokioIo::new(Socket { stream, connection: connection.clone() });
    let service = service_fn({
        let connection = connection.clone();
        move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(connection.clone());
            let mut router = router.clone();
            async move { tower_service::Service::call(&mut router, request).await }
        }
    });
    // HTTP/1.1, and HTTP/2 from clients that know that it is spoken.
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new());
    let mut serving = std::pin::pin!(builder.serve_connection(io, service));
    loop {
        let now = *phase.borrow_and_update();
        match now {
            Phase::Serving => {}
            Phase::Stopping => serving.as_mut().graceful_shutdown(),
            Phase::Killed => return connection.reset_when_dropped(),
        }
        tokio::select! {
            _ = serving.as_mut() => return,
            changed = phase.changed() => if changed.is_err() { return connection.reset_when_dropped() },
        }
    }
}

/// Handle to the connection a request came on.
#[derive(Clone, Debug, Default)]
pub(super) struct Connection(Arc<AtomicBool>);

impl Connection {
    /// Makes the connection's end a reset instead of an orderly close.
    pub(super) fn reset_when_dropped(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Socket {
    stream: TcpStream,
    connection: Connection,
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.connection.0.load(Ordering::Relaxed) {
            let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A FIN ahead of the reset would look like an orderly end.
        if self.connection.0.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
