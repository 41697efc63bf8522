// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/metehq/mete/internal/httpfacts"
)

var errLog = errors.New(`not an access log line: want ADDRESS - USER [02/Jan/2006:15:04:05 -0700] "METHOD /path HTTP/1.1" STATUS BYTES, ` +
	`and for the combined format "REFERER" "USER-AGENT"`)

// parseLog reads a line of the common or combined format:
//
//	192.0.2.1 - user [02/Jan/2006:15:04:05 -0700] "GET /?q=1 HTTP/1.1" 200 612 "referer" "user agent"
//
// The user may hold spaces and brackets, but no quote that is not escaped; so
// the first `] "` ends the time.
func parseLog(r *Request, line string, clock *logClock) error {
	address, _, ok := strings.Cut(line, " ")
	timeEnd := strings.Index(line, `] "`)
	timeStart := timeEnd - len(logTime)
	if !ok || timeStart < len(address)+2 || line[timeStart-1] != '[' || line[timeStart-2] != ' ' {
		return errLog
	}
	var err error
	if r.At, err = clock.parse(line[timeStart:timeEnd]); err != nil {
		return err
	}
	request, rest, ok := cutQuoted(line[timeEnd+2:])
	if !ok {
		return fmt.Errorf("%w; its request has no closing quote", errLog)
	}
	status, rest, _ := strings.Cut(strings.TrimPrefix(rest, " "), " ")
	if !isStatus(status) {
		return fmt.Errorf("%w; %.20q stands where the status should", errLog, status)
	}
	_, rest, combined := strings.Cut(rest, " ") // the size
	if combined && rest != "" && rest[0] == '"' {
		if err := r.setQuotedHeaders(rest); err != nil {
			return err
		}
	}
	r.setAddress(address)
	r.setRequestLine(unescape(request))
	return nil
}

// setQuotedHeaders reads the fields that only the combined format has. Others
// may follow them.
func (r *Request) setQuotedHeaders(rest string) error {
	for _, name := range [...]string{"referer", "user-agent"} {
		value, after, ok := cutQuoted(rest)
		if !ok {
			return fmt.Errorf("%w; its %s is not in quotes", errLog, name)
		}
		if value != "-" {
			r.headers = append(r.headers, pair{name, unescape(value)})
		}
		rest = strings.TrimPrefix(after, " ")
	}
	return nil
}

func isStatus(s string) bool {
	if s == "-" {
		return true
	}
	return len(s) == 3 && s[0] >= '0' && s[0] <= '9' && s[1] >= '0' && s[1] <= '9' && s[2] >= '0' && s[2] <= '9'
}

func (r *Request) setAddress(s string) {
	if _, err := netip.ParseAddr(s); err == nil {
		r.ip = s
	}
}

// setRequestLine reads `GET /path?query HTTP/1.1`. What is not one sets nothing.
func (r *Request) setRequestLine(s string) {
	method, target, ok := strings.Cut(s, " ")
	if !ok || !isToken(method) {
		return
	}
	if i := strings.LastIndexByte(target, ' '); i >= 0 {
		if !strings.HasPrefix(target[i+1:], "HTTP/") {
			return
		}
		target = target[:i]
	}
	if scheme := strings.Index(target, "://"); scheme > 0 && target[0] != '/' {
		host := target[scheme+len("://"):]
		slash := strings.IndexAny(host+"/", "/?#")
		r.setHost(host[:slash])
		target = host[slash:]
		if target == "" || target[0] != '/' {
			target = "/" + target
		}
	}
	if target == "" || target[0] != '/' && target != "*" {
		r.host, r.rawHost = "", ""
		return
	}
	r.method = method
	path, query, _ := strings.Cut(target, "?")
	if strings.IndexByte(path, '%') >= 0 {
		if decoded, err := url.PathUnescape(path); err == nil {
			path = decoded
		}
	}
	r.path, r.rawQuery = httpfacts.Path(path), query
}

// isToken reports whether s can be a method (RFC 9110, §5.6.2).
func isToken(s string) bool {
	for _, c := range []byte(s) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// cutQuoted returns what the quotes at the start of s hold, still escaped, and
// what follows them.
func cutQuoted(s string) (quoted, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", s, false
	}
	for i := 1; i < len(s); {
		next := strings.IndexByte(s[i:], '"')
		if next < 0 {
			break
		}
		i += next
		if slashes := trailingSlashes(s[1:i]); slashes%2 == 0 {
			return s[1:i], s[i+1:], true
		}
		i++
	}
	return "", s, false
}

func trailingSlashes(s string) int {
	return len(s) - len(strings.TrimRight(s, `\`))
}
