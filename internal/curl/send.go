// SPDX-License-Identifier: Apache-2.0

package curl

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// message makes the message of what was read.
func (c *command) message() error {
	a, err := c.address()
	if err != nil {
		return err
	}
	if c.Method, err = c.method(); err != nil {
		return err
	}
	c.Host, c.Target = a.host, c.target(&a)
	if w, ok := c.values["request-target"]; ok {
		c.Target = w.text
	}
	if reason := badTarget(c.Target); reason != "" || c.Target == "" {
		at := c.url.at
		if reason == "" {
			reason = "the target of the request is empty"
		}
		return errorAt(c.text, at, reason, "encode it, as %20 for a space; --data-urlencode with --get does")
	}
	removed, err := c.headers()
	if err != nil {
		return err
	}
	for _, f := range c.defaults(&a) {
		if !removed[strings.ToLower(f.Name)] && !c.has(f.Name) {
			if reason := badValue(f.Value); reason != "" {
				return errorAt(c.text, c.url.at, "of the header "+f.Name+" "+reason, "")
			}
			f.Value = strings.Trim(f.Value, blanks)
			c.Header = append(c.Header, f)
		}
	}
	return nil
}

// headers reads those that are given, and returns the names of those that are not to
// be sent.
func (c *command) headers() (removed map[string]bool, err error) {
	removed = map[string]bool{}
	for _, w := range c.header {
		name, value, colon := strings.Cut(w.text, ":")
		empty := false
		if !colon {
			name, value, empty = strings.Cut(w.text, ";")
			if !empty || strings.Trim(value, blanks) != "" {
				return nil, errorAt(c.text, w.at, "this is no header", `write NAME: VALUE, or NAME; for an empty one`)
			}
		}
		value = strings.Trim(value, blanks)
		name = strings.Trim(name, blanks)
		switch reason := badValue(value); {
		case strings.HasPrefix(w.text, ":") && colon:
			continue // :authority and the like, which browsers show: the URL says it
		case !isToken(name):
			return nil, errorAt(c.text, w.at, "this is no name of a header", "")
		case reason != "":
			return nil, errorAt(c.text, w.at, "of the header "+name+" "+reason, "")
		case value == "" && !empty:
			removed[strings.ToLower(name)] = true
			if strings.EqualFold(name, "host") {
				c.Host = ""
			}
		case strings.EqualFold(name, "host"):
			c.Host = value
		default:
			c.Header = append(c.Header, Field{Name: name, Value: value})
		}
	}
	return removed, nil
}

// acceptEncoding is what --compressed asks for in most builds.
const acceptEncoding = "deflate, gzip, br, zstd"

// AssumedAgent is the User-Agent of a command that names none: whose version is not
// known.
const AssumedAgent = "curl/8.0.0"

// defaults are the headers that are sent where the command does not give or remove
// them.
func (c *command) defaults(a *address) (all []Field) {
	add := func(name, value string, assumed bool) { all = append(all, Field{name, value, assumed}) }
	token, bearer := c.value("oauth2-bearer")
	user, given := c.value("user")
	switch {
	case bearer:
		add("Authorization", "Bearer "+token, false)
	case given || a.userIn:
		if !given {
			user = a.user
		}
		if !strings.Contains(user, ":") {
			user += ":"
		}
		add("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user)), false)
	}
	if v, ok := c.value("range"); ok {
		add("Range", "bytes="+v, false)
	}
	if v, ok := c.value("user-agent"); !ok {
		add("User-Agent", AssumedAgent, true)
	} else if v != "" {
		add("User-Agent", v, false)
	}
	accept := "*/*"
	if c.body.json {
		accept = "application/json"
	}
	add("Accept", accept, true)
	if c.given["compressed"] {
		add("Accept-Encoding", acceptEncoding, true)
	}
	if v, ok := c.value("referer"); ok {
		if v = strings.TrimSuffix(v, ";auto"); v != "" {
			add("Referer", v, false)
		}
	}
	if len(c.cookies) > 0 {
		var parts []string
		for _, w := range c.cookies {
			parts = append(parts, w.text)
		}
		add("Cookie", strings.Join(parts, ";"), false)
	}
	return append(all, c.bodyHeaders()...)
}

// bodyHeaders are those of the body, if one is sent.
func (c *command) bodyHeaders() (all []Field) {
	b := &c.body
	switch {
	case b.json:
		all = append(all, Field{"Content-Type", "application/json", true})
		fallthrough
	case b.there && !b.form && !c.given["get"]:
		if !c.given["get"] {
			all = append(all, Field{"Content-Length", strconv.Itoa(b.text.Len()), true})
		}
		if !b.json {
			all = append(all, Field{"Content-Type", "application/x-www-form-urlencoded", true})
		}
	case b.form:
		all = append(all, Field{"Content-Type", "multipart/form-data", true})
		c.note("the body of --form is not made: its Content-Length is not known")
	}
	return all
}
