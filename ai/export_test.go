// SPDX-License-Identifier: Apache-2.0

package ai

// FindError is for the comparison with json.Valid.
var FindError = findError

// ReadLong reads a body as if MaxRequestBytes were first.
func ReadLong(f Format, path string, body []byte, first int) (*Request, error) {
	r := &Request{Format: f, Unparsed: true, body: body[:first]}
	_, at := parsePath(path)
	return r.readLong(at, int64(len(body)))
}
