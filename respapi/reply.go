// SPDX-License-Identifier: Apache-2.0

package respapi

import "strconv"

// A reply is the text for the client. Its methods append one value each.
type reply struct {
	out   []byte
	resp3 bool
}

func (r *reply) number(kind byte, n int64) {
	r.out = append(r.out, kind)
	if 0 <= n && n < 10 {
		r.out = append(r.out, byte('0'+n), '\r', '\n')
		return
	}
	r.out = append(strconv.AppendInt(r.out, n, 10), '\r', '\n')
}

func (r *reply) integer(n int64) { r.number(':', n) }
func (r *reply) array(n int)     { r.number('*', int64(n)) }

// mapping begins a map of n pairs. In RESP2 it is an array of names and values.
func (r *reply) mapping(n int) {
	if r.resp3 {
		r.number('%', int64(n))
		return
	}
	r.array(2 * n)
}

// status appends a short text without line ends.
func (r *reply) status(text string) {
	r.out = append(append(append(r.out, '+'), text...), '\r', '\n')
}

func (r *reply) bulk(text string) {
	r.number('$', int64(len(text)))
	r.out = append(append(r.out, text...), '\r', '\n')
}

func (r *reply) bulkBytes(text []byte) {
	r.number('$', int64(len(text)))
	r.out = append(append(r.out, text...), '\r', '\n')
}

func (r *reply) null() {
	if r.resp3 {
		r.out = append(r.out, "_\r\n"...)
		return
	}
	r.out = append(r.out, "$-1\r\n"...)
}

// maxErrorBytes bounds an error. Errors repeat parts of a command.
const maxErrorBytes = 1024

// fail appends an error. The text starts with a code, such as ERR. Line ends in it become spaces.
func (r *reply) fail(text string) {
	r.out = append(r.out, '-')
	from := len(r.out)
	r.out = append(r.out, text[:min(len(text), maxErrorBytes)]...)
	for i := from; i < len(r.out); i++ {
		if r.out[i] == '\r' || r.out[i] == '\n' {
			r.out[i] = ' '
		}
	}
	r.out = append(r.out, '\r', '\n')
}

func (r *reply) protocolError(err protocolError) {
	r.fail("ERR Protocol error: " + string(err))
}
