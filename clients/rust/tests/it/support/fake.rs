//! A node that says what a test wants to hear, and takes down what it was asked. Only for what no real node does
//! when it is asked to.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub struct Fake {
    pub url: String,
    asked: Arc<Mutex<Vec<String>>>,
    answers: Arc<Mutex<VecDeque<String>>>,
}

impl Fake {
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it listens"));
        let fake = Self { url, asked: Arc::default(), answers: Arc::default() };
        let (asked, answers) = (fake.asked.clone(), fake.answers.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(answer(client, asked.clone(), answers.clone()));
            }
        });
        fake
    }

    /// What it answers next: a status, other headers and a body.
    pub fn answer(&self, status: u16, headers: &str, body: &str) {
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status} Told\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}");
        self.answers.lock().expect("no test panics with it").push_back(format!("{head}\r\n{body}"));
    }

    /// The heads of the requests so far.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no test panics with it").clone()
    }
}

async fn answer(
    mut client: TcpStream,
    asked: Arc<Mutex<Vec<String>>>,
    answers: Arc<Mutex<VecDeque<String>>>,
) {
    let mut request = Vec::new();
    let mut buffer = [0; 4_096];
    while !is_whole(&request) {
        let Ok(count @ 1..) = client.read(&mut buffer).await else { return };
        request.extend_from_slice(buffer.get(..count).expect("it is of the buffer"));
    }
    asked.lock().expect("no test panics with it").push(String::from_utf8_lossy(&request).into_owned());
    let answer = answers.lock().expect("no test panics with it").pop_front();
    // Without an answer it is silent.
    let Some(answer) = answer else { return std::future::pending().await };
    let _ = client.write_all(answer.as_bytes()).await;
    let _ = client.shutdown().await;
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().expect("it is a number"))
}
