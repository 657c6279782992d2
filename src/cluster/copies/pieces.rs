//! The files of a copy, divided into pieces that a chunk takes.

use crate::cluster::copies::protocol::CHUNK_HEADER_BYTES;
use crate::types::count;

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    pub file: u32,
    pub offset: u64,
    pub length: u64,
}

/// All files in pieces, in order. Files that are empty have none.
pub fn pieces(files: &[(String, u64)], chunk_bytes: u64) -> impl Iterator<Item = Piece> {
    let chunk_bytes = chunk_bytes.saturating_sub(count(CHUNK_HEADER_BYTES)).max(1);
    (0..).zip(files).flat_map(move |(file, (_, bytes))| {
        (0..bytes.div_ceil(chunk_bytes)).map(move |number| {
            let offset = number * chunk_bytes;
            Piece { file, offset, length: chunk_bytes.min(bytes - offset) }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_every_byte_of_every_file_once() {
        let sizes = [0, 1, 10, 11, 20, 0, 35];
        let files: Vec<_> = sizes.iter().map(|bytes| (String::new(), *bytes)).collect();
        let mut ends = vec![0; sizes.len()];
        for piece in pieces(&files, 10 + count(CHUNK_HEADER_BYTES)) {
            let end = ends.get_mut(usize::try_from(piece.file).expect("few")).expect("there is such a file");
            assert_eq!(piece.offset, *end);
            assert!(piece.length > 0 && piece.length <= 10, "{piece:?}");
            *end += piece.length;
        }
        assert_eq!(ends, sizes);
    }
}
