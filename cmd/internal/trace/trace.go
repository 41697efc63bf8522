// SPDX-License-Identifier: Apache-2.0

// Package trace reads recorded traffic, one request per line. It supports access logs in the common and combined
// formats of nginx and Apache, and JSON lines. Files may be compressed by gzip. Its memory does not depend on the
// size of a file.
//
// # Access logs
//
// A log line contains the address, the method, the path, the query parameters, and in the combined format the
// headers User-Agent and Referer. Its time has a resolution of one second. A host name (from Apache's
// HostnameLookups) or a hyphen does not count as an address. An invalid request line, for example of TLS sent to a
// plain port, has neither method nor path. Fields after the combined format are ignored.
//
// # JSON lines
//
//	{"at":12.5,"method":"GET","path":"/","host":"","ip":"192.0.2.1","headers":{},"query":{},"jwt":{},"cost":null,
//	 "ai":{"model":"gpt-4o","prompt_tokens":812,"max_tokens":400},"usage":{"input":812,"cached":0,"output":208}}
//
// Every field except at is optional; method, path, host and ip may also be empty. Unknown fields are errors. Times
// are seconds since any epoch, at least 0 and below 2^53 µs, truncated to microseconds. Header names are
// case-insensitive. The query of a path is parsed unless the field query has the same parameters. Claims are
// strings, numbers or booleans; other claims are ignored. A cost must be positive.
//
// # Attributes
//
// Paths and hosts are normalized like in the gateway and the API: paths have no empty and no dot segments, and
// hosts have no port. A rule therefore matches the same requests.
//
// # Order
//
// Requests have the order of the file and the times in its lines. Servers log requests when they end, so times may
// step back; the time of a bucket never does. With several files, a file must not begin before the previous one.
// [Sorted] returns all lines in the order of their times.
package trace

import (
	"fmt"

	"github.com/metehq/mete/bucket"
)

// A Format is the format of a trace.
type Format uint8

const (
	FormatAuto     Format = iota // JSONL if the first line begins with a brace, otherwise Combined
	FormatCombined               // access logs, common or combined
	FormatJSONL                  // one JSON object per line
)

var formatNames = [...]string{FormatAuto: "auto", FormatCombined: "combined", FormatJSONL: "jsonl"}

// String returns the name of the format: "auto", "combined" or "jsonl".
func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// ParseFormat returns the format with the name s.
func ParseFormat(s string) (Format, error) {
	for f, name := range formatNames {
		if s == name {
			return Format(f), nil
		}
	}
	return 0, fmt.Errorf("unknown trace format %q: it must be auto, combined or jsonl", s)
}

// A LineError is the error of an invalid line. The reader can continue after it.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// maxInstant is the first instant that some stores cannot represent exactly.
const maxInstant bucket.Instant = 1 << 53
