//! Standard output, whose reader may go away (`| head`): that is no error.

use std::io::{self, Write};

/// Writes until its reader has gone; what is written after that goes nowhere.
#[derive(Debug)]
pub(crate) struct Output<W> {
    writer: W,
    closed: bool,
}

impl<W: Write> Output<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self {
            writer,
            closed: false,
        }
    }

    /// Whether nobody reads any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The result, or if the reader has gone, `gone`. Another error says of what it is one.
    fn or_gone<T>(&mut self, result: io::Result<T>, gone: T) -> io::Result<T> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(gone)
            }
            result => result.map_err(|error| {
                let text = format!("standard output: {error}");
                io::Error::new(error.kind(), text)
            }),
        }
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        let result = self.writer.write(bytes);
        self.or_gone(result, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        let result = self.writer.flush();
        self.or_gone(result, ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Refuses(io::ErrorKind);

    impl Write for Refuses {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_no_error() {
        let mut output = Output::new(Refuses(io::ErrorKind::BrokenPipe));
        assert!(!output.is_closed());
        output.write_all(b"a row").expect("no error");
        output.flush().expect("no error");
        assert!(output.is_closed());
    }

    #[test]
    fn a_full_disk_is_one() {
        let mut output = Output::new(Refuses(io::ErrorKind::StorageFull));
        let error = output.write_all(b"a row").expect_err("an error");
        assert!(
            error.to_string().starts_with("standard output: "),
            "{error}"
        );
        assert!(output.flush().is_err());
        assert!(!output.is_closed());
    }
}
