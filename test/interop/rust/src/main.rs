//! readlog HOST:PORT KEY reads a public log over HTTP by the crates tlog_tiles and
//! signed_note: its checkpoint, every leaf with a proof, and consistency with smaller trees.

use signed_note::{Note, StandardVerifier, VerifierList};
use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use tlog_tiles::{
    check_record, check_tree, prove_record, prove_tree, record_hash, tree_hash, Checkpoint, Tile,
    TileHashReader, TileReader,
};

const HEIGHT: u8 = 8;
const WIDTH: u64 = 1 << HEIGHT;

struct Log {
    address: String,
}

impl Log {
    fn get(&self, path: &str) -> Result<Vec<u8>, Box<dyn Error>> {
        let mut stream = TcpStream::connect(&self.address)?;
        let host = &self.address;
        write!(stream, "GET /log/{path} HTTP/1.0\r\nHost: {host}\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let head = answer
            .windows(4)
            .position(|w| w == b"\r\n\r\n")
            .ok_or("no HTTP answer")?;
        if !answer.starts_with(b"HTTP/1.0 200") && !answer.starts_with(b"HTTP/1.1 200") {
            return Err(format!("{path}: {}", String::from_utf8_lossy(&answer)).into());
        }
        Ok(answer[head + 4..].to_vec())
    }

    fn leaves(&self, size: u64) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
        let mut all = Vec::new();
        for n in 0..size.div_ceil(WIDTH) {
            let width = (size - n * WIDTH).min(WIDTH) as u32;
            let path = Tile::new(HEIGHT, 0, n, width, true).path();
            let bundle = self.get(&path.replace("tile/8/data/", "tile/entries/"))?;
            let mut rest = bundle.as_slice();
            while rest.len() >= 2 {
                let length = u16::from_be_bytes([rest[0], rest[1]]) as usize;
                all.push(rest.get(2..2 + length).ok_or("a leaf is cut off")?.to_vec());
                rest = &rest[2 + length..];
            }
        }
        Ok(all)
    }
}

impl TileReader for Log {
    fn height(&self) -> u8 {
        HEIGHT
    }

    fn read_tiles(&self, tiles: &[Tile]) -> Result<Vec<Vec<u8>>, tlog_tiles::Error> {
        tiles
            .iter()
            .map(|tile| {
                self.get(&tile.path().replace("tile/8/", "tile/"))
                    .map_err(|e| tlog_tiles::Error::InvalidInput(e.to_string()))
            })
            .collect()
    }

    fn save_tiles(&self, _: &[Tile], _: &[Vec<u8>]) {}
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let (address, key) = (args[1].clone(), &args[2]);
    let log = Log { address };

    let note = Note::from_bytes(&log.get("checkpoint")?)?;
    let key = StandardVerifier::new(key)?;
    let (verified, _) = note.verify(&VerifierList::new(vec![Box::new(key)]))?;
    if verified.len() != 1 {
        return Err("the log has not signed the checkpoint".into());
    }
    let checkpoint = Checkpoint::from_bytes(note.text()).map_err(|e| e.to_string())?;
    let (size, root) = (checkpoint.size(), *checkpoint.hash());

    let tree = TileHashReader::new(size, root, &log);
    let leaves = log.leaves(size)?;
    if leaves.len() as u64 != size {
        return Err(format!("{} leaves, the checkpoint is of {size}", leaves.len()).into());
    }
    for (index, leaf) in leaves.iter().enumerate() {
        let proof = prove_record(size, index as u64, &tree)?;
        check_record(&proof, size, root, index as u64, record_hash(leaf))?;
    }
    for before in (1..size).step_by(31) {
        let proof = prove_tree(size, before, &tree)?;
        check_tree(&proof, size, root, before, tree_hash(before, &tree)?)?;
    }
    println!("{size}");
    Ok(())
}
