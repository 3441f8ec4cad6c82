//! A proxy between members and the server, which loses requests and answers, and lies

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    /// It does not arrive.
    Lose,
    /// It is carried out, and no answer comes.
    LoseAnswer,
    /// It is carried out, and half of the answer comes.
    CutAnswer,
    /// It is carried out, and the member's process dies.
    Die,
}

type Decide = Box<dyn FnMut(&str) -> Fate + Send>;
type Lie = Box<dyn FnMut(&str, &mut Value) + Send>;

/// The proxy. It hears of each request as `METHOD path`.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    /// They are asked in turn.
    servers: Arc<Mutex<Vec<SocketAddr>>>,
    decide: Arc<Mutex<Decide>>,
    lie: Arc<Mutex<Lie>>,
    asked: Arc<Mutex<Vec<String>>>,
    pub(crate) died: Arc<Notify>,
}

impl Proxy {
    pub(crate) async fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let decide: Decide = Box::new(|_| Fate::Pass);
        let lie: Lie = Box::new(|_, _| {});
        let (asked, died) = Default::default();
        let proxy = Self {
            address,
            servers: Arc::new(Mutex::new(vec![server])),
            decide: Arc::new(Mutex::new(decide)),
            lie: Arc::new(Mutex::new(lie)),
            asked,
            died,
        };
        let serving = proxy.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let serving = serving.clone();
                tokio::spawn(async move { serving.serve(stream).await });
            }
        });
        proxy
    }

    /// Asks another server from now on.
    pub(crate) fn turn_to(&self, server: SocketAddr) {
        *self.servers.lock().unwrap() = vec![server];
    }

    /// Asks one more server in turn from now on.
    pub(crate) fn turn_also_to(&self, server: SocketAddr) {
        self.servers.lock().unwrap().push(server);
    }

    /// Decides about the requests from now on.
    pub(crate) fn decide(&self, decide: impl FnMut(&str) -> Fate + Send + 'static) {
        *self.decide.lock().unwrap() = Box::new(decide);
    }

    /// All requests pass again, with true answers.
    pub(crate) fn calm(&self) {
        self.decide(|_| Fate::Pass);
        *self.lie.lock().unwrap() = Box::new(|_, _| {});
    }

    /// Changes the JSON of answers from now on.
    pub(crate) fn lie(&self, lie: impl FnMut(&str, &mut Value) + Send + 'static) {
        *self.lie.lock().unwrap() = Box::new(lie);
    }

    /// The requests since the last call.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    async fn serve(&self, mut stream: TcpStream) {
        let Some((head, body)) = read(&mut stream).await else { return };
        let line = head.lines().next().unwrap_or_default();
        let name = line.rsplit_once(' ').map_or(line, |(name, _)| name).to_owned();
        self.asked.lock().unwrap().push(name.clone());
        let fate = (self.decide.lock().unwrap())(&name);
        if fate == Fate::Lose {
            return;
        }
        let server = {
            let mut servers = self.servers.lock().unwrap();
            servers.rotate_left(1);
            servers[0]
        };
        let mut to = TcpStream::connect(server).await.unwrap();
        let (first, rest) = head.split_once("\r\n").unwrap();
        to.write_all(format!("{first}\r\nconnection: close\r\n{rest}").as_bytes()).await.unwrap();
        to.write_all(&body).await.unwrap();
        let mut answer = Vec::new();
        if to.read_to_end(&mut answer).await.is_err() {
            return;
        }
        let answer = self.told(&name, answer);
        match fate {
            Fate::LoseAnswer => {}
            Fate::Die => self.died.notify_one(),
            Fate::CutAnswer => drop(stream.write_all(&answer[..answer.len() / 2]).await),
            _ => drop(stream.write_all(&answer).await),
        }
    }

    fn told(&self, name: &str, answer: Vec<u8>) -> Vec<u8> {
        let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
            return answer;
        };
        let Ok(mut body) = serde_json::from_slice::<Value>(&answer[end + 4..]) else {
            return answer;
        };
        (self.lie.lock().unwrap())(name, &mut body);
        let status = String::from_utf8_lossy(&answer[..end]);
        let status = status.lines().next().unwrap_or_default().to_owned();
        let body = body.to_string();
        let length = body.len();
        format!("{status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
            .into_bytes()
    }
}

/// A request's head without its connection header, and its body.
async fn read(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 16 << 10];
        let count = stream.read(&mut part).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&part[..count]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end + 4]).into_owned();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
        });
        let length: usize = length.unwrap_or(0);
        let mut body = bytes.split_off(end + 4);
        let have = body.len();
        if have < length {
            body.resize(length, 0);
            stream.read_exact(&mut body[have..]).await.ok()?;
        }
        return Some((head, body));
    }
}
