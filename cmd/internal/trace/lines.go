// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// MaxLineBytes bounds a line including its newline. A longer line is a [LineError].
const MaxLineBytes = 1 << 20

// readBytes is the size of one read. The data should fit into the processor's cache until its lines are decided.
const readBytes = 1 << 16

var errTooLong = fmt.Errorf("longer than %d bytes", MaxLineBytes)

// A lineReader splits a text into lines.
type lineReader struct {
	in    *bufio.Reader
	long  []byte // start of a line that is longer than one read
	bytes int64  // of the returned lines
}

func newLineReader(in io.Reader) lineReader {
	return lineReader{in: bufio.NewReaderSize(in, readBytes)}
}

// next returns the next line with its newline, which the last line may lack. The error is io.EOF at the end,
// errTooLong for a skipped line, or an error of the reader.
func (r *lineReader) next() (string, error) {
	r.long = r.long[:0]
	for length := 0; ; {
		part, err := r.in.ReadSlice('\n')
		r.bytes += int64(len(part))
		length += len(part)
		whole := err == nil || errors.Is(err, io.EOF) && length > 0
		switch {
		case whole && length > MaxLineBytes:
			return "", errTooLong
		case whole && length == len(part):
			return string(part), nil
		case !whole && !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		case length <= MaxLineBytes:
			r.long = append(r.long, part...)
		}
		if whole {
			return string(r.long), nil
		}
	}
}
