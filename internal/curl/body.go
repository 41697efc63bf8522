// SPDX-License-Identifier: Apache-2.0

package curl

import (
	"fmt"
	"strings"
)

// A body is what --data and the like come to.
type body struct {
	there bool
	at    int // of the first
	text  strings.Builder
	form  bool // --form
	json  bool // --json
}

// data reads an option that brings a part of the body.
func (c *command) data(w word, name string, value word) error {
	b := &c.body
	isForm := name == "form" || name == "form-string"
	if b.there && isForm != b.form {
		return errorAt(c.text, w.at, "a body is either --form or --data, not both", "")
	}
	text := value.text
	switch name {
	case "form":
		if before, rest, ok := strings.Cut(text, "="); !ok || before == "" && rest == "" {
			return errorAt(c.text, value.at, "a part of a form is NAME=CONTENT", "")
		}
	case "data-urlencode":
		encoded, err := c.urlencode(value)
		if err != nil {
			return err
		}
		text = encoded
	case "data", "data-ascii", "data-binary", "json":
		if strings.HasPrefix(text, "@") {
			return c.fileRefused(value)
		}
	}
	if b.there && name != "json" {
		b.text.WriteByte('&')
	}
	if !b.there {
		b.there, b.at = true, w.at
	}
	b.form, b.json = isForm, b.json || name == "json"
	b.text.WriteString(text)
	return nil
}

func (c *command) fileRefused(value word) error {
	return errorAt(c.text, value.at, "data in a file are not read", "write them here, with --data-raw if they begin with @, or leave them out")
}

// urlencode is how --data-urlencode sends a value.
func (c *command) urlencode(value word) (string, error) {
	text := value.text
	name, content, ok := strings.Cut(text, "=")
	if at := strings.IndexByte(text, '@'); at >= 0 && (!ok || at < len(name)) {
		return "", c.fileRefused(value)
	}
	switch {
	case !ok:
		return encode(text), nil
	case name == "":
		return encode(content), nil
	}
	return name + "=" + encode(content), nil
}

// urlQuery is how --url-query sends a value.
func (c *command) urlQuery(value word) (string, error) {
	if rest, ok := strings.CutPrefix(value.text, "+"); ok {
		return rest, nil
	}
	return c.urlencode(value)
}

// encode is the encoding of --data-urlencode.
func encode(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		case c == ' ':
			b.WriteByte('+')
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
