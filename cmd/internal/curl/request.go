// SPDX-License-Identifier: Apache-2.0

package curl

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"github.com/metehq/mete/internal/requesttext"
)

// AssumedAgent is the default User-Agent. The actual version of curl is unknown.
const AssumedAgent = "curl/8.0.0"

// acceptEncoding is the Accept-Encoding of --compressed in most builds of curl.
const acceptEncoding = "deflate, gzip, br, zstd"

func (c *command) makeRequest() error {
	u, err := c.parseURL()
	if err != nil {
		return err
	}
	r := &http.Request{Method: "GET", Host: u.Host, Header: http.Header{}}
	c.sent.Request = r
	sendsBody := c.data != nil && !c.flags["get"]
	switch {
	case c.flags["head"] && sendsBody:
		return c.errorAt(*c.data, "--head excludes a request body", "remove --head, or add --get")
	case c.flags["head"]:
		r.Method = "HEAD"
	case sendsBody:
		r.Method = "POST"
	}
	if w, ok := c.last["request"]; ok {
		if !requesttext.IsToken(w.text) {
			return c.errorAt(w, "not a method", "write one such as GET")
		}
		r.Method = w.text
	}
	if c.data != nil && !sendsBody {
		u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+encodeNonASCII(c.body.String()), "&")
	}
	r.RequestURI = u.RequestURI()
	if reason := requesttext.CheckTarget(r.RequestURI); reason != "" {
		return c.errorAt(*c.url, reason, urlHint)
	}
	removed, err := c.setHeaders(r)
	if err != nil {
		return err
	}
	return c.addDefaults(r, u.User, sendsBody, removed)
}

const urlHint = "encode it, as %20 for a space; --data-urlencode with --get does"

// parseURL parses the URL like curl does: it resolves dot segments and encodes non-ASCII characters.
func (c *command) parseURL() (*url.URL, error) {
	w := *c.url
	if reason := requesttext.CheckTarget(w.text); reason != "" {
		return nil, c.errorAt(w, reason, urlHint)
	}
	scheme, _, ok := strings.Cut(w.text, "://")
	switch {
	case !ok:
		w.text, scheme = "http://"+w.text, "http"
	case !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https"):
		return nil, c.errorAt(w, fmt.Sprintf("the URL begins with %s://", requesttext.Shorten(scheme)), "write one that begins with http:// or https://")
	}
	u, err := url.Parse(encodeNonASCII(w.text))
	if err != nil || u.Hostname() == "" || requesttext.CheckTarget(u.Host) != "" {
		return nil, c.errorAt(w, "the URL has no host", "write one such as http://localhost:8080/")
	}
	if !c.flags["globoff"] && strings.ContainsAny(w.text[strings.Index(w.text, u.Host)+len(u.Host):], "[]{}") {
		return nil, c.errorAt(w, "curl expands [] and {} in a URL to several requests", "add --globoff to send them literally")
	}
	if u = new(url.URL).ResolveReference(u); u.Path == "" {
		u.Path = "/"
	}
	u.Host = strings.TrimSuffix(u.Host, map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
	return u, nil
}

func encodeNonASCII(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if s[i] < 0x80 {
			b.WriteByte(s[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", s[i])
		}
	}
	return b.String()
}

// setHeaders sets the headers of -H. It returns the names of headers that -H removes.
func (c *command) setHeaders(r *http.Request) (removed http.Header, err error) {
	removed = http.Header{}
	for _, w := range c.headers {
		name, value, colon := strings.Cut(w.text, ":")
		if !colon {
			name, value, _ = strings.Cut(w.text, ";")
			if w.text != name+";" {
				return nil, c.errorAt(w, "not a header", `write NAME: VALUE, or NAME; for an empty one`)
			}
		}
		name, value = strings.Trim(name, " \t"), strings.Trim(value, " \t")
		if name == "" && colon {
			continue // :authority and other pseudo headers repeat the URL
		}
		switch reason := requesttext.CheckHeader(name, value); {
		case reason != "":
			return nil, c.errorAt(w, reason, "")
		case strings.EqualFold(name, "host"):
			r.Host = value
		case value == "" && colon:
			removed.Set(name, "")
		default:
			r.Header.Add(name, value)
		}
	}
	return removed, nil
}

// addDefaults adds the headers of other options and the default headers of curl, unless -H sets or removes them.
func (c *command) addDefaults(r *http.Request, inURL *url.Userinfo, sendsBody bool, removed http.Header) error {
	var bad error
	add := func(name, value string, assumed bool) {
		name = textproto.CanonicalMIMEHeaderKey(name)
		if r.Header[name] != nil || removed[name] != nil || value == "" {
			return
		}
		if reason := requesttext.CheckHeader(name, value); reason != "" && bad == nil {
			bad = c.errorAt(*c.url, reason, "")
		}
		r.Header.Set(name, strings.Trim(value, " \t"))
		if assumed {
			c.sent.Assumed = append(c.sent.Assumed, name)
		}
	}
	user, given := c.last["user"]
	if !given && inURL != nil {
		password, _ := inURL.Password()
		user.text, given = inURL.Username()+":"+password, true
	}
	if given {
		if !strings.Contains(user.text, ":") {
			user.text += ":"
		}
		add("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.text)), false)
	}
	agent, given := c.last["user-agent"]
	if !given {
		agent.text = AssumedAgent
	}
	add("User-Agent", agent.text, !given)
	if c.json {
		add("Accept", "application/json", true)
		add("Content-Type", "application/json", true)
	}
	add("Accept", "*/*", true)
	if c.flags["compressed"] {
		add("Accept-Encoding", acceptEncoding, true)
	}
	add("Referer", strings.TrimSuffix(c.last["referer"].text, ";auto"), false)
	add("Cookie", strings.Join(c.cookies, ";"), false)
	if sendsBody {
		add("Content-Length", strconv.Itoa(c.body.Len()), true)
		add("Content-Type", "application/x-www-form-urlencoded", true)
	}
	return bad
}
