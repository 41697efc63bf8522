// SPDX-License-Identifier: Apache-2.0

// Package trace reads recorded traffic, one request a line: access logs in the
// common and the combined format of nginx and Apache, and JSON lines, each as it
// is or compressed by gzip. It holds a piece of the file at a time, however large
// that is.
//
// # Access logs
//
// A log line supplies the address, the method, the path without its query, the
// query parameters, and the headers User-Agent and Referer. Its grain is a
// second. The address is what the server saw: a name in its place (Apache's
// HostnameLookups), or a hyphen, is no address. A request line that makes no
// sense (a scanner's, or TLS spoken to a plain port) supplies neither method
// nor path. Whatever follows the combined format's last field is not read.
//
// # JSON lines
//
//	{"at":12.5,"method":"GET","path":"/","host":"","ip":"192.0.2.1","headers":{},"query":{},"jwt":{},"cost":null}
//
// Every field but at is optional; method, path, host and ip may as well be
// empty. Unknown fields are errors. Times are seconds since the epoch of the
// reader's choice, at least 0 and below 2^53 µs, cut to whole microseconds.
// Header names are in any case. A path is as it was sent; its query, if it has
// one, is read as one, except for parameters that query names itself. Claims are strings, numbers or booleans;
// others do not count as present. A cost is above 0.
//
// # Attributes
//
// Paths have no empty and no dot segments, hosts no port, as in the front doors:
// a rule that matches a request there matches it in a trace.
//
// # Order
//
// Lines are taken in the order of the file, and with the time they state. Logs
// are written when requests end, so times may run backwards; inside a bucket
// they do not. Of several files one that begins before the one in front of it is
// refused. [Sorted] returns all lines in the order of their times.
package trace

import (
	"fmt"

	"github.com/metehq/mete/bucket"
)

// A Format is how a trace is written.
type Format uint8

const (
	Auto     Format = iota // JSONL where the first line begins with a brace, else Combined
	Combined               // access logs, common or combined
	JSONL                  // an object a line
)

var formatNames = [...]string{Auto: "auto", Combined: "combined", JSONL: "jsonl"}

// String returns the format's name: "auto", "combined" or "jsonl".
func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// ParseFormat returns the format that s names.
func ParseFormat(s string) (Format, error) {
	for f, name := range formatNames {
		if s == name {
			return Format(f), nil
		}
	}
	return 0, fmt.Errorf("unknown trace format %q: it must be auto, combined or jsonl", s)
}

// A LineError is a line that cannot be read. The reader can go on after it.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// maxInstant is the first instant that is not exact in every store.
const maxInstant bucket.Instant = 1 << 53
