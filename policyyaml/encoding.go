// SPDX-License-Identifier: Apache-2.0

package policyyaml

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/metehq/mete/policy"
)

// encodingMistake reports the first byte that is no text in UTF-8, with its place. A file
// with a byte order mark may be UTF-16, as YAML allows.
func encodingMistake(name, language string, data []byte) (Mistake, bool) {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return Mistake{}, false
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		e := policy.Error{}
		switch {
		case r == utf8.RuneError && size == 1:
			e = policy.Error{Reason: fmt.Sprintf("not %s: the byte 0x%02X is not UTF-8", language, data[i]), Hint: "save the file as UTF-8"}
		case r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f:
			e = policy.Error{Reason: fmt.Sprintf("not %s: it has the control character 0x%02X", language, data[i]), Hint: "remove it"}
		default:
			i += size
			continue
		}
		at := placeOf(data, int64(i))
		return Mistake{File: name, Line: at.line, Column: at.column, Error: e}, true
	}
	return Mistake{}, false
}
